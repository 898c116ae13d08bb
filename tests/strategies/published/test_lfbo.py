"""The classifier of good candidates: what counts as good, which neighbours are tried, and how the search ends."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from bbo_strategies.published.lfbo import GoodForest, excess
from bbo_suite import Space, choice, product, scale
from bbo_suite.conformance.toy_tasks import uneven
from bbo_suite.registry import Registry
from bbo_suite.testing import play, start


def search(space: Space, budget: int, **options):
    return start(Registry().strategy("published:lfbo"), space, budget, **options)


def test_good_candidates_weigh_by_how_much_better_they_are_and_failures_are_bad():
    costs = np.array([1.0, 2.0, 3.0, np.inf, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0])
    weights = excess(costs, 0.25)  # the quantile of the ten that run is 3.5
    np.testing.assert_allclose(weights, np.array([2.5, 1.5, 0.5, *np.zeros(8)]) / 1.5)
    assert (excess(np.ones(5), 0.1) == 1).all()


@pytest.fixture(scope="module")
def forest() -> GoodForest:
    rng, space = np.random.default_rng(0), Space(np.full(20, 4), np.ones(20))
    forest, rows = GoodForest(space, functools.partial(excess, share=0.1), rng), space.sample(400, rng)
    forest.learn(rows, rows[:, :3].sum(axis=1).astype(float))
    return forest


def test_a_forest_knows_good_candidates_and_follows_each_tree(forest):
    low, high = np.zeros((1, 20), np.int8), np.full((1, 20), 3, np.int8)
    assert forest.predict(low)[0] > 0.3 > 0.1 > forest.predict(high)[0]
    trees = np.arange(forest.size)
    np.testing.assert_allclose(forest.chances(np.repeat(low, 100, axis=0), trees).mean(), forest.predict(low)[0])
    paths = [set(forest.path(tree, low[0])) for tree in trees]
    assert all(paths) and np.mean([bool(path & {0, 1, 2}) for path in paths]) > 0.6


def test_neighbours_are_at_most_two_steps_away_along_a_path():
    space = product(*(scale(f"s{i}", range(9)) for i in range(10)), *(choice(f"c{i}", "abcd") for i in range(5)))
    searches = search(space, 400, descent=0)
    batches = [rows for rows, _ in play(searches, uneven, 1000)]
    known = np.concatenate(batches[:2])
    for rows in batches[2:]:
        steps = np.abs(rows[:, None, :10].astype(int) - known[None, :, :10])
        assert (steps.max(axis=2) <= 2).any(axis=1).all()
        known = np.concatenate([known, rows])


def test_it_ends_where_no_single_change_gains():
    space = Space(np.full(30, 2))
    costs = np.concatenate([values for _, values in play(search(space, 3000), uneven, 100)])
    assert len(costs) < 1500 and costs.min() == 1
