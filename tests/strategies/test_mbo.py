import math
import subprocess
import sys
import warnings

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold

from bbo_strategies.mbo import ModelBasedOptimization, ModelOptions, StructuredModelBasedOptimization
from bbo_strategies.mbo.acquisition import NAMES, expected_improvement, promise
from bbo_strategies.mbo.archive import Archive
from bbo_strategies.mbo.arms import Arms
from bbo_strategies.mbo.effects import Changes, Effects
from bbo_strategies.mbo.ensemble import FEWEST, Ensemble
from bbo_strategies.mbo.features import Features
from bbo_strategies.mbo.proposals import Proposals
from bbo_strategies.mbo.regressors import candidates, score, select
from bbo_strategies.mbo.search import maximise
from bbo_strategies.mbo.state import State
from bbo_strategies.mbo.structured import StructuredFeatures
from bbo_strategies.mbo.targets import targets
from bbo_strategies.random_search import RandomSearch
from bbo_suite import Constraint, NoOptions, Space, Structure, Task, choice, permutation, product, scale, sequence


def rng(seed=0):
    return np.random.default_rng(seed)


def search(space, cost, budget, batch=50, seed=0, strategy=ModelBasedOptimization, **options):
    """Return all proposed rows and their values; like the suite's loop, which does not tell the last batch."""
    task = Task("test", space, space.sample(1, rng(9))[0], "s")
    settings = NoOptions() if strategy is RandomSearch else ModelOptions(**options)
    searcher = strategy(task, budget, rng(seed), settings)
    rows, values = np.zeros((0, len(space)), space.dtype), np.zeros(0)
    while len(rows) < budget:
        configs = searcher.ask(min(batch, budget - len(rows)))
        assert len(configs) <= min(batch, budget - len(rows))
        if not len(configs):
            break
        assert space.allowed(space.check(configs)).all()
        told = np.asarray(cost(configs), float)
        rows, values = np.concatenate([rows, configs]), np.append(values, told)
        if len(rows) < budget:
            searcher.tell(configs, told)
    return rows, values


def unique(rows):
    return len(np.unique(rows, axis=0)) == len(rows)


def separable(n, seed):
    weights = rng(seed).normal(size=n)
    return Space([2] * n), lambda rows: rows @ weights - np.minimum(weights, 0).sum()


def ising(n, seed):
    generator = rng(seed)
    pairs, strength = generator.integers(0, n, (3 * n, 2)), generator.normal(size=3 * n)
    return Space([2] * n), lambda rows: ((2.0 * rows - 1)[:, pairs[:, 0]] * (2.0 * rows - 1)[:, pairs[:, 1]]) @ strength


def mixed(n, seed):
    """n choices of five with a table each, n scales of nine with a bowl each."""
    generator = rng(seed)
    table, best = generator.normal(size=(n, 5)), generator.integers(0, 9, n)

    def cost(rows):
        bowls = ((rows[:, n:] - best) ** 2).sum(axis=1) * 0.05
        return np.exp(table[np.arange(n), rows[:, :n]].sum(axis=1) + bowls)

    return Space([5] * n + [9] * n, [0] * n + [1] * n), cost


def test_targets_keep_the_order_and_put_failures_last():
    values = np.array([3.0, np.inf, 1e300, -5.0, 1e-300, np.inf, np.nan])
    result = targets(values)
    assert np.isfinite(result).all()
    assert result[3] < result[4] < result[0] < result[2] < result[1] == result[5] == result[6]
    assert abs(result.mean()) < 1e-6 and abs(result.std() - 1) < 1e-6


@pytest.mark.parametrize("value", [0.0, 7.0, np.inf])
def test_equal_values_give_no_target(value):
    np.testing.assert_array_equal(targets(np.full(20, value)), np.zeros(20))


def test_score_is_r_squared_on_the_held_out_folds():
    generator = rng()
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


class Stub:
    """A regressor that always predicts the same."""

    def __init__(self, value):
        self.value = value

    def fit(self, features, targets):
        return self

    def predict(self, features):
        return np.full(len(features), self.value)


@pytest.mark.parametrize("threshold, chosen", [(0.5, {"good", "better"}), (0.9, {"better"})])
def test_the_ensemble_holds_the_selected_regressors_and_all_scores(monkeypatch, threshold, chosen):
    scores = {2.0: 0.7, 3.0: 0.8, 4.0: -1.0}
    stubs = {"good": Stub(2.0), "better": Stub(3.0), "bad": Stub(4.0)}
    monkeypatch.setattr("bbo_strategies.mbo.regressors.candidates", lambda *_: stubs)
    monkeypatch.setattr("bbo_strategies.mbo.regressors.score", lambda regressor, *_: scores[regressor.value])
    ensemble = Ensemble(threshold, 3, rng())
    ensemble.learn(np.zeros((60, 3), np.float32), np.arange(60.0))
    assert set(ensemble.members) == chosen
    assert ensemble.scores == {"good": 0.7, "better": 0.8, "bad": -1.0}
    assert sorted(ensemble.predict(np.zeros((4, 3)))[:, 0]) == sorted(stubs[name].value for name in chosen)
    assert ensemble.noise() == pytest.approx(math.sqrt(np.mean([1 - scores[stubs[name].value] for name in chosen])))


def test_models_are_fitted_at_growing_distances_on_bounded_data(monkeypatch):
    calls = []
    monkeypatch.setattr("bbo_strategies.mbo.regressors.candidates", lambda seed, rows: {"one": Stub(0.0)})
    monkeypatch.setattr("bbo_strategies.mbo.regressors.score", lambda *a: calls.append(len(a[1])) or 1.0)
    ensemble, seen = Ensemble(0.5, 3, rng()), []
    for done in range(10, 6001, 10):
        before = len(calls)
        ensemble.learn(rng(done).random((10, 4), dtype=np.float32), rng(done).normal(size=10))
        seen += [done] * (len(calls) - before)
    gaps = np.diff(seen)
    assert seen[0] == FEWEST and max(calls) == 1500 and (gaps <= 760).all() and gaps[-1] == 750 and len(seen) < 20


def test_no_difference_has_the_target_that_lies_between_better_and_worse():
    ensemble = Ensemble(0.5, 3, rng())
    ensemble.learn(rng().random((80, 4), dtype=np.float32), np.r_[np.full(20, -1.0), np.full(60, 2.0)])
    scores = targets(np.r_[np.full(20, -1.0), np.full(60, 2.0), 0.0])
    assert scores[0] < ensemble.zero < scores[20] and ensemble.zero == pytest.approx(float(scores[-1]))


@pytest.mark.parametrize("mean, spread", [(0.0, 1.0), (0.7, 0.3), (-2.0, 0.1), (3.0, 0.5)])
def test_expected_improvement_is_its_integral(mean, spread):
    whole, _ = quad(lambda y: max(0.4 - y, 0.0) * norm.pdf(y, mean, spread), mean - 12 * spread, mean + 12 * spread,
                    points=[0.4] if abs(0.4 - mean) < 12 * spread else None)  # fmt: skip
    assert expected_improvement(np.array([mean]), np.array([spread]), 0.4)[0] == pytest.approx(whole, abs=1e-7)


def test_acquisitions_by_hand():
    predictions = np.array([[1.0, 4.0, -1.0], [3.0, 4.0, -1.0]])
    by_hand = {"mean": [-2, -4, 1], "ucb": [-2 + 2 * math.sqrt(2), -4 + 2, 1 + 2]}
    for name, expected in by_hand.items():
        np.testing.assert_allclose(promise(name, predictions, 1.0, 0.0, 2.0, rng()), expected)
    draws = np.stack([promise("thompson", predictions, 1.0, 0.0, 2.0, rng(i)) for i in range(4000)])
    np.testing.assert_allclose(draws.mean(axis=0), [-2, -4, 1], atol=0.1)
    np.testing.assert_allclose(draws.std(axis=0), [math.sqrt(2), 1, 1], atol=0.05)


def test_effects_of_single_changes_are_known_exactly_and_add_up():
    generator, space = rng(), Space([4] * 30)
    table = generator.normal(size=(30, 4))

    def cost(rows):
        return table[np.arange(30), rows].sum(axis=1)

    base, effects = space.sample(1, generator)[0], Effects(space)
    singles = np.repeat(base[None], 120, axis=0)
    singles[np.arange(120), np.arange(120) // 4] = np.arange(120) % 4
    singles = singles[(singles != base).any(axis=1)]
    effects.learn(Changes(base, singles), cost(singles) - cost(base[None]))
    others = space.sample(50, generator)
    changes = Changes(base, others)
    np.testing.assert_allclose(changes.total(effects.of(changes)), cost(others) - cost(base[None]), atol=1e-4)


def test_effects_are_recovered_from_changes_of_many():
    generator, space = rng(), Space([2] * 40)
    weights, effects, base = generator.normal(size=40), Effects(space), np.zeros(40, np.int8)
    for _ in range(60):
        rows = (generator.random((20, 40)) < 0.1).astype(np.int8)
        rows = rows[rows.any(axis=1)]
        effects.learn(Changes(base, rows), rows @ weights)
    single = Changes(base, np.eye(40, dtype=np.int8))
    assert np.corrcoef(effects.of(single), weights)[0, 1] > 0.98


def test_features_of_a_change_by_hand():
    task = Task("t", Space([2] * 300), np.zeros(300, np.int8), "s")
    features, base = Features(task), np.zeros(300, np.int8)
    child = base[None].copy()
    child[0, [10, 13]] = 1
    one = features.of(base, child)[0]
    np.testing.assert_allclose(one[:7], [math.log(3), math.log(4), 11.5 / 300, math.log(2), 1, 0, 0], rtol=1e-5)
    single = base[None].copy()
    single[0, 10] = 1
    features.learn(base, single, np.array([-3.0]), single[0])
    again = features.of(base, child)[0]
    np.testing.assert_allclose(again[7:12], [-3, 0, -3, 0.5, math.log(2) / 2], rtol=1e-5)
    assert again[14] == pytest.approx(0.1)  # half of the changes succeeded, a fifth of that is believed


def test_features_of_narrow_spaces_hold_the_candidate():
    space = product(choice("c", "abc"), scale("s", range(5)), sequence("q", 3, "xy"))
    features = Features(Task("t", space, np.zeros(5, np.int8), "s"))
    row = np.array([[2, 3, 1, 0, 1]], np.int8)
    mine = features.of(np.zeros(5, np.int8), row)[0, 17:]
    np.testing.assert_allclose(mine, [0, 0, 1, 0, 1, 1, 0, 0, 1, 0.75, 1, 2])


def test_windows_stay_together_and_singles_take_turns():
    proposals, base = (
        Proposals(Task("t", Space([2] * 1000), np.zeros(1000, np.int8), "s"), rng()),
        np.zeros(1000, np.int8),
    )
    singles = proposals.singles(base, 1000)
    assert (singles.sum(axis=0) == 1).all() and (singles.sum(axis=1) == 1).all()
    windows = proposals.windows(base, 500)
    spans = [np.ptp(np.flatnonzero(row)) for row in windows if 100 < row.argmax() < 900]
    assert 1 <= np.median(spans) <= 6 and windows.sum(axis=1).max() == 3
    grown = proposals.grown(base, singles[:10], 200)  # a change may be changed back, to nothing
    assert {1, 2} <= set(grown.sum(axis=1).tolist()) <= {0, 1, 2}


def test_structure_says_who_is_changed_together_and_adds_features():
    space = Space([2] * 40)
    partner = (np.arange(40) + 20) % 40
    structure = Structure(np.arange(41), partner, rng().random((40, 3), dtype=np.float32), ("a", "b", "c"))
    task, base = Task("t", space, np.zeros(40, np.int8), "s", structure), np.zeros(40, np.int8)
    for row in Proposals(task, rng()).windows(base, 200):
        changed = np.flatnonzero(row)
        assert len(changed) == 1 or (len(changed) == 2 and changed[1] - changed[0] == 20)
    features = StructuredFeatures(task, structure)
    child = base[None].copy()
    child[0, [3, 23, 7]] = 1
    features.learn(base, np.eye(40, dtype=np.int8), np.arange(40.0), base)
    plain, mine = Features(task).of(base, child), features.of(base, child)
    count, products = mine[0, 17 + 4], mine[0, 17 + 5]
    assert (count, products) == (1, 3 * 23) and mine.shape[1] == plain.shape[1] + 6


def test_the_state_merges_what_was_accepted_and_takes_back_what_fails():
    task = Task("t", Space([2] * 6), np.zeros(6, np.int8), "s")
    state = State(task, 100, 0.0, 300.0, rng())
    state.tell(np.zeros((1, 6), np.int8), np.array([5.0]))
    children = np.eye(6, dtype=np.int8)
    state.tell(children, np.array([3.0, 6.0, 4.0, 9.0, np.inf, 4.5]))
    assert state.pending and state.row.tolist() == [1, 0, 1, 0, 0, 1] and state.cost == 3.0
    state.tell(state.row[None], np.array([3.5]))  # together they are worse than the best of them alone
    assert not state.pending and state.row.tolist() == [1, 0, 0, 0, 0, 0] and state.cost == 3.0


def test_arms_that_improve_get_more_and_none_gets_nothing():
    arms = Arms(("good", "bad"), rng())
    for _ in range(50):
        arms.credit(["good"] * 5 + ["bad"] * 5, np.array([-1.0] * 3 + [1.0] * 7))
    assert arms.shares["good"] > 0.8 and arms.shares["bad"] >= 0.1 and sum(arms.shares.values()) == pytest.approx(1)
    arms.progress = 0.5
    assert arms.shares["bad"] >= 0.3 and sum(arms.shares.values()) == pytest.approx(1)
    assert sum(arms.draw(40).values()) == 40 and arms.draw(40, without=("good",)) == {"bad": 40}


def test_the_search_on_the_model_finds_what_the_model_promises():
    space, cost = separable(40, 0)
    base = space.sample(1, rng())[0]
    proposals = Proposals(Task("t", space, base, "s"), rng())
    visited = maximise(lambda rows: -cost(rows), base, proposals, 100, 20)
    costs = cost(visited)
    assert (np.diff(costs) >= 0).all() and costs[0] < 0.1 * cost(base[None])[0]
    assert (visited != base).any(axis=1).all()


def test_the_archive_claims_each_candidate_once_and_then_nothing():
    space = Space([3, 4, 2])
    archive = Archive(space, rng())
    claimed = archive.claim(space.sample(50, rng()), 5)
    rest = [archive.others(10) for _ in range(8)]
    assert len(claimed) == 5 and sum(map(len, rest)) == 19 and unique(np.concatenate([claimed, *rest]))
    assert rest[-1].shape == (0, 3) and rest[-1].dtype == space.dtype


def test_scores_of_all_four_kinds_are_told():
    space, cost = mixed(10, 0)
    searcher = ModelBasedOptimization(Task("t", space, space.sample(1, rng())[0], "s"), 200, rng(), ModelOptions())
    assert searcher.diagnostics() == {}
    for _ in range(5):
        rows = searcher.ask(20)
        searcher.tell(rows, cost(rows))
    assert set(searcher.diagnostics()) == {f"score/{name}" for name in ("ridge", "forest", "boosting", "network")}
    assert all(-5 < value <= 1 for value in searcher.diagnostics().values())


@pytest.mark.parametrize("name", NAMES)
def test_every_acquisition_searches(name):
    space, cost = separable(40, 3)
    rows, values = search(space, cost, 300, acquisition=name)
    assert unique(rows) and values.min() < 0.1 * values[0]


def test_regressors_take_constant_columns_and_few_rows():
    x, y = np.ones((40, 5), np.float32), rng().normal(size=40).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for regressor in candidates(0, 40).values():
            assert math.isfinite(score(regressor, x, y, 3, 0))


def test_a_planted_sequence_is_found():
    space = product(sequence("passes", 12, "abcdefgh"))
    goal = space.sample(1, rng(5))[0]
    _, values = search(space, lambda rows: 1 + (rows != goal).sum(axis=1), 600)
    assert values.min() == 1


def test_nine_of_ten_candidates_may_fail():
    space, cost = separable(40, 1)
    masks = rng(1).integers(0, 2, (4, 40))
    default = space.sample(1, rng(9))[0]

    def failing(rows):
        return np.where((((rows != default) @ masks.T) % 2).any(axis=1), np.inf, 1 + cost(rows))

    _, values = search(space, failing, 600)
    assert np.isinf(values).mean() > 0.5 and values.min() < values[0]


def test_structure_is_used_only_by_its_own_strategy():
    assert not ModelBasedOptimization.uses_structure and StructuredModelBasedOptimization.uses_structure


@pytest.mark.parametrize("batch", [1, 64])
def test_a_small_space_is_covered_completely(batch):
    space, cost = separable(7, 1)
    rows, _ = search(space, cost, 1000, batch, generations=2)
    assert len(rows) == 128 and unique(rows)


def test_the_default_comes_first():
    space, cost = separable(60, 0)
    rows, _ = search(space, cost, 100)
    assert (rows[0] == space.sample(1, rng(9))[0]).all()


@pytest.mark.parametrize("make, budget", [(lambda: separable(60, 0), 500), (lambda: mixed(12, 0), 500)])
def test_beats_random_search(make, budget):
    space, cost = make()
    rows, values = search(space, cost, budget)
    _, random = search(space, cost, budget, strategy=RandomSearch)
    _, longer = search(space, cost, 50 * budget, batch=5000, strategy=RandomSearch)
    assert unique(rows)
    assert values.min() < longer.min() < random.min()


def test_beats_random_search_on_interactions():
    space, cost = ising(60, 0)
    _, values = search(space, cost, 600)
    _, random = search(space, cost, 600, strategy=RandomSearch)
    assert values.min() < 1.4 * random.min() < 0


def test_the_same_seed_gives_the_same_run_and_another_does_not():
    space, cost = ising(30, 0)
    (a, _), (b, _), (c, _) = (search(space, cost, 150, seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)


COSTS = {
    "all equal": lambda rows: np.full(len(rows), 3.5),
    "all failing": lambda rows: np.full(len(rows), np.inf),
    "half failing": lambda rows: np.where(rows[:, 0] == 0, np.inf, 1.0 + rows.sum(axis=1)),
    "one alone does not fail": lambda rows: np.where(rows.any(axis=1), np.inf, 1.0),
    "huge": lambda rows: 1e300 * (1.0 + rows.sum(axis=1)),
    "tiny": lambda rows: 1e-300 * (1.0 + rows.sum(axis=1)),
    "negative": lambda rows: -1.0 * rows.sum(axis=1),
}
SPACES = {
    "one binary parameter": Space([2]),
    "one parameter of 100 values": Space([100], [1]),
    "one candidate": Space([1, 1]),
    "parameters with a single value": Space([1, 3, 1, 4, 2, 3, 5]),
    "binary": Space([2] * 12),
}


@pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS)
@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_odd_costs_and_spaces_break_nothing_and_say_nothing(space, cost):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows, _ = search(space, cost, 90, 20)
    assert unique(rows) and len(rows) == min(90, space.cardinality)


def test_a_budget_smaller_than_a_batch():
    space, cost = separable(20, 0)
    for budget in (1, 3, 30):
        rows, _ = search(space, cost, budget, batch=100)
        assert len(rows) == budget and unique(rows)


STRUCTURED = {
    "tied choice and permutation": product(
        choice("mode", ["a", "b", "c"]),
        permutation("order", list("pqrs")),
        scale("tile", [1, 2, 4, 8]),
        constraints=[Constraint((0, 1), lambda rows: (rows[:, 0] != 1) | (rows[:, 1] != 0))],
    ),
    "free permutation": product(permutation("order", list("pqrstuvw")), scale("tile", [1, 2, 4])),
    "sequence": product(sequence("pass", 6, list("pqrst")), choice("fuse", [False, True])),
    "tied scales": product(
        *(scale(f"tile{i}", list(range(10))) for i in range(3)),
        choice("fuse", [False, True]),
        constraints=[Constraint((0, 1, 2), lambda rows: rows.sum(axis=1) <= 12)],
    ),
}


@pytest.mark.parametrize("space", STRUCTURED.values(), ids=STRUCTURED)
def test_constraints_and_sequences_are_kept(space):
    goal = space.sample(1, rng(5))[0]
    rows, values = search(space, lambda rows: (rows != goal).sum(axis=1), 250)  # `search` asserts that rows are allowed
    assert unique(rows) and len(rows) == min(250, space.cardinality)
    assert values.min() <= 2


def test_a_wide_space_is_searched_within_memory():
    space = Space([2] * 20_000)
    rows, values = search(space, lambda rows: rows[:, :50].sum(axis=1), 80, batch=40)
    assert rows.shape == (80, 20_000) and math.isfinite(values.min())


def test_importing_the_strategy_imports_no_heavy_library():
    code = "import sys, bbo_strategies.mbo; assert not {'sklearn', 'scipy', 'pandas'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
