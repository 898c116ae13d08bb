"""What `mbo` learns: targets, features of changes, effects, which regressors are taken, and which neighbours fail."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from bbo_strategies.mbo.models import Effects, Ensemble, Failures, SparseChanges, targets
from bbo_suite import Space, permutation, product, scale, sequence


def rng(seed=0):
    return np.random.default_rng(seed)


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
