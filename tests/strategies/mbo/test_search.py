"""`mbo` finds what it should, chooses changes by its models, and shares a batch with random changes."""

import math
import subprocess
import sys
import warnings

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from bbo_strategies.annealing import Annealing
from bbo_strategies.mbo import ModelBasedOptimization, ModelOptions
from bbo_strategies.mbo.search import NAMES, Arms, acquisition, maximise
from bbo_strategies.random_search import RandomSearch
from bbo_suite import Moves, Space, Task, product, sequence
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
