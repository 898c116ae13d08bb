"""Imitation: the loss against its definition, and what is to be imitated."""

import numpy as np
import pytest

from bbo_strategies.rl.imitation import divergence
from bbo_strategies.rl.policy import SURE
from bbo_strategies.rl.ppo import scores
from bbo_strategies.rl.proposals import compared, log_softmax
from bbo_strategies.rl.pupil import shares
from bbo_strategies.rl.rounds import Gathered, filled
from bbo_strategies.rl.values import Values
from bbo_suite import Space

RNG = np.random.default_rng(0)


def test_the_loss_is_the_cross_entropy_of_every_batch():
    space, worth, weights = Space(np.full(12, 3)), RNG.normal(size=36).astype(np.float32), RNG.normal(size=4)
    gathered, given, wanted = Gathered(), [], []
    for n in (2, 3):
        is_open = np.arange(6 * n) != 4
        state, configs, kinds = space.sample(1, RNG)[0], space.sample(6 * n, RNG), RNG.integers(0, 3, 6 * n)
        proposals = compared(configs, state, kinds, is_open, Values(space))
        logs = log_softmax(proposals.scores(worth, weights, SURE), is_open)
        gathered.add(proposals, np.arange(n), logs[:n])
        gathered.reward(RNG.normal(size=n))
        own = RNG.random(6 * n) * is_open
        given.append(own / own.sum())
        wanted.append(-(given[-1][is_open] * logs[is_open]).sum())
    data = gathered.padded(5)
    loss = divergence(scores(worth, weights, SURE, data), data, filled(np.concatenate(given), len(data.open), 0.0))
    assert loss == pytest.approx(np.mean(wanted), rel=1e-3)


def test_shares_are_of_what_is_gained():
    assert shares(np.array([1.0, 3.0, np.inf, 4.0, 5.0]), 4.0).tolist() == [0.75, 0.25, 0, 0, 0]
    assert shares(np.array([1.0, np.inf]), np.inf).tolist() == [1, 0]
    assert not shares(np.array([5.0, np.inf]), 4.0).any()
