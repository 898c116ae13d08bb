import numpy as np
import pytest

from bbo_strategies.annealing import Annealing
from bbo_strategies.evolution import Evolution
from bbo_strategies.strength import Strength, relative_gains
from bbo_suite import Space
from bbo_suite.testing import play, start


def strength(parameters=4000):
    return Strength(parameters, np.random.default_rng(0))


def test_at_first_the_numbers_of_changes_follow_a_power_law():
    assert strength().shares * np.array([1, 2, 4, 8, 16, 32]) == pytest.approx(np.full(6, strength().shares[0]))
    drawn = strength().draw(20_000)
    assert set(drawn.tolist()) == {1, 2, 4, 8, 16, 32}
    assert (drawn == 1).mean() == pytest.approx(strength().shares[0], abs=0.02)


@pytest.mark.parametrize(("parameters", "most"), [(0, 1), (1, 1), (127, 1), (128, 2), (300, 4), (10**6, 32)])
def test_few_parameters_get_few_changes(parameters, most):
    assert strength(parameters).draw(5000).max() == most


@pytest.mark.parametrize("paying", range(6))
def test_the_shares_follow_what_was_gained_and_not_how_often(paying):
    own, numbers = strength(), 2 ** np.tile(np.arange(6), 10)
    for place in ((paying + 1) % 6, paying):
        for _ in range(100):
            own.learn(numbers, np.where(numbers == 2**place, 0.1, 1e-4), np.zeros(60, bool))
        assert own.shares[place] > 0.5 and own.shares.sum() == pytest.approx(1) and own.shares.min() > 0.001


def test_the_shares_return_to_the_power_law_after_so_long_without_a_gain_that_gains_underflow():
    own, numbers = strength(), np.full(10_000, 32)
    own.learn(numbers, np.ones(10_000), np.zeros(10_000, bool))
    for _ in range(20):
        own.learn(numbers, np.zeros(10_000), np.ones(10_000, bool))
    assert own.shares == pytest.approx(strength().shares)


def test_there_are_single_changes_only_where_less_than_half_of_them_cost_nothing():
    own, ones = strength(), np.ones(20, np.int64)
    own.learn(ones, np.zeros(20), np.arange(20) < 9)
    assert set(own.draw(1000)) == {1}
    own.learn(ones, np.zeros(20), np.arange(20) < 11)
    assert set(own.draw(1000)) == {1, 2, 4, 8, 16, 32}


def test_gains_are_shares_of_the_cost_and_failures_gain_nothing():
    assert relative_gains(4.0, np.array([3.0, 5.0, np.inf, 0.0, -9.0])).tolist() == [0.25, 0, 0, 1, 1]
    assert relative_gains(np.inf, np.array([3.0, np.inf])).tolist() == [1, 0]
    assert relative_gains(-2.0, np.array([-3.0, -1.0])).tolist() == [0.5, 0]
    assert relative_gains(0.0, np.array([0.0, -1.0, 1.0])).tolist() == [0, 1, 0]
    assert relative_gains(np.array([4.0, np.inf]), np.array([3.0, np.inf])).tolist() == [0.25, 0]


@pytest.mark.parametrize("strategy", [Annealing, Evolution])
def test_needles_among_thousands_of_parameters_without_effect_are_found(strategy):
    """Forty of 4,000 parameters gain; 800 evaluations of single changes would meet about eight of them."""
    needles = np.random.default_rng(5).choice(4000, 40, replace=False)
    searcher = start(strategy, Space([2] * 4000), 800)
    least = min(values.min() for _, values in play(searcher, lambda rows: 100.0 - rows[:, needles].sum(axis=1), 20))
    assert least <= 100 - 20


@pytest.mark.parametrize("strategy", [Annealing, Evolution])
def test_where_nearly_every_change_loses_candidates_have_single_changes(strategy):
    weights = np.random.default_rng(3).random(400) + 1e-3
    default = np.zeros(400, np.int8)
    default[::20] = 1
    searcher = start(strategy, Space([2] * 400), 1000, default=default)
    costs = [values for _, values in play(searcher, lambda rows: 10 + rows @ weights, 20)]
    assert min(map(np.min, costs)) < 10 + 0.5 * (default @ weights)
