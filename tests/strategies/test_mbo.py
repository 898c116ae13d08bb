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
from threadpoolctl import threadpool_info, threadpool_limits

from bbo_strategies.archive import Archive
from bbo_strategies.mbo import ModelBasedOptimization, ModelOptions
from bbo_strategies.mbo.acquisition import NAMES, acquisition, maximise
from bbo_strategies.mbo.arms import Arms
from bbo_strategies.mbo.effects import Effects, SparseChanges
from bbo_strategies.mbo.ensemble import FEWEST, Ensemble, targets
from bbo_strategies.mbo.features import Features
from bbo_strategies.mbo.hits import Hits
from bbo_strategies.mbo.neighbours import ModelNeighbours, _disjoint
from bbo_strategies.mbo.regressors import candidates, score, select
from bbo_strategies.random_search import RandomSearch
from bbo_suite import Constraint, Moves, Space, Task, choice, permutation, product, scale, sequence
from bbo_suite.testing import play, start


def rng(seed=0):
    return np.random.default_rng(seed)


def search(space, cost, budget, batch=50, seed=0, strategy=ModelBasedOptimization, **options):
    """Return all proposed rows and their values."""
    searcher = start(strategy, space, budget, seed, default=space.sample(1, rng(9))[0], **options)
    rows, values = zip(*play(searcher, cost, batch), strict=True)
    rows = np.concatenate(rows)
    assert space.allowed(rows).all()
    return rows, np.concatenate(values)


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


def test_targets_are_gains_in_their_order_on_a_logarithmic_scale():
    scores = targets(np.array([5.0, -1.0, 0.0, -10.0, 0.3]))
    assert scores[0] == scores[2] == scores[4] > scores[1] > scores[3]
    gains = scores[0] - scores[[1, 3]]
    assert gains[1] / gains[0] == pytest.approx(math.log(11) / math.log(2), rel=1e-5)
    assert abs(scores.mean()) < 1e-6 and scores.std() == pytest.approx(1)
    np.testing.assert_array_equal(targets(np.full(20, 7.0)), np.zeros(20))


def test_acquisitions_by_hand():
    predictions = np.array([[1.0, 4.0, -1.0], [3.0, 4.0, -1.0]])
    by_hand = {"mean": [-2, -4, 1], "ucb": [-2 + 2 * math.sqrt(2), -4 + 2, 1 + 2]}
    for name, expected in by_hand.items():
        np.testing.assert_allclose(acquisition(name, predictions, 1.0, 0.5, 2.0, rng()), expected)
    draws = np.stack([acquisition("thompson", predictions, 1.0, 0.5, 2.0, rng(i)) for i in range(4000)])
    np.testing.assert_allclose(draws.mean(axis=0), [-2, -4, 1], atol=0.1)
    np.testing.assert_allclose(draws.std(axis=0), [math.sqrt(2), 1, 1], atol=0.05)


def test_expected_improvement_against_an_integral():
    predictions, none = rng().normal(size=(4, 6)), 0.3
    found = acquisition("ei", predictions, 0.7, none, 1.0, rng())
    for own, value in zip(predictions.T, found, strict=True):
        target = norm(own.mean(), np.sqrt(own.var() + 0.7**2))
        expected, _ = quad(lambda y, target=target: (none - y) * target.pdf(y), none - 20, none)
        assert value == pytest.approx(expected, rel=1e-6)


def test_features_of_a_change_by_hand():
    task = Task("t", Space([2] * 300), np.zeros(300, np.int8), "s")
    features, base = Features(task), np.zeros(300, np.int8)
    child = base[None].copy()
    child[0, [10, 13]] = 1
    one = features.of(base, child)[0]
    by_hand = [math.log(3), math.log(4), 0.5, 1, 4, -2, 11.5 / 300, math.log(2), 1, 0, 0]
    np.testing.assert_allclose(one[:11], by_hand, rtol=1e-5)
    single = base[None].copy()
    single[0, 10] = 1
    features.learn(base, single, np.array([-3.0]))
    again = features.of(base, child)[0]
    np.testing.assert_allclose(again[11:16], [-3, 0, -3, 0.5, math.log(2) / 2], rtol=1e-5)
    assert again[17] == pytest.approx(0.1)  # half succeeded, a fifth of that is believed


def test_a_change_that_ends_a_run_of_equal_values_is_rougher_than_one_that_joins_it():
    features, base = Features(Task("t", Space([2] * 200), np.zeros(200, np.int8), "s")), np.zeros(200, np.int8)
    base[50:60] = 1
    inside, after, whole = (base.copy() for _ in range(3))
    inside[55], after[60], whole[50:60] = 0, 1, 0
    assert features.of(base, np.stack([inside, after, whole]))[:, 4].tolist() == [2, 0, -2]


def test_arms_that_gain_get_larger_shares_and_no_share_is_zero():
    arms = Arms(("many small", "few large"), rng())
    assert arms.shares == {"many small": 0.5, "few large": 0.5}
    for _ in range(50):
        arms.credit(["many small"] * 5 + ["few large"] * 5, np.r_[np.full(5, 0.01), np.zeros(4), 3.0])
    assert arms.shares["few large"] > 0.8 and arms.shares["many small"] >= 0.1
    arms.progress = 0.5
    assert arms.shares["many small"] >= 0.3 and sum(arms.shares.values()) == pytest.approx(1)
    assert sum(arms.draw(40).values()) == 40 and arms.draw(40, without=("few large",)) == {"many small": 40}


def test_the_search_on_the_model_finds_the_maximum_of_the_model():
    space, cost = separable(40, 0)
    base = space.sample(1, rng())[0]

    def change(rows):
        return Moves(space).mutate(rows, np.ones(len(rows), np.int64), rng(int(rows.sum())))

    visited = maximise(lambda rows: -cost(rows), base, change, 100, 20, rng())
    costs = cost(visited)
    assert (np.diff(costs) >= 0).all() and costs[0] < 0.1 * cost(base[None])[0]
    assert (visited != base).any(axis=1).all()


def test_the_archive_claims_each_candidate_once_and_then_nothing():
    space = Space([3, 4, 2])
    archive, rows = Archive(space, rng()), space.sample(50, rng())
    claimed = rows[archive.claim(rows, 5)]
    rest = [archive.others(10) for _ in range(8)]
    assert len(claimed) == 5 and sum(map(len, rest)) == 19 and unique(np.concatenate([claimed, *rest]))
    assert rest[-1].shape == (0, 3) and rest[-1].dtype == space.dtype


def test_it_learns_from_others_candidates_near_its_state_and_proposes_none_of_them():
    space, cost = separable(40, 0)
    start = np.zeros(40, space.dtype)
    searcher = ModelBasedOptimization(Task("t", space, start, "s"), 200, rng(), ModelOptions())
    searcher.tell(searcher.ask(1), cost(start[None]))
    singles = start ^ np.eye(40, dtype=space.dtype)
    searcher.observe(singles, cost(singles))
    assert searcher.diagnostics() and searcher._annealing.cost == cost(singles).min()
    mine = np.concatenate([searcher.ask(20) for _ in range(5)])
    assert unique(np.concatenate([singles, mine]))


def test_labels_from_others_candidates_have_the_unit_of_later_ones():
    space, cost = separable(40, 0)
    start = np.zeros(40, space.dtype)
    searcher = ModelBasedOptimization(Task("t", space, start, "s"), 200, rng(), ModelOptions())
    searcher.tell(searcher.ask(1), 1e-6 * cost(start[None]))
    singles = start ^ np.eye(40, dtype=space.dtype)
    searcher.observe(singles, 1e-6 * cost(singles))
    assert np.median(np.abs(searcher._neighbours._ensemble._values)) == pytest.approx(1)


def test_only_candidates_that_are_proposed_count_as_proposed():
    task = Task("t", Space([2] * 30), np.zeros(30, np.int8), "s")
    neighbours = ModelNeighbours(task, ModelOptions(), rng())
    neighbours._ensemble.members, neighbours._ensemble.scores = {"one": Stub(0.0)}, {"one": 0.0}
    neighbours._failures.chances = lambda base, children: 1.0 - children[:, 0]
    neighbours._random._chances = neighbours._failures.chances
    chosen = neighbours._chosen(task.default, 3)
    drawn = neighbours._random.draw(task.default, 20)
    proposed = np.concatenate([chosen, drawn])
    assert len(chosen) == 3 and unique(proposed) and not proposed[:, 0].any()
    assert len(neighbours._random._archive._proposed) == len(proposed)


def test_an_arm_with_a_small_share_gets_its_turn_in_batches_of_one():
    arms = Arms(("good", "bad"), rng())
    for _ in range(50):
        arms.credit(["good", "bad"], np.array([1.0, 0.0]))
    makers = [name for _ in range(300) for name in arms.draw(1)]
    assert arms.shares["bad"] < 0.4 and makers.count("bad") / 300 == pytest.approx(arms.shares["bad"], abs=0.1)


def test_without_heat_the_state_is_the_best_candidate_so_far():
    space, cost = ising(60, 0)
    searcher = start(ModelBasedOptimization, space, 400, heat=0.0)
    best = np.inf
    for _, values in play(searcher, lambda rows: 1000 + cost(rows), 20):
        assert searcher._annealing.cost == best  # of the batches before
        best = min(best, values.min())


def test_changes_that_the_models_choose_for_a_batch_can_be_merged():
    changed = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 0, 1, 0]], bool)
    assert _disjoint(changed) == [0, 2, 4]


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
    ensemble.learn(np.zeros((60, 3), np.float32), -np.arange(60.0))
    assert set(ensemble.members) == chosen
    assert ensemble.scores == {"good": 0.7, "better": 0.8, "bad": -1.0}
    assert sorted(ensemble.predict(np.zeros((4, 3)))[:, 0]) == sorted(stubs[name].value for name in chosen)
    assert ensemble.noise() == pytest.approx(math.sqrt(np.mean([1 - scores[stubs[name].value] for name in chosen])))


class Watcher(Stub):
    """Notes how many threads its libraries would take."""

    def __init__(self):
        super().__init__(0.0)
        self.seen = []

    def fit(self, features, targets):
        self.seen += [pool["num_threads"] for pool in threadpool_info()]
        return self

    def predict(self, features):
        self.fit(features, None)
        return super().predict(features)


def test_models_use_one_thread(monkeypatch):
    watcher = Watcher()
    monkeypatch.setattr("bbo_strategies.mbo.regressors.candidates", lambda *_: {"one": watcher})
    with threadpool_limits(2):
        ensemble = Ensemble(0.5, 3, rng())
        ensemble.learn(rng().random((60, 4), dtype=np.float32), rng().normal(size=60))
        fitted = len(watcher.seen)
        ensemble.predict(np.zeros((4, 4), np.float32))
        assert 2 in [pool["num_threads"] for pool in threadpool_info()]
    assert 0 < fitted < len(watcher.seen) and set(watcher.seen) == {1}


def test_models_are_fitted_at_growing_intervals_on_bounded_data(monkeypatch):
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


def test_effects_of_single_changes_are_known_exactly_and_add_up():
    generator, space = rng(), Space([4] * 30)
    table = generator.normal(size=(30, 4))

    def cost(rows):
        return table[np.arange(30), rows].sum(axis=1)

    base, effects = space.sample(1, generator)[0], Effects(space)
    singles = np.repeat(base[None], 120, axis=0)
    singles[np.arange(120), np.arange(120) // 4] = np.arange(120) % 4
    singles = singles[(singles != base).any(axis=1)]
    effects.learn(SparseChanges(base, singles), cost(singles) - cost(base[None]))
    others = space.sample(50, generator)
    changes = SparseChanges(base, others)
    np.testing.assert_allclose(changes.total(effects.of(changes)), cost(others) - cost(base[None]), atol=1e-4)


def test_effects_are_recovered_from_changes_of_many_parameters():
    generator, space = rng(), Space([2] * 40)
    weights, effects, base = generator.normal(size=40), Effects(space), np.zeros(40, np.int8)
    for _ in range(60):
        rows = (generator.random((20, 40)) < 0.1).astype(np.int8)
        rows = rows[rows.any(axis=1)]
        effects.learn(SparseChanges(base, rows), rows @ weights)
    single = SparseChanges(base, np.eye(40, dtype=np.int8))
    assert np.corrcoef(effects.of(single), weights)[0, 1] > 0.98


def test_features_of_narrow_spaces_hold_the_candidate():
    space = product(choice("c", "abc"), scale("s", range(5)), sequence("q", 3, "xy"))
    features = Features(Task("t", space, np.zeros(5, np.int8), "s"))
    row = np.array([[2, 3, 1, 0, 1]], np.int8)
    mine = features.of(np.zeros(5, np.int8), row)[0, 19:]
    np.testing.assert_allclose(mine, [0, 0, 1, 0, 1, 1, 0, 0, 1, 0.75, 1, 2])


def test_diagnostics_have_the_scores_of_all_four_regressors():
    space, cost = mixed(10, 0)
    searcher = ModelBasedOptimization(Task("t", space, space.sample(1, rng())[0], "s"), 200, rng(), ModelOptions())
    assert searcher.diagnostics() == {}
    for _ in range(5):
        rows = searcher.ask(20)
        searcher.tell(rows, cost(rows))
    scores = {name: value for name, value in searcher.diagnostics().items() if name != "hits/models"}
    assert set(scores) == {f"score/{name}" for name in ("ridge", "forest", "boosting", "network")}
    assert all(-math.inf < value <= 1 for value in scores.values())


@pytest.mark.parametrize("name", NAMES)
def test_every_acquisition_function_finds_improvements(name):
    space, cost = separable(40, 3)
    rows, values = search(space, cost, 200, acquisition=name)
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
    _, values = search(space, lambda rows: 1 + (rows != goal).sum(axis=1), 400)
    assert values.min() == 1


def test_nine_of_ten_candidates_may_fail():
    space, cost = separable(40, 1)
    masks = rng(1).integers(0, 2, (4, 40))
    default = space.sample(1, rng(9))[0]

    def failing(rows):
        return np.where((((rows != default) @ masks.T) % 2).any(axis=1), np.inf, 1 + cost(rows))

    _, values = search(space, failing, 300)
    assert np.isinf(values).mean() > 0.5 and values.min() < values[0]


@pytest.mark.parametrize("batch", [1, 64])
def test_a_small_space_is_covered_completely(batch):
    space, cost = separable(7, 1)
    rows, _ = search(space, cost, 1000, batch, generations=2)
    assert len(rows) == 128 and unique(rows)


def test_the_default_comes_first():
    space, cost = separable(60, 0)
    rows, _ = search(space, cost, 100)
    assert (rows[0] == space.sample(1, rng(9))[0]).all()


@pytest.mark.parametrize("make, budget", [(lambda: separable(60, 0), 300), (lambda: mixed(12, 0), 300)])
def test_beats_random_search(make, budget):
    space, cost = make()
    rows, values = search(space, cost, budget)
    _, random = search(space, cost, budget, strategy=RandomSearch)
    _, longer = search(space, cost, 50 * budget, batch=5000, strategy=RandomSearch)
    assert unique(rows)
    assert values.min() < longer.min() < random.min()


def test_beats_random_search_on_interactions():
    space, cost = ising(60, 0)
    _, values = search(space, cost, 400)
    _, random = search(space, cost, 400, strategy=RandomSearch)
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
def test_odd_costs_and_spaces_cause_no_error_and_no_warning(space, cost):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows, _ = search(space, cost, 90, 20)
    assert unique(rows) and len(rows) == min(90, space.cardinality)


def test_a_budget_smaller_than_a_batch_is_kept():
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
    rows, values = search(space, lambda rows: (rows != goal).sum(axis=1), 150)  # `search` asserts that rows are allowed
    assert unique(rows) and len(rows) == min(150, space.cardinality)
    assert values.min() <= 2


def test_a_wide_space_is_searched_within_memory():
    space = Space([2] * 20_000)
    rows, values = search(space, lambda rows: rows[:, :50].sum(axis=1), 80, batch=40)
    assert rows.shape == (80, 20_000) and math.isfinite(values.min())


def test_importing_the_strategy_imports_no_heavy_library():
    code = "import sys, bbo_strategies.mbo; assert not {'sklearn', 'scipy', 'pandas'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_hit_rate_compares_chosen_changes_with_random_ones_between_two_fits():
    hits = Hits()
    hits.learn(np.arange(40) < 10, 10)
    hits.close()
    assert hits.ratio is None  # ten changes say nothing
    hits.learn(np.array([True] * 9 + [False] + [True] * 10 + [False] * 60), 10)
    hits.close()
    assert hits.ratio == pytest.approx((19.5 / 21) / (10.5 / 101))
    hits.learn(np.zeros(60, bool), 30)
    hits.close()
    assert hits.ratio == 1


def test_the_hit_rate_is_told_once_models_have_chosen():
    space, cost = separable(300, 0)
    searcher = start(ModelBasedOptimization, space, 600)
    for _ in play(searcher, lambda rows: 100 + cost(rows), 20):
        pass
    assert searcher.diagnostics()["hits/models"] > 0
