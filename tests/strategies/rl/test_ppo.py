"""The objective, against its definition."""

import numpy as np
import pytest

from bbo_strategies.rl.policy import BOUND
from bbo_strategies.rl.ppo import Rewards, RolloutBuffer, Settings, objective, scores
from bbo_strategies.rl.proposals import ParameterValues, draw, log_softmax, proposals_of
from bbo_suite import Space

pytestmark = pytest.mark.slow  # compiles networks

RNG = np.random.default_rng(0)
SPACE = Space(np.full(12, 3))
VALUES = ParameterValues(SPACE)
WEIGHTS = RNG.normal(size=4).astype(np.float32)


def played(worth):
    """Return three batches as buffer, and (proposals, chosen, log-probabilities, rewards) of each."""
    buffer, batches = RolloutBuffer(), []
    for n in (3, 1, 4):
        state = SPACE.sample(1, RNG)[0]
        is_open = RNG.random(6 * n) < 0.8
        proposals = proposals_of(SPACE.sample(6 * n, RNG), state, RNG.integers(0, 3, 6 * n), is_open, VALUES)
        logs = log_softmax(proposals.scores(worth, WEIGHTS, BOUND), is_open)
        chosen, rewards = draw(logs, n, RNG), RNG.normal(size=n)
        buffer.add(proposals, chosen, logs[chosen])
        buffer.reward(rewards)
        batches.append((proposals, chosen, logs[chosen], rewards))
    return buffer, batches


def test_the_loss_is_the_clipped_surrogate_of_every_choice_in_its_batch():
    old, clip = RNG.normal(size=36).astype(np.float32), 0.2
    new = old + 0.5 * RNG.normal(size=36).astype(np.float32)
    buffer, batches = played(old)
    every = np.concatenate([rewards for *_, rewards in batches])
    surrogate, entropy = [], []
    for proposals, chosen, before, rewards in batches:
        logs = log_softmax(proposals.scores(new, WEIGHTS, BOUND), proposals.open)
        advantages = (rewards - every.mean()) / every.std()
        ratio = np.exp(logs[chosen] - before)
        surrogate.extend(np.minimum(ratio * advantages, np.clip(ratio, 1 - clip, 1 + clip) * advantages))
        entropy.append(-(np.exp(logs) * np.where(proposals.open, logs, 0)).sum())
    wanted = -np.mean(surrogate) - 0.01 * np.mean(entropy)
    data = buffer.rollout(8)
    loss = objective(scores(new, WEIGHTS, BOUND, data), data, Settings(clip, 0.01))
    assert loss == pytest.approx(wanted, rel=1e-3)


def test_each_value_gets_its_share_of_the_reward_of_its_candidate():
    buffer, batches = played(np.zeros(36))
    _, reward, weight = buffer.shares()
    assert weight.sum() == pytest.approx(8)
    assert (reward * weight).sum() == pytest.approx(sum(rewards.sum() for *_, rewards in batches))


def test_rewards_keep_the_order_of_costs_and_penalise_failures_and_equal_costs():
    values = np.array([0.9, 0.99, 1.0, 1.001, 1.5, np.inf])
    rewards = Rewards()(values, 1.0)
    assert rewards[0] > rewards[1] > 1 > 0 > rewards[3] > rewards[4] > rewards[5]
    assert 0 > rewards[2] > rewards[5]
    assert np.allclose(Rewards()(values * 1e-300, 1e-300)[:5], rewards[:5], rtol=1e-3)


@pytest.mark.parametrize("values", [[np.inf, np.inf], [0.0, 0.0], [1e308, 1e-308], [0.0, np.inf]])
@pytest.mark.parametrize("state", [0.0, 1.0, np.inf])
def test_rewards_are_finite(values, state):
    assert np.isfinite(Rewards()(np.array(values), state)).all()
