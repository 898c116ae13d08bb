import itertools
import math
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold

from bbo_strategies.mbo import ModelBasedOptimization, ModelOptions
from bbo_strategies.mbo.acquisition import children, maximise
from bbo_strategies.mbo.archive import Archive
from bbo_strategies.mbo.encoding import Encoding
from bbo_strategies.mbo.ensemble import Ensemble
from bbo_strategies.mbo.regressors import ridges, score, select
from bbo_strategies.mbo.ridge import NormalEquations
from bbo_strategies.mbo.targets import targets
from bbo_strategies.random_search import RandomSearch
from bbo_suite import Constraint, Moves, NoOptions, Space, Task, choice, permutation, product, scale, sequence


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


def test_encoding_of_a_row_written_by_hand():
    space = product(
        choice("layout", ["a", "b", "c"]),
        choice("fuse", [False, True]),
        choice("fixed", ["only"]),
        scale("tile", [8, 16, 32, 64, 128]),
        scale("unroll", [1, 2]),
        sequence("pass", 2, ["p", "q", "r"]),
    )
    encoding = Encoding(space, rng())
    rows = np.array([[2, 1, 0, 3, 0, 0, 2], [0, 0, 0, 4, 1, 1, 1]], space.dtype)
    layout, pass0, pass1 = [[0, 0, 1], [1, 0, 0]], [[1, 0, 0], [0, 1, 0]], [[0, 0, 1], [0, 1, 0]]
    expected = [
        [*layout[i], fuse, unroll, *pass0[i], *pass1[i], tile, tile**2]
        for i, (fuse, unroll, tile) in enumerate([(1, 0, 0.75), (0, 1, 1.0)])
    ]
    np.testing.assert_array_equal(encoding.encode(rows), np.array(expected, np.float32))
    assert encoding.width == 13


def test_a_wide_encoding_is_folded_and_still_tells_candidates_apart():
    space = Space([2] * 400)
    encoding = Encoding(space, rng(), widest=64)
    rows = space.sample(100, rng(1))
    features = encoding.encode(rows)
    assert features.shape == (100, 64) and unique(features)
    near = ((features[0] - encoding.encode(Moves(space).mutate(rows[:1], np.array([1]), rng(2)))) != 0).sum()
    assert near == 1  # one change of a binary parameter is one change of one feature


def test_folding_in_chunks_is_folding_at_once():
    space = Space([3] * 300)
    encoding = Encoding(space, rng(), widest=32)
    rows = space.sample(50, rng(1))
    whole = encoding.encode(rows)
    encoding._step = 7
    np.testing.assert_array_equal(encoding.encode(rows), whole)


def test_targets_keep_the_order_and_put_failures_last():
    values = np.array([3.0, np.inf, 1e300, -5.0, 1e-300, np.inf, np.nan])
    result = targets(values)
    assert np.isfinite(result).all()
    assert result[3] < result[4] < result[0] < result[2] < result[1] == result[5] == result[6]
    assert abs(result.mean()) < 1e-6 and abs(result.std() - 1) < 1e-6


@pytest.mark.parametrize("value", [0.0, 7.0, np.inf])
def test_equal_values_give_no_target(value):
    np.testing.assert_array_equal(targets(np.full(20, value)), np.zeros(20))


def test_ridge_from_batches_is_scikit_learns_ridge_on_all_rows():
    generator = rng()
    features = generator.random((300, 40), dtype=np.float32)
    y = generator.normal(size=300).astype(np.float32) + 3
    equations = NormalEquations(40)
    for start in (0, 7, 100, 250):
        equations.add(features[start : {0: 7, 7: 100, 100: 250, 250: 300}[start]])
    line, theirs = equations.solve(features, y, 10.0), Ridge(10.0).fit(features.astype(float), y)
    np.testing.assert_allclose(line.weights, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(line.predict(features), theirs.predict(features), atol=1e-4)


def test_score_is_r_squared_on_the_held_out_folds():
    generator = rng()
    x, y = generator.normal(size=(90, 5)), generator.normal(size=90)
    y += x[:, 0]
    expected = []
    for train, test in KFold(3, shuffle=True, random_state=4).split(x):
        expected.append(r2_score(y[test], Ridge(10.0, solver="cholesky").fit(x[train], y[train]).predict(x[test])))
    assert score(ridges()[10.0], x, y, folds=3, seed=4) == pytest.approx(np.mean(expected))


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
def test_the_ensemble_holds_the_selected_regressors(monkeypatch, threshold, chosen):
    scores = {1.0: 0.7, 2.0: 0.8, 3.0: 0.1, 4.0: -1.0}
    monkeypatch.setattr(
        "bbo_strategies.mbo.regressors.nonlinear", lambda *_: {"good": Stub(1.0), "better": Stub(2.0), "bad": Stub(3.0)}
    )
    monkeypatch.setattr("bbo_strategies.mbo.regressors.ridges", lambda: {1.0: Stub(4.0)})
    monkeypatch.setattr("bbo_strategies.mbo.regressors.score", lambda regressor, *_: scores[regressor.value])
    ensemble = Ensemble(3, threshold, 3, rng())
    assert ensemble.update(np.zeros((20, 3), np.float32), np.arange(20, dtype=np.float32))
    assert set(ensemble.members) == chosen
    assert sorted(ensemble.predict(np.zeros((4, 3), np.float32))[:, 0]) == sorted(
        {"good": 1.0, "better": 2.0}[name] for name in chosen
    )


def test_models_are_selected_again_only_when_the_data_grew_by_30_percent(monkeypatch):
    calls = []
    monkeypatch.setattr("bbo_strategies.mbo.regressors.nonlinear", lambda seed, rows: calls.append(rows) or {})
    features, y = rng().random((200, 4), dtype=np.float32), rng(1).normal(size=200).astype(np.float32)
    ensemble = Ensemble(4, 0.5, 3, rng())
    for rows in range(9, 201):
        ensemble.update(features[:rows], y[:rows])
    assert calls[0] == 10 and all(later >= 1.3 * earlier for earlier, later in itertools.pairwise(calls))
    assert len(calls) == 12


def test_the_training_subset_has_the_best_third_and_is_bounded():
    ensemble = Ensemble(4096, 0.5, 3, rng())
    y = rng(1).permutation(5000).astype(np.float32)
    rows = ensemble._subset(y)
    assert len(rows) == len(set(rows.tolist())) == 500
    assert set(range(500 // 3)) <= set(y[rows].astype(int).tolist())
    assert y[rows].mean() > 1000


def test_the_search_on_the_model_finds_what_the_model_promises():
    space, cost = separable(40, 0)
    moves, generator = Moves(space), rng()
    visited = maximise(lambda rows: -cost(rows), space.sample(50, generator), 20, 100, moves, generator)
    assert len(visited) == 50 + 20 * 100
    costs = cost(visited)
    assert (np.diff(costs) >= 0).all() and costs[0] < 0.1 * costs[-1]


def test_children_come_rather_from_the_best_parents():
    parents = np.repeat(np.arange(100, dtype=np.int16)[:, None], 4, axis=1)
    brood = children(parents, 2000, Moves(Space([1000] * 4)), rng())
    assert np.median(brood[brood < 100]) < 40


def test_the_archive_claims_each_candidate_once_and_then_nothing():
    space = Space([3, 4, 2])
    archive = Archive(space, Encoding(space, rng()), 10, rng())
    batches = [archive.claim(space.sample(5, rng(i)), 5) for i in range(6)]
    assert [len(b) for b in batches] == [5, 5, 5, 5, 4, 0]
    assert unique(np.concatenate(batches))
    assert batches[-1].shape == (0, 3) and batches[-1].dtype == space.dtype


@pytest.mark.parametrize("batch", [1, 64])
def test_a_small_space_is_covered_completely(batch):
    space, cost = separable(7, 1)
    rows, _ = search(space, cost, 1000, batch, initial=20, generations=3)
    assert len(rows) == 128 and unique(rows)


def test_the_default_comes_first_and_random_candidates_follow():
    space, cost = separable(60, 0)
    rows, _ = search(space, cost, 400, 100)
    default = space.sample(1, rng(9))[0]
    distance = (rows[:100] != default).sum(axis=1)
    assert distance[0] == 0
    assert (distance[1:] <= 8).sum() >= 40 and (distance > 18).sum() >= 40


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


def test_batches_of_one_do_not_fit_for_each_candidate(monkeypatch):
    fits = []
    solve = NormalEquations.solve
    monkeypatch.setattr(NormalEquations, "solve", lambda self, *args: fits.append(1) or solve(self, *args))
    space, cost = separable(20, 0)
    rows, values = search(space, cost, 200, batch=1)
    assert len(rows) == 200 and unique(rows) and values.min() < 1.0
    assert 1 <= len(fits) < 25


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
        rows, _ = search(space, cost, 40, 20, initial=20, generations=2)
    assert unique(rows) and len(rows) == min(40, space.cardinality)


def test_failures_are_avoided():
    space, cost = separable(30, 0)
    _, values = search(space, lambda rows: np.where(rows[:, 0] == rows[:, 1], np.inf, cost(rows)), 400)
    assert np.isinf(values[-100:]).mean() < 0.2 < np.isinf(values[:100]).mean()


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
    rows, values = search(space, lambda rows: rows[:, :50].sum(axis=1), 80, batch=40, initial=40, generations=2)
    assert rows.shape == (80, 20_000) and math.isfinite(values.min())


def test_importing_the_strategy_imports_no_heavy_library():
    code = "import sys, bbo_strategies.mbo; assert not {'sklearn', 'scipy', 'pandas'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
