"""Imitation: the loss against its definition, and what is to be imitated."""

import numpy as np
import pytest

from bbo_strategies.rl.imitation import cross_entropy, gain_shares
from bbo_strategies.rl.parameter_values import ParameterValues
from bbo_strategies.rl.policy import PRETRAINED_BOUND
from bbo_strategies.rl.ppo import scores
from bbo_strategies.rl.proposals import log_softmax, proposals_of
from bbo_strategies.rl.rollout import RolloutBuffer, filled
from bbo_suite import Space

RNG = np.random.default_rng(0)


def test_the_loss_is_the_cross_entropy_of_every_batch():
    space, worth, weights = Space(np.full(12, 3)), RNG.normal(size=36).astype(np.float32), RNG.normal(size=4)
    buffer, given, wanted = RolloutBuffer(), [], []
    for n in (2, 3):
        is_open = np.arange(6 * n) != 4
        state, configs, kinds = space.sample(1, RNG)[0], space.sample(6 * n, RNG), RNG.integers(0, 3, 6 * n)
        proposals = proposals_of(configs, state, kinds, is_open, ParameterValues(space))
        logs = log_softmax(proposals.scores(worth, weights, PRETRAINED_BOUND), is_open)
        buffer.add(proposals, np.arange(n), logs[:n])
        buffer.reward(RNG.normal(size=n))
        own = RNG.random(6 * n) * is_open
        given.append(own / own.sum())
        wanted.append(-(given[-1][is_open] * logs[is_open]).sum())
    data = buffer.padded(5)
    shares = filled(np.concatenate(given), len(data.open), 0.0)
    loss = cross_entropy(scores(worth, weights, PRETRAINED_BOUND, data), data, shares)
    assert loss == pytest.approx(np.mean(wanted), rel=1e-3)


def test_shares_are_proportional_to_gains():
    assert gain_shares(np.array([1.0, 3.0, np.inf, 4.0, 5.0]), 4.0).tolist() == [0.75, 0.25, 0, 0, 0]
    assert gain_shares(np.array([1.0, np.inf]), np.inf).tolist() == [1, 0]
    assert not gain_shares(np.array([5.0, np.inf]), 4.0).any()
