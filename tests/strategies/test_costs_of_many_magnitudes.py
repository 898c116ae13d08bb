"""Costs that stand for failures and are many orders of magnitude larger than others do not set a temperature."""

import numpy as np
import pytest

from bbo_strategies.annealing import Annealing
from bbo_strategies.mbo import ModelBasedOptimization
from bbo_strategies.neighbours import CostDifferences
from bbo_suite import Space
from bbo_suite.testing import start


def test_impossible_costs_do_not_let_annealing_accept_all_others():
    searching = start(Annealing, Space([4] * 10), 1000)
    rows = searching.ask(20)
    values = np.where(np.arange(len(rows)) % 4, 1e18, 1000.0)
    values[0] = 1001.0
    searching.tell(rows, values)
    searching.told = searching.budget
    searching._cool()
    assert not searching._accepts(np.full(100, 2000.0), 1000.0).any()


def test_models_see_logarithms_of_such_costs():
    searching = start(ModelBasedOptimization, Space([4] * 10), 1000)
    rows = searching.ask(20)
    searching.tell(rows, np.where(np.arange(len(rows)) % 4, 1e18, 1000.0))
    differences = searching._neighbours._differences(1000.0, np.array([1e18, 2000.0, 4000.0]))
    assert differences[0] == pytest.approx(1.0)
    assert differences[2] == pytest.approx(2 * differences[1])


def test_ordinary_costs_are_compared_as_they_are():
    differences = CostDifferences()
    differences.learn(2.0, np.array([1.0, 5.0, 2.0, np.inf, 1e5]))
    assert not differences.logarithmic
    assert differences.median == 3.0


def test_a_factor_of_a_million_makes_differences_logarithmic():
    differences = CostDifferences()
    differences.learn(1.0, np.array([np.e, np.e**-2, 1e18]))
    assert differences.logarithmic
    assert differences.median == pytest.approx(2.0)
