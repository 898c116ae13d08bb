"""The objective, against its definition, and on a bandit."""

import numpy as np
import pytest

from bbo_strategies.rl.changes import Changes
from bbo_strategies.rl.credit import Rewards, shares, tally
from bbo_strategies.rl.inputs import graph_of
from bbo_strategies.rl.learner import Learner, fresh
from bbo_strategies.rl.policy import STATE
from bbo_strategies.rl.ppo import Settings, objective
from bbo_suite import Space, Structure, Task

RNG = np.random.default_rng(0)


def test_the_sums_give_the_clipped_objective_of_every_draw():
    c, clip = 20, 0.2
    drawn = RNG.integers(0, c, 200)
    added = RNG.normal(size=200)
    old, new, worth = RNG.normal(size=(3, c)).astype(np.float32)
    new = old + 0.3 * new
    alive = np.ones(c, bool)
    data = tally(added, np.arange(200), drawn, c)
    advantages = (added - added.mean()) / added.std()
    ratio = np.exp(new - old)[drawn]
    surrogate = np.minimum(ratio * advantages, np.clip(ratio, 1 - clip, 1 + clip) * advantages).mean()
    means = np.array([added[drawn == i].mean() for i in range(c)])
    error = ((worth[drawn] - means[drawn]) ** 2).mean()
    entropy = -(np.exp(new) * new).sum() / np.log(c)
    wanted = -surrogate + 0.5 * error - 0.01 * entropy
    assert objective(new, worth, old, alive, data, Settings(clip, 0.01)) == pytest.approx(wanted, rel=1e-4)


def test_each_draw_is_given_what_the_others_are_not_expected_to_explain():
    worth = np.array([1.0, -2.0, 0.5])
    rows, drawn = np.array([0, 0, 1]), np.array([0, 1, 2])
    assert shares(np.array([3.0, 4.0]), rows, drawn, worth).tolist() == [3 + 2, 3 - 1, 4]


def test_every_candidate_counts_once():
    data = tally(np.array([1.0, 3.0, -4.0]), np.array([0, 0, 1]), np.array([0, 1, 2]), 4)
    assert data.draws.tolist() == [0.5, 0.5, 1, 0]
    assert data.worth.tolist() == [1, 3, -4, 0]
    assert data.gain.sum() == pytest.approx(-data.loss.sum())


def test_rewards_keep_the_order_of_costs_and_punish_failure_and_standing_still():
    values = np.array([0.9, 0.99, 1.0, 1.001, 1.5, np.inf])
    rewards = Rewards()(values, 1.0)
    assert rewards[0] > rewards[1] > rewards[3] > rewards[4] > rewards[5]
    assert rewards[2] < 0
    assert np.allclose(Rewards()(values * 1e-300, 1e-300)[:5], rewards[:5], rtol=1e-3)


@pytest.mark.parametrize("values", [[np.inf, np.inf], [0.0, 0.0], [1e308, 1e-308], [0.0, np.inf]])
@pytest.mark.parametrize("incumbent", [0.0, 1.0, np.inf])
def test_rewards_are_finite(values, incumbent):
    assert np.isfinite(Rewards()(np.array(values), incumbent)).all()


@pytest.mark.parametrize("noisy_rounds", [0, 60])
def test_the_policy_learns_a_planted_bandit(noisy_rounds):
    """A feature says which changes pay; rounds in which none does must not kill the units of the head."""
    d = 60
    features = RNG.normal(size=(d, 3)).astype(np.float32)
    task = Task("toy/bandit", Space(np.full(d, 2)), np.zeros(d, np.int64), "seconds", structure(features))
    changes = Changes(task.space)
    graph = graph_of(task, changes)
    c = len(graph.parameter)
    good, alive, state = np.zeros(c), np.zeros(c, bool), np.zeros((c, STATE), np.float32)
    alive[: len(changes)] = changes.alive(task.default)
    good[: len(changes)] = features[changes.parameter, 0] > 0
    learner = Learner(
        fresh(graph.nodes.shape[1], graph.features.shape[1], np.random.default_rng(0)), Settings(0.2, 0.01), 0.003, 4
    )
    rng = np.random.default_rng(0)
    before = np.exp(learner.propose(graph, state, alive)[0]) @ good
    for played in range(noisy_rounds + 30):
        logs, worth = learner.propose(graph, state, alive)
        p = np.exp(logs.astype(float)) * alive
        drawn = rng.choice(len(p), 64, p=p / p.sum())
        rewards = good[drawn] * (played >= noisy_rounds) + 0.3 * rng.normal(size=64) - 1
        data = tally(shares(rewards, np.arange(64), drawn, worth), np.arange(64), drawn, len(p))
        learner.learn(graph, state, alive, logs, data)
    after = np.exp(learner.propose(graph, state, alive)[0]) @ good
    assert before < 0.6
    assert after > 0.85


def structure(features):
    d = len(features)
    return Structure(np.zeros(d + 1, np.int64), np.empty(0, np.int32), features, tuple("abc"))
