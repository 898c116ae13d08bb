from functools import partial

import numpy as np
import pytest

from bbo_strategies.evolution import Evolution
from bbo_strategies.mutation import RUN
from bbo_suite import Space
from bbo_suite.testing import play, start

player = partial(start, Evolution)


def weighted(rows):
    return 1 + rows @ np.linspace(-1, 2, rows.shape[1]) + rows.shape[1]


@pytest.mark.parametrize(("budget", "batch"), [(3010, 20), (1005, 10), (50, 1)])
def test_the_default_comes_first_in_batches_of_at_most_20_or_a_hundredth_of_the_budget(budget, batch):
    batches = [configs for configs, _ in play(player(Space([2] * 50), budget), weighted)]
    assert (batches[0][0] == 0).all() and {len(b) for b in batches[:-1]} == {batch}


def test_the_best_survive_and_of_equal_ones_the_younger():
    strategy, told = player(Space([3] * 30), 500), []
    for _, values in play(strategy, weighted):  # a batch is yielded before it is told
        if told:
            assert strategy._costs == pytest.approx(np.sort(told)[:5])
            assert weighted(strategy._population) == pytest.approx(strategy._costs)
        told.extend(values)
    assert len(told) == 500
    flat, before = player(Space([2] * 50), 1000), None
    for configs, _ in play(flat, lambda rows: np.ones(len(rows))):
        assert before is None or (flat._population == before[:5]).all()
        before = configs


def test_a_candidate_is_hardly_ever_proposed_twice():
    rows = np.concatenate([configs for configs, _ in play(player(Space([2] * 14), 2000), weighted)])
    assert len(np.unique(rows, axis=0)) > 0.8 * len(rows)  # in a space of 16384, with the population at one place


def test_the_optimum_of_a_separable_problem_is_found():
    best = min(values.min() for _, values in play(player(Space([2] * 60), 3000), weighted))
    assert best == weighted((np.linspace(-1, 2, 60) < 0).astype(int)[None])[0]


def test_runs_are_frequent_if_they_pay_and_rare_if_they_do_not():
    def fives(rows):
        """Reward parameters that are on together, five by five."""
        return 100 - (rows.reshape(len(rows), -1, 5).sum(axis=2) == 5).sum(axis=1)

    signs = np.random.default_rng(4).choice([-1, 1], 400)
    for cost, pays in ((fives, True), (lambda rows: 1000 + rows @ signs, False)):
        strategy = player(Space([2] * 400), 600)
        for _ in play(strategy, cost):
            pass
        assert (strategy._mutation.shares[RUN] > 0.36) == pays


def test_crossover_takes_every_value_from_a_parent():
    strategy = player(Space([5] * 40), 1000)
    mothers, fathers = np.ones((500, 40), np.int8), np.full((500, 40), 2, np.int8)
    children = strategy._crossed(mothers, fathers)
    assert set(np.unique(children)) == {1, 2}
    switches = (np.diff(children, axis=1) != 0).sum(axis=1)
    assert 0.3 < (switches <= 2).mean() < 0.7  # a stretch, or uniform
