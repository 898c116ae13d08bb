"""Imitation: what is demonstrated, the loss against its definition, and that it is learned."""

import jax.numpy as jnp
import numpy as np
import pytest

from bbo_strategies.rl.imitation import Demonstration, demonstrate, imitate, regret
from bbo_strategies.rl.policy import PRETRAINED_BOUND, Names, random_policy
from bbo_strategies.rl.ppo import decide
from bbo_suite import Space, Structure, Task
from bbo_suite.pretraining import Lesson

pytestmark = pytest.mark.slow  # compiles networks

RNG = np.random.default_rng(0)


def lesson(seed=0, d=40):
    """One feature says which parameters had better have their last value; the others are noise."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(d, 3)).astype(np.float32)
    declared = Structure(np.zeros(d + 1, np.int64), np.empty(0, np.int32), features, tuple("abc"))
    weights = np.where(features[:, 0] > 0.5, -1.0, 1.0)
    task = Task("toy/features", Space(np.full(d, 3)), np.zeros(d, np.int64), "seconds", declared)
    return Lesson(task, 100.0, lambda rows: 100 + rows @ weights), weights


def test_the_loss_is_the_weighted_mean_over_values():
    preferences, best = RNG.normal(size=6).astype(np.float32), np.array([1, 1, 1, 3, 3, 5])
    weights = np.array([0.5, 0, 2, 0, 1, 0], np.float32)
    shown = Demonstration(None, None, best, weights)
    wanted = sum(w * np.log1p(np.exp(preferences[i] - preferences[best[i]])) for i, w in enumerate(weights)) / 3.5
    assert regret(jnp.asarray(preferences), shown) == pytest.approx(wanted, rel=1e-5)


def test_a_demonstration_shows_the_best_values_and_what_the_others_cost():
    given, weights = lesson()
    shown = demonstrate(given, Names.of([given.task]), 4000, RNG)
    best = np.where(weights < 0, 2, 0)
    assert np.array_equal(shown.best[:120], np.repeat(np.arange(40) * 3 + best, 3))
    assert not shown.weights[shown.best[:120]].any() and not shown.weights[120:].any()
    others = np.setdiff1d(np.arange(120), shown.best)
    gain = -2 * weights[weights < 0].sum()
    steps = np.abs(others % 3 - np.repeat(best, 3)[others])  # each costs 1
    assert shown.weights[others] == pytest.approx(np.minimum(steps / gain, 0.03) + 0.003, rel=1e-5)


def test_where_nothing_gains_nothing_is_shown():
    given, _ = lesson()
    worse = Lesson(given.task, 100.0, lambda rows: 100.0 + rows.sum(axis=1))
    assert demonstrate(worse, Names.of([given.task]), 200, RNG) is None


def test_a_policy_prefers_on_another_task_what_pays():
    """The tasks share nothing but what their features mean."""
    lessons, names = [lesson(seed)[0] for seed in range(12)], Names.of([lesson()[0].task])
    shown = [demonstrate(one, names, 2000, RNG) for one in lessons]
    policy = imitate(random_policy(*names.widths, RNG, PRETRAINED_BOUND), shown, RNG, lambda _: None)
    other, weights = lesson(9)
    unseen = demonstrate(other, names, 2000, RNG)
    preferences = np.asarray(decide(policy, unseen.graph, unseen.state))[:120].reshape(40, 3)
    assert np.mean((preferences[:, 2] > preferences[:, 0]) == (weights < 0)) > 0.8
