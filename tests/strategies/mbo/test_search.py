"""`mbo` finds what it should, chooses changes by its models, and shares a batch with random changes.

What it learns: targets, features of changes, effects, regressors, neighbours; and whole candidates.
"""

import math
import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm
from threadpoolctl import threadpool_info, threadpool_limits

from bbo_strategies.annealing import Annealing
from bbo_strategies.mbo import ModelBasedOptimization, ModelOptions
from bbo_strategies.mbo.models import Effects, Ensemble, Failures, SparseChanges, targets
from bbo_strategies.mbo.search import NAMES, Arms, acquisition, maximise
from bbo_strategies.mbo.whole import Process, Whole
from bbo_strategies.mbo.whole import targets as whole_targets
from bbo_strategies.random_search import RandomSearch
from bbo_suite import Constraint, Moves, Space, Task, choice, permutation, product, scale, sequence
from bbo_suite.testing import play, start

from ..peers import joined


def rng(seed=0):
    return np.random.default_rng(seed)


def search(space, cost, budget, batch=50, seed=0, strategy=ModelBasedOptimization, **options):
    """Return all proposed rows and their values."""
    searcher = start(strategy, space, budget, seed, default=space.sample(1, rng(9))[0], **options)
    rows, values = joined(play(searcher, cost, batch))
    assert space.allowed(rows).all()
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_it_learns_from_others_candidates_near_its_state_and_proposes_none_of_them():
    space, cost = separable(40, 0)
    start = np.zeros(40, space.dtype)
    searcher = ModelBasedOptimization(Task("t", space, start, "s"), 200, rng(), ModelOptions())
    searcher.tell(searcher.ask(1), cost(start[None]))
    singles = start ^ np.eye(40, dtype=space.dtype)
    searcher.observe(singles, cost(singles))
    assert searcher.diagnostics() and searcher.cost == cost(singles).min()
    mine = np.concatenate([searcher.ask(20) for _ in range(5)])
    assert unique(np.concatenate([singles, mine]))


@pytest.mark.parametrize("unit", [0.0, 1e300, 1e-300, -1.0, np.inf])
def test_odd_costs_cause_no_warning(unit):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows, _ = search(Space([2] * 12), lambda rows: unit * (1.0 + rows.sum(axis=1)), 60, 20)
    assert unique(rows)


@pytest.mark.slow
def test_without_heat_the_state_is_the_best_candidate_so_far():
    space, cost = ising(60, 0)
    searcher = start(ModelBasedOptimization, space, 400, heat=0.0)
    states = [(searcher.cost, values.min()) for _, values in play(searcher, lambda rows: 1000 + cost(rows), 20)]
    held, least = np.transpose(states[:-1])  # it does not learn from the last batch
    np.testing.assert_array_equal(held, np.minimum.accumulate(least))


@pytest.mark.slow
def test_diagnostics_have_the_scores_of_all_four_regressors():
    space, cost = mixed(12, 0)
    searcher = ModelBasedOptimization(Task("t", space, space.sample(1, rng())[0], "s"), 200, rng(), ModelOptions())
    assert searcher.diagnostics() == {}
    for _ in range(12):
        rows = searcher.ask(20)
        searcher.tell(rows, cost(rows))
    scores = {name: value for name, value in searcher.diagnostics().items() if name != "hits/models"}
    assert set(scores) == {f"score/{name}" for name in ("ridge", "forest", "boosting", "network")}
    assert all(-math.inf < value <= 1 for value in scores.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", [NAMES[0], *(pytest.param(n, marks=pytest.mark.slow) for n in NAMES[1:])])
def test_every_acquisition_function_finds_improvements(name):
    space, cost = separable(40, 3)
    rows, values = search(space, cost, 200, acquisition=name)
    assert unique(rows) and values.min() < 0.1 * values[0]


@pytest.mark.slow
def test_a_planted_sequence_is_found():
    space = product(sequence("passes", 12, "abcdefgh"))
    goal = space.sample(1, rng(5))[0]
    _, values = search(space, lambda rows: 1 + (rows != goal).sum(axis=1), 400)
    assert values.min() == 1


@pytest.mark.slow
def test_nine_of_ten_candidates_may_fail():
    space, cost = separable(40, 1)
    masks = rng(1).integers(0, 2, (4, 40))
    default = space.sample(1, rng(9))[0]

    def failing(rows):
        return np.where((((rows != default) @ masks.T) % 2).any(axis=1), np.inf, 1 + cost(rows))

    _, values = search(space, failing, 300)
    assert np.isinf(values).mean() > 0.5 and values.min() < values[0]


@pytest.mark.slow
@pytest.mark.parametrize("make, budget", [(lambda: separable(60, 0), 300), (lambda: mixed(12, 0), 300)])
def test_beats_random_search(make, budget):
    space, cost = make()
    rows, values = search(space, cost, budget)
    _, random = search(space, cost, budget, strategy=RandomSearch)
    _, longer = search(space, cost, 50 * budget, batch=5000, strategy=RandomSearch)
    assert unique(rows)
    assert values.min() < longer.min() < random.min()


def test_a_wide_space_is_searched_within_memory():
    space = Space([2] * 20_000)
    rows, values = search(space, lambda rows: rows[:, :50].sum(axis=1), 80, batch=40)
    assert rows.shape == (80, 20_000) and math.isfinite(values.min())


@pytest.mark.slow
def test_importing_the_strategy_imports_no_heavy_library():
    code = "import sys, bbo_strategies.mbo; assert not {'sklearn', 'scipy', 'pandas'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def forbidden(seed=0, slots=24, symbols=16):
    """Return a space and a cost: how far from a hidden sequence; a third of all transitions fail."""
    rng = np.random.default_rng(seed)
    allowed = rng.random((symbols, symbols)) < 0.66
    allowed[0] = allowed[:, 0] = True
    wanted = rng.integers(1, symbols, slots)

    def cost(rows):
        fails = ~allowed[rows[:, :-1], rows[:, 1:]].all(axis=1)
        return np.where(fails, np.inf, 1.0 + (rows != wanted).mean(axis=1))

    return product(sequence("pass", slots, range(symbols))), cost


@pytest.mark.slow
def test_mbo_stops_proposing_failing_pairs_and_annealing_does_not():
    space, cost = forbidden()
    shares = {}
    for kind in (Annealing, ModelBasedOptimization):
        told = np.concatenate([values for _, values in play(start(kind, space, 1200), cost)])
        shares[kind] = np.isinf(told[600:]).mean()
    assert shares[ModelBasedOptimization] < 0.1 < 0.2 < shares[Annealing]


def test_a_run_in_which_all_but_the_default_fails_reaches_its_end():
    space, _ = forbidden()

    def cost(rows):
        return np.where((rows == 0).all(axis=1), 1.0, np.inf)

    batches = [len(configs) for configs, _ in play(start(ModelBasedOptimization, space, 300), cost, 20)]
    assert sum(batches) == 300 and min(batches) > 0


def test_targets_are_gains_in_their_order_on_a_logarithmic_scale():
    scores = targets(np.array([5.0, -1.0, 0.0, -10.0, 0.3]))
    assert scores[0] == scores[2] == scores[4] > scores[1] > scores[3]
    gains = scores[0] - scores[[1, 3]]
    assert gains[1] / gains[0] == pytest.approx(math.log(11) / math.log(2), rel=1e-5)
    assert abs(scores.mean()) < 1e-6 and scores.std() == pytest.approx(1)
    np.testing.assert_array_equal(targets(np.full(20, 7.0)), np.zeros(20))


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


class Stub:
    """A regressor that always predicts the same."""

    def __init__(self, value):
        self.value = value

    def fit(self, features, targets):
        return self

    def predict(self, features):
        return np.full(len(features), self.value)


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
    monkeypatch.setattr("bbo_strategies.regressors.candidates", lambda *_: {"one": watcher})
    with threadpool_limits(2):
        ensemble = Ensemble(0.5, 3, rng())
        ensemble.learn(rng().random((60, 4), dtype=np.float32), rng().normal(size=60))
        fitted = len(watcher.seen)
        ensemble.predict(np.zeros((4, 4), np.float32))
        assert 2 in [pool["num_threads"] for pool in threadpool_info()]
    assert 0 < fitted < len(watcher.seen) and set(watcher.seen) == {1}


def test_blame_is_shared_and_moves_to_the_only_pair_left():
    failures = Failures(product(sequence("pass", 4, range(3))))
    base = np.zeros(4, np.int8)
    failures.learn(base, np.array([[0, 1, 0, 0]], np.int8), np.array([True]))  # it brought in (0, 1) and (1, 0)
    shared = 0.2 / 2
    for _ in range(3):
        shared = (shared / (1 - (1 - shared) ** 2) + 0.2) / 2  # one failure, and the prior as one more
    probes = np.array([[0, 1, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 0, 0, 0]], np.int8)
    both, first, second, none = failures.chances(base, probes)
    assert [both, first, second, none] == pytest.approx([(1 - shared) ** 2, 1 - shared, 1 - shared, 1])
    failures.learn(base, np.array([[0, 0, 0, 1]], np.int8), np.array([False]))  # (0, 1) alone runs
    _, first, second, _ = failures.chances(base, probes)
    assert first > 0.95 and second < 0.45


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_forbidden_neighbours_are_learned(seed, shuffled):
    rng, n = np.random.default_rng(seed), 6
    space = product(permutation("pass", range(n)) if shuffled else sequence("pass", n, range(n)))
    allowed, base = rng.random((n, n)) < 0.8, space.sample(1, rng)[0]
    allowed[base[:-1], base[1:]] = True
    failures = Failures(space)
    for _ in range(100):
        children = space.sample(20, rng)
        failures.learn(base, children, ~allowed[children[:, :-1], children[:, 1:]].all(axis=1))
    children = space.sample(200, rng)
    runs = allowed[children[:, :-1], children[:, 1:]].all(axis=1)
    assert ((failures.chances(base, children) > 0.5) == runs).mean() > 0.95


def test_without_failures_or_sequences_every_candidate_is_predicted_to_run():
    space = product(scale("x", range(9)), sequence("pass", 6, range(4)))
    failures, rng = Failures(space), np.random.default_rng(0)
    rows = space.sample(50, rng)
    assert not failures.learn(rows[0], rows[1:], np.zeros(49, bool)).any()
    assert (failures.chances(rows[0], rows) == 1).all()
    plain = Space([3, 4, 5])
    failures, rows = Failures(plain), plain.sample(50, rng)
    assert not failures.learn(rows[0], rows[1:], np.ones(49, bool)).any()
    assert (failures.chances(rows[0], rows) == 1).all()


def test_sequences_too_wide_for_a_table_are_predicted_to_run():
    space = product(sequence("wide", 3, range(3000)), sequence("narrow", 3, range(4)))
    failures, rng = Failures(space), np.random.default_rng(0)
    rows = space.sample(50, rng)
    failures.learn(rows[0], rows[1:], np.ones(49, bool))
    assert (failures.chances(rows[0], rows) == 1).all()


def generator(seed=0):
    return np.random.default_rng(seed)


def kernel(seed=0):
    """Return a space like that of a GPU kernel, and a cost in which parameters interact."""
    space = product(
        *(scale(name, range(size)) for name, size in zip("abcd", (16, 5, 8, 8), strict=True)),
        *(choice(name, range(3)) for name in "ef"),
        constraints=[Constraint((0, 1), lambda rows: rows.sum(axis=1) < 17)],
    )
    best, noise = space.sample(1, generator(seed))[0].astype(int), generator(seed + 1).normal(size=(3, 8, 3))

    def cost(rows):
        rows = rows.astype(int)
        far = ((rows[:, :4] - best[:4]) / np.array([16, 5, 8, 8])) ** 2
        joint = (rows[:, 0] / 16 - rows[:, 3] / 8 - best[0] / 16 + best[3] / 8) ** 2
        return np.exp(2 * far.sum(axis=1) + 3 * joint + 0.1 * noise[rows[:, 4], rows[:, 2], rows[:, 5]])

    return space, cost


def test_targets_know_good_from_bad_and_failures_are_bad():
    found = whole_targets(np.array([1.0, 10.0, 100.0, 1e9, np.inf]))
    assert found[0] < found[1] < found[2] < found[3] == found[4]
    assert found[4] - found[2] == pytest.approx(found[2] - found[0])
    mostly_best = whole_targets(np.array([1.0, 1.0, 1.0, 2.0]))
    assert mostly_best[0] == mostly_best[2] < mostly_best[3]
    np.testing.assert_array_equal(whole_targets(np.full(4, np.inf)), np.zeros(4))
    np.testing.assert_array_equal(whole_targets(np.full(4, -3.0)), np.zeros(4))


def test_the_process_predicts_what_it_saw_and_is_less_sure_elsewhere():
    space, cost = kernel()
    seen, unseen = space.sample(60, generator(2)), space.sample(300, generator(3))
    process = Process(space)
    process.fit(seen, np.log(cost(seen)))
    means, variances, _ = process.predict(seen)
    others, more, _ = process.predict(unseen)
    assert np.abs(means - np.log(cost(seen))).max() < 0.1
    assert np.median(more) > 3 * np.median(variances)
    assert np.corrcoef(others, np.log(cost(unseen)))[0, 1] > 0.8
    np.testing.assert_allclose(process.means(unseen), others, rtol=1e-4)


def test_candidates_that_differ_in_what_matters_not_are_predicted_alike():
    space = Space([8, 8], [1, 1])
    rows = space.sample(60, generator())
    process = Process(space)
    process.fit(rows, rows[:, 0].astype(float))
    grid = np.stack(np.meshgrid(np.arange(8), np.arange(8)), axis=-1).reshape(-1, 2).astype(space.dtype)
    means = process.means(grid).reshape(8, 8)
    assert np.ptp(means, axis=0).max() < 0.1 * np.ptp(means, axis=1).min()


def test_it_proposes_different_new_allowed_candidates():
    space, cost = kernel()
    whole = Whole(space, Moves(space), generator())
    known: set[bytes] = set()

    def fresh(rows):
        return np.array([row for row in np.unique(rows, axis=0) if row.tobytes() not in known], space.dtype)

    rows = space.sample(10, generator(1))
    assert not whole.ready
    whole.learn(rows, cost(rows))
    assert whole.ready
    for _ in range(8):
        rows = whole.propose(6, fresh)
        assert len(np.unique(rows, axis=0)) == len(rows) == 6 and space.allowed(rows).all()
        assert not known & {row.tobytes() for row in rows}
        known |= {row.tobytes() for row in rows}
        whole.learn(rows, cost(rows))


def test_the_process_uses_one_thread(monkeypatch):
    threads, fit = [], Process.fit

    def watched(process, *given):
        linear_algebra = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]  # all that a process uses
        threads.extend(pool["num_threads"] for pool in linear_algebra)
        fit(process, *given)

    monkeypatch.setattr(Process, "fit", watched)
    space, cost = kernel()
    with threadpool_limits(2):
        list(play(start(ModelBasedOptimization, space, 30), cost, 10))
        assert 2 in [pool["num_threads"] for pool in threadpool_info()]
    assert set(threads) == {1}


@pytest.mark.parametrize("seed", range(2))
def test_few_evaluations_find_what_random_search_finds_with_twenty_times_as_many(seed):
    space, cost = kernel(seed)
    best = {
        kind: min(values.min() for _, values in play(start(kind, space, budget, seed), cost, 20))
        for kind, budget in ((ModelBasedOptimization, 60), (RandomSearch, 1200))
    }
    assert best[ModelBasedOptimization] <= best[RandomSearch]
