"""Rewards: the order of costs, no units, finite."""

import numpy as np
import pytest

from bbo_strategies.rl.rollout import Rewards


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
