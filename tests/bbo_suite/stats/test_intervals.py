import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from bbo_suite.stats import bootstrap_interval, interquartile_mean, probability_of_improvement

SCORES = st.lists(st.integers(0, 6), min_size=1, max_size=12)


@given(st.lists(st.tuples(SCORES, SCORES), min_size=1, max_size=4))
def test_probability_of_improvement_against_scipy(tasks):
    ours, theirs = zip(*tasks, strict=True)
    each = [scipy.stats.mannwhitneyu(a, b).statistic / (len(a) * len(b)) for a, b in tasks]
    assert probability_of_improvement(ours, theirs) == pytest.approx(np.mean(each))


def test_interquartile_mean_drops_a_quarter_at_each_end():
    assert interquartile_mean([[1, 1000], [3, 5], [-7, 4], [6, 2]]) == pytest.approx((2 + 3 + 4 + 5) / 4)


def test_bootstrap_against_scipy_on_one_task():
    scores = np.random.default_rng(1).gamma(2, size=40)
    expected = scipy.stats.bootstrap((scores,), np.mean, n_resamples=20_000, method="percentile", rng=2)
    found = bootstrap_interval([scores], lambda s: float(s[0].mean()), np.random.default_rng(3), samples=20_000)
    assert found == pytest.approx(tuple(expected.confidence_interval), abs=0.01)


def test_bootstrap_draws_within_tasks_and_only_from_its_generator():
    tasks = [[1.0, 1.0, 1.0], [50.0, 50.0]]  # between tasks only: nothing varies within one
    low, high = bootstrap_interval(tasks, interquartile_mean, np.random.default_rng(0), samples=50)
    assert low == high == interquartile_mean(tasks)
    spread = [[1.0, 2.0, 5.0], [50.0, 60.0]]
    first, again = (bootstrap_interval(spread, interquartile_mean, np.random.default_rng(7), samples=99) for _ in "ab")
    assert first == again
