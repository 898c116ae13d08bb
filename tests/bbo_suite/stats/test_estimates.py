"""Curves, means and their intervals, times to a target, and what random search expects."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from bbo_suite.stats import (
    area_under,
    best_so_far,
    bootstrap_interval,
    expected_best,
    expected_running_time,
    first_hits,
    fraction_of_optimum,
    interquartile_mean,
    mean_interval,
    over_random,
    probability_of_improvement,
    quartiles,
    runtime_ecdf,
)

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


COSTS = st.lists(st.lists(st.integers(0, 9), min_size=6, max_size=6), min_size=1, max_size=5)


@given(COSTS, st.lists(st.integers(0, 9), min_size=1, max_size=4))
def test_first_hits_against_a_walk(runs, targets):
    hits = first_hits(best_so_far(runs), targets)
    for run, costs in enumerate(runs):
        for place, target in enumerate(targets):
            walked = next((i + 1 for i, cost in enumerate(costs) if cost <= target), np.inf)
            assert hits[run, place] == walked


def test_expected_running_time_as_coco_defines_it():
    """Two of three runs reach the target, after 10 and 40 of 100 evaluations: (10 + 40 + 100) / 2."""
    assert expected_running_time([[10, np.inf], [40, np.inf], [np.inf, np.inf]], [100, 100, 100]).tolist() == [
        75,
        np.inf,
    ]


@given(COSTS, st.lists(st.integers(0, 9), min_size=1, max_size=4))
def test_the_ecdf_counts_pairs(runs, targets):
    hits = first_hits(best_so_far(runs), targets)
    for n, share in zip(range(1, 7), runtime_ecdf(hits, range(1, 7)), strict=True):
        assert share == np.mean(hits <= n)


@given(st.lists(st.floats(0, 100), min_size=1, max_size=7))
def test_expected_best_against_all_draws(costs):
    budgets = np.arange(1, len(costs) + 1)
    every = [np.mean([min(drawn) for drawn in combinations(costs, n)]) for n in budgets]
    assert expected_best(costs, budgets) == pytest.approx(every)


def test_over_random_is_0_at_random_and_1_at_the_optimum():
    found = over_random([8, 6, 4, 9], [8, 8, 8, 8], optimum=4)
    assert found.tolist() == [0, 0.5, 1, -0.25]
    assert np.isnan(over_random([4], [4], optimum=4))
