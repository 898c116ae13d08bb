import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bbo_strategies.annealing import Annealing
from bbo_strategies.mbo import ModelBasedOptimization
from bbo_strategies.mbo.failures import Failures
from bbo_suite import Space, permutation, product, scale, sequence
from bbo_suite.testing import play, start


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


def test_a_pair_counts_once_and_not_at_all_if_the_base_has_it():
    failures = Failures(product(sequence("pass", 5, range(3))))
    base = np.array([0, 1, 0, 2, 0])
    failures.learn(base, np.array([[1, 1, 0, 1, 1]]), np.array([True]))  # it brought in (1, 1), twice
    assert failures.chances(base, np.array([[1, 0, 1, 0, 1], [1, 1, 0, 2, 0]])) == pytest.approx([1, 1 - 1.2 / 2])


def test_old_suspects_are_dropped_together_with_their_blame(monkeypatch):
    monkeypatch.setattr("bbo_strategies.mbo.failures._MOST", 2)
    failures = Failures(product(sequence("pass", 2, range(9))))
    base = np.array([0, 0])
    for i in range(1, 6):
        failures.learn(base, np.array([[i, i]]), np.array([True]))
    children = np.array([[i, i] for i in range(1, 6)])
    assert failures.chances(base, children) == pytest.approx([0.8] * 3 + [0.4] * 2)


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


def test_a_failure_without_new_neighbours_has_no_suspects():
    failures = Failures(product(scale("x", range(9)), sequence("pass", 3, range(4))))
    base, children = np.array([0, 1, 2, 3]), np.array([[5, 1, 2, 3], [0, 1, 1, 3], [0, 3, 2, 3]])
    assert failures.learn(base, children, np.array([True, True, False])).tolist() == [False, True, False]
    assert failures.chances(base, children[:1]) == [1]


def test_sequences_too_wide_for_a_table_are_predicted_to_run():
    space = product(sequence("wide", 3, range(3000)), sequence("narrow", 3, range(4)))
    failures, rng = Failures(space), np.random.default_rng(0)
    rows = space.sample(50, rng)
    failures.learn(rows[0], rows[1:], np.ones(49, bool))
    assert (failures.chances(rows[0], rows) == 1).all()


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
