from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bbo_suite.stats import expected_best, over_random


@given(st.lists(st.floats(0, 100), min_size=1, max_size=7))
def test_expected_best_against_all_draws(costs):
    budgets = np.arange(1, len(costs) + 1)
    every = [np.mean([min(drawn) for drawn in combinations(costs, n)]) for n in budgets]
    assert expected_best(costs, budgets) == pytest.approx(every)


def test_over_random_is_0_at_random_and_1_at_the_optimum():
    found = over_random([8, 6, 4, 9], [8, 8, 8, 8], optimum=4)
    assert found.tolist() == [0, 0.5, 1, -0.25]
    assert np.isnan(over_random([4], [4], optimum=4))
