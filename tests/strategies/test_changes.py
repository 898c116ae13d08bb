"""What strategies share: operators and numbers of changes, regressors, and what is measured once."""

import math
import warnings

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold

from bbo_strategies.annealing import Annealing
from bbo_strategies.archive import Archive
from bbo_strategies.changes import COPY, RUN, SINGLE, AdaptiveMutation, MutationRate, relative_gains
from bbo_strategies.evolution import Evolution
from bbo_strategies.regressors import candidates, fit, light, score, select
from bbo_suite import Moves, Space, Task, choice, product, scale
from bbo_suite.registry import Registry
from bbo_suite.testing import play, start

D = 400


@pytest.fixture
def mutation():
    return AdaptiveMutation(Moves(Space([3] * D)), np.random.default_rng(0))


@pytest.fixture
def made(mutation):
    """Return rows before and after a change each, the columns and the kinds."""
    before = np.random.default_rng(1).integers(0, 3, (1200, D)).astype(np.int8)
    after, columns = before.copy(), np.random.default_rng(2).integers(60, 300, 1200)
    return before, after, columns, mutation.change(after, np.arange(1200), columns)


def test_a_single_change_changes_only_its_parameter(made):
    before, after, columns, kinds = made
    places, at = np.nonzero((before != after)[kinds == SINGLE])
    assert (np.bincount(places) == 1).all() and (at == columns[kinds == SINGLE]).all()


def test_a_run_takes_one_value_and_a_copy_the_values_of_another_range(made):
    before, after, columns, kinds = made
    lengths = {RUN: [], COPY: []}
    for old, new, column, kind in zip(before, after, columns, kinds, strict=True):
        if kind in lengths:
            changed = np.flatnonzero(old != new)
            assert changed[0] >= column and changed[-1] < column + 50
            copied = new[column : changed[-1] + 1]
            windows = np.lib.stride_tricks.sliding_window_view(old, len(copied))
            assert (copied == copied[0]).all() if kind == RUN else (windows == copied).all(axis=1).any()
            lengths[kind].append(len(copied))
    assert all(np.median(known) < 6 and max(known) > 20 for known in lengths.values())  # a heavy tail


@pytest.mark.parametrize("paying", [SINGLE, RUN, COPY])
def test_the_shares_follow_recent_success(mutation, paying):
    kinds = np.arange(99) % 3
    for kind in (paying, (paying + 1) % 3):
        for _ in range(100):
            mutation.learn(kinds, kinds == kind)
        assert mutation.shares[kind] > 0.8 and mutation.shares.sum() == pytest.approx(1)
        assert mutation.shares.min() > 0.04  # a kind may pay later


def test_the_shares_are_even_after_so_long_without_success_that_gains_underflow(mutation):
    kinds, rng = np.repeat([SINGLE, RUN, COPY], [20, 30, 40]), np.random.default_rng(0)
    for better in (kinds == SINGLE, *[np.zeros(90, bool)] * 15_000):
        mutation.learn(kinds, better)
    assert mutation.shares == pytest.approx(np.full(3, 1 / 3))
    chosen = mutation.change(rng.integers(0, 3, (300, D)), np.arange(300), np.full(300, 9))
    assert np.bincount(chosen, minlength=3).min() > 50


def rate(parameters=4000):
    return MutationRate(parameters, np.random.default_rng(0))


def test_at_first_the_numbers_of_changes_follow_a_power_law():
    assert rate().shares * np.array([1, 2, 4, 8, 16, 32]) == pytest.approx(np.full(6, rate().shares[0]))
    drawn = rate().draw(20_000)
    assert set(drawn.tolist()) == {1, 2, 4, 8, 16, 32}
    assert (drawn == 1).mean() == pytest.approx(rate().shares[0], abs=0.02)


@pytest.mark.parametrize("paying", range(6))
def test_the_shares_follow_what_was_gained_and_not_how_often(paying):
    own, numbers = rate(), 2 ** np.tile(np.arange(6), 10)
    for place in ((paying + 1) % 6, paying):
        for _ in range(100):
            own.learn(numbers, np.where(numbers == 2**place, 0.1, 1e-4), np.zeros(60, bool))
        assert own.shares[place] > 0.5 and own.shares.sum() == pytest.approx(1) and own.shares.min() > 0.001


def test_there_are_single_changes_only_where_less_than_half_of_them_cost_nothing():
    own, ones = rate(), np.ones(20, np.int64)
    own.learn(ones, np.zeros(20), np.arange(20) < 9)
    assert set(own.draw(1000)) == {1}
    own.learn(ones, np.zeros(20), np.arange(20) < 11)
    assert set(own.draw(1000)) == {1, 2, 4, 8, 16, 32}


def test_gains_are_shares_of_the_cost_and_failures_gain_nothing():
    assert relative_gains(4.0, np.array([3.0, 5.0, np.inf, 0.0, -9.0])).tolist() == [0.25, 0, 0, 1, 1]
    assert relative_gains(np.inf, np.array([3.0, np.inf])).tolist() == [1, 0]
    assert relative_gains(-2.0, np.array([-3.0, -1.0])).tolist() == [0.5, 0]
    assert relative_gains(0.0, np.array([0.0, -1.0, 1.0])).tolist() == [0, 1, 0]
    assert relative_gains(np.array([4.0, np.inf]), np.array([3.0, np.inf])).tolist() == [0.25, 0]


@pytest.mark.parametrize("strategy", [Annealing, Evolution])
def test_needles_among_thousands_of_parameters_without_effect_are_found(strategy):
    """Forty of 4,000 parameters gain; 800 evaluations of single changes would find about eight of them."""
    needles = np.random.default_rng(5).choice(4000, 40, replace=False)
    searcher = start(strategy, Space([2] * 4000), 800)
    least = min(values.min() for _, values in play(searcher, lambda rows: 100.0 - rows[:, needles].sum(axis=1), 20))
    assert least <= 100 - 20


@pytest.mark.parametrize("strategy", [Annealing, Evolution])
def test_where_nearly_every_change_loses_candidates_have_single_changes(strategy):
    weights = np.random.default_rng(3).random(400) + 1e-3
    default = np.zeros(400, np.int8)
    default[::20] = 1
    searcher = start(strategy, Space([2] * 400), 1000, default=default)
    costs = [values for _, values in play(searcher, lambda rows: 10 + rows @ weights, 20)]
    assert min(map(np.min, costs)) < 10 + 0.5 * (default @ weights)


def test_score_is_r_squared_on_the_held_out_folds():
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(90, 5)), generator.normal(size=90)
    y += x[:, 0]
    expected = []
    for train, test in KFold(3, shuffle=True, random_state=4).split(x):
        expected.append(r2_score(y[test], Ridge(10.0).fit(x[train], y[train]).predict(x[test])))
    assert score(Ridge(10.0), x, y, folds=3, seed=4) == pytest.approx(np.mean(expected))


def test_selection_takes_the_good_ones_or_the_single_best():
    scores = {"ridge": 0.5, "forest": 0.49, "boosting": 0.9, "network": -3.0}
    assert select(scores, 0.5) == ["ridge", "boosting"]
    assert select(scores, 0.95) == ["boosting"]


def test_regressors_take_constant_columns_and_few_rows():
    x, y = np.ones((40, 5), np.float32), np.random.default_rng(0).normal(size=40).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for regressor in candidates(0, 40).values():
            assert math.isfinite(score(regressor, x, y, 3, 0))


def test_a_light_forest_predicts_the_same():
    x, y = np.random.default_rng(0).random((200, 6), np.float32), np.random.default_rng(1).random(200)
    forest = fit(candidates(0, 200)["forest"], x, y)
    np.testing.assert_allclose(light(forest).predict(x), forest.predict(x), rtol=1e-12)


SPACE = product(choice("a", "xyz"), scale("b", range(5)), choice("c", range(6)))

SHAPE = (3, 5, 6)
BATCHES = [
    ("annealing", 1),
    ("annealing", 100),
    ("local", 1),
    ("local", 100),
    ("mbo", 1),
    ("mbo", 20),
    ("mbo", 64),
    ("portfolio", 20),
    ("evolution", 7),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "batch"), BATCHES)
def test_a_small_space_is_covered_without_repeats(name, batch):
    rng = np.random.default_rng(batch)
    costs = rng.random(SPACE.cardinality)
    strategy = Registry().strategy(name)
    task = Task("made/up", SPACE, np.zeros(3, np.int64), "seconds", None)
    search = strategy(task, 1000, rng, strategy.Options())
    seen = []
    while len(configs := search.ask(batch)):
        seen += [tuple(row) for row in configs.tolist()]
        search.tell(configs, costs[np.ravel_multi_index(configs.T.astype(int), SHAPE)])
    assert len(seen) == len(set(seen)) == SPACE.cardinality


@pytest.mark.parametrize("name", ["annealing", "evolution", "local", "mbo"])
def test_candidates_measured_by_others_are_not_measured_again(name):
    rng = np.random.default_rng(0)
    strategy = Registry().strategy(name)
    search = strategy(Task("made/up", SPACE, np.zeros(3, np.int64), "seconds", None), 1000, rng, strategy.Options())
    everything = np.array(list(np.ndindex(SHAPE)))
    search.tell(first := search.ask(1), rng.random(1))
    known = everything[rng.permutation(len(everything))[:60]]
    search.observe(known, rng.random(60))
    asked = first.tolist()
    while len(configs := search.ask(1)):
        asked += configs.tolist()
        search.tell(configs, rng.random(1))
    assert not {*map(tuple, asked[1:])} & {*map(tuple, known.tolist())}


def test_the_archive_claims_each_candidate_once_and_then_nothing():
    space = Space([3, 4, 2])
    archive, rows = Archive(space, np.random.default_rng(0)), space.sample(50, np.random.default_rng(0))
    claimed = rows[archive.claim(rows, 5)]
    rest = [archive.others(10) for _ in range(8)]
    assert (
        len(claimed) == 5
        and sum(map(len, rest)) == 19
        and len(np.unique(np.concatenate([claimed, *rest]), axis=0)) == 24
    )
    assert rest[-1].shape == (0, 3) and rest[-1].dtype == space.dtype
