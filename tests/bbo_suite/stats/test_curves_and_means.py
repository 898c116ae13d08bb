import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from bbo_suite.stats import area_under, best_so_far, fraction_of_optimum, mean_interval, quartiles

NUMBERS = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30).filter(lambda x: np.std(x) > 1e-3)


@given(NUMBERS, st.floats(0.5, 0.999))
def test_mean_interval_against_scipy(numbers, confidence):
    mean, low, high = mean_interval(numbers, confidence)
    expected = scipy.stats.t.interval(confidence, len(numbers) - 1, np.mean(numbers), scipy.stats.sem(numbers))
    assert (low, high) == pytest.approx(expected, rel=1e-6, abs=1e-6) and mean == pytest.approx(np.mean(numbers))


def test_mean_interval_against_a_published_example():
    """NIST/SEMATECH e-Handbook, 1.3.5.2: 195 numbers, mean 9.261460, sd 0.022789, 95%: 9.258242 to 9.264679."""
    shape = np.linspace(-1, 1, 195)
    numbers = 9.261460 + 0.022789 * shape / shape.std(ddof=1)
    assert mean_interval(numbers) == pytest.approx((9.261460, 9.258242, 9.264679), abs=1e-6)


def test_one_number_has_no_interval_and_equal_ones_an_empty_one():
    mean, low, high = mean_interval([3.0])
    assert mean == 3 and np.isnan(low) and np.isnan(high)
    assert mean_interval([2.0, 2.0, 2.0]) == (2, 2, 2)


VALUES = st.lists(st.floats(0) | st.just(np.inf), min_size=1, max_size=40)


@given(VALUES)
def test_best_so_far_against_pandas(values):
    assert best_so_far(values).tolist() == pd.Series(values, dtype=float).cummin().tolist()


def test_best_so_far_of_many_runs():
    assert best_so_far([[3, 1, 2], [np.inf, 5, 6]]).tolist() == [[3, 1, 1], [np.inf, 5, 5]]


@given(st.lists(st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=3), min_size=1, max_size=20))
def test_quartiles_against_pandas(runs):
    expected = pd.DataFrame(runs).quantile([0.25, 0.5, 0.75]).to_numpy()
    assert quartiles(runs) == pytest.approx(expected)


def test_area_under_holds_the_last_value():
    assert area_under([[1, 2, 3], [2, 2, 2]], 5).tolist() == [(1 + 2 + 3 + 3 + 3) / 5, 2]
    with pytest.raises(ValueError, match="do not fit"):
        area_under([1, 2, 3], 2)


def test_fraction_of_optimum():
    assert fraction_of_optimum([2, 4, np.inf], 2).tolist() == [1, 0.5, 0]
    assert fraction_of_optimum([0, 4], 0).tolist() == [1, 0]
