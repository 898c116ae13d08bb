"""Tests of significance, ranks, complete blocks and profiles."""

import itertools

import numpy as np
import pytest
import scipy.stats

from bbo_suite.stats import (
    complete_block,
    holm,
    performance_profile,
    rank_sum_p,
    rank_sum_p_values,
    ranking,
    signed_rank_p,
    stratified_rank_sum,
)

DEMSAR = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.975, 0.974],
        [0.957, 0.978, 0.946, 0.970],
    ]
)
"""After Demsar 2006 (JMLR 7), table 6: four learners on 14 data sets; the ranks are its own, last digits may differ."""


def test_ranking_against_the_published_example():
    """Demsar 2006, section 3.2.2: mean ranks, and a critical difference of 1.25."""
    found = ranking(DEMSAR)
    assert found.ranks == pytest.approx([3.143, 2.000, 2.893, 1.964], abs=5e-4)
    assert found.difference == pytest.approx(1.25, abs=5e-3)
    assert found.p < 0.05


@pytest.mark.slow
def test_the_critical_difference_agrees_with_posthoc_p_values():
    posthocs = pytest.importorskip("scikit_posthocs")
    found = ranking(DEMSAR)
    p = posthocs.posthoc_nemenyi_friedman(DEMSAR).to_numpy()
    apart = np.abs(found.ranks[:, None] - found.ranks) > found.difference
    assert np.array_equal(apart, p < 0.05)


def test_two_strategies_and_ties_everywhere():
    assert np.isnan(ranking([[1, 2], [1, 2]]).p)
    assert ranking(np.ones((5, 3))).p == 1 and ranking(np.ones((5, 3))).ranks.tolist() == [2, 2, 2]


@pytest.mark.slow
def test_holm_against_statsmodels():
    multitest, rng = pytest.importorskip("statsmodels.stats.multitest"), np.random.default_rng(0)
    for size in (1, 2, 7, 30):
        p_values = rng.random(size) ** 3
        expected = multitest.multipletests(p_values, method="holm")[1]
        assert holm(p_values) == pytest.approx(expected)


def test_wilcoxon_against_the_published_example():
    """Demsar 2006, section 3.1.3: C4.5 without and with m, smaller sum of ranks 12, significant at 5 %."""
    differences = DEMSAR[:, 1] - DEMSAR[:, 0]
    ranks = scipy.stats.rankdata(np.abs(differences.round(3)))
    assert ranks[differences < 0].sum() + ranks[differences == 0].sum() / 2 == 12
    assert signed_rank_p(DEMSAR[:, 0], DEMSAR[:, 1]) < 0.05
    assert signed_rank_p([1, 2, 3], [1, 2, 3]) == 1


def test_wilcoxon_against_all_signs():
    pairs = np.array([0.3, -1.0, 2.0, 4.0, 5.5, 7.0])
    ranks = scipy.stats.rankdata(np.abs(pairs))
    sums = [ranks @ signs for signs in itertools.product([0, 1], repeat=6)]
    observed = min(ranks[pairs > 0].sum(), ranks[pairs < 0].sum())
    assert signed_rank_p(pairs, np.zeros(6)) == pytest.approx(2 * np.mean(np.array(sums) <= observed))


def test_p_values_of_many_pairs_equal_those_of_each():
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 9, (40, 2))
    pairs = [
        (rng.random(n), rng.random(m)) if n % 2 else (rng.integers(0, 3, n), rng.integers(0, 3, m)) for n, m in sizes
    ]
    calls = [rank_sum_p(*pair) for pair in pairs]
    assert np.array_equal(rank_sum_p_values(pairs), calls, equal_nan=True) and len(set(calls)) > 9


def test_a_stratified_test_agrees_with_all_permutations_within_tasks():
    pairs = [([3.0, 5.0], [1.0, 4.0]), ([2.0, 9.0, 8.0], [1.0, 7.0])]
    lead, p, smallest = stratified_rank_sum(pairs, np.random.default_rng(0))
    leads = [0.0]
    for ours, theirs in pairs:
        ranks, n, m = scipy.stats.rankdata([*ours, *theirs]), len(ours), len(theirs)
        splits = [np.isin(range(n + m), chosen) for chosen in itertools.combinations(range(n + m), n)]
        own = [(ranks[split].mean() - ranks[~split].mean()) / (n + m) for split in splits]
        leads = [one + other for one in leads for other in own]
    exact = np.mean(np.abs(leads) >= abs(lead) - 1e-12)
    assert p == pytest.approx(exact, abs=0.02) and smallest == 2 / (6 * 10)
    assert lead == pytest.approx((3 - 2) / 4 + (11 / 3 - 2) / 5)
    assert stratified_rank_sum([(b, a) for a, b in pairs], np.random.default_rng(0))[0] == pytest.approx(-lead)


def test_a_stratified_test_of_one_task_is_the_exact_test_of_ranks():
    ours, theirs = [4.0, 5.0, 6.0, 7.0], [1.0, 2.0, 3.0, 3.5]
    assert stratified_rank_sum([(ours, theirs)], np.random.default_rng(0))[1] == rank_sum_p(ours, theirs)


@pytest.mark.parametrize("size", [2, 6, 9, 12, 30])
@pytest.mark.parametrize("ties", [False, True])
def test_the_signed_rank_test_is_the_exact_one_of_scipy(size, ties):
    rng = np.random.default_rng(size)
    ours, theirs = rng.normal(0.3, 1, size), np.zeros(size)
    if ties:
        ours = np.round(ours[: min(size, 9)])  # scipy enumerates all signs of few pairs only
        theirs = theirs[: len(ours)]
    expected = scipy.stats.wilcoxon(ours, theirs, zero_method="zsplit").pvalue
    assert signed_rank_p(ours, theirs) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_the_part_is_whole_and_no_other_with_as_many_columns_has_more_rows_where_columns_are_nested(seed):
    rng = np.random.default_rng(seed)
    ends = rng.integers(1, 7, 5)
    present = np.arange(6)[:, None] < ends  # each column has the rows of all shorter ones
    rows, columns = complete_block(present)
    assert present[rows][:, columns].all() and rows.any() and columns.sum() > 1
    sizes = [
        present[:, list(chosen)].all(axis=1).sum() * len(chosen)
        for k in range(2, 6)
        for chosen in itertools.combinations(range(5), k)
    ]
    assert rows.sum() * columns.sum() == max(sizes)


def test_two_columns_that_share_a_row_are_more_than_a_long_one_alone():
    rows, columns = complete_block([[1, 1], [1, 0], [1, 0], [1, 0]])
    assert rows.tolist() == [True, False, False, False] and columns.all()


def test_columns_that_share_nothing_leave_the_longest():
    rows, columns = complete_block([[1, 0], [1, 0], [0, 1]])
    assert rows.tolist() == [True, True, False] and columns.tolist() == [True, False]


def test_nothing_is_complete_block():
    assert [part.tolist() for part in complete_block(np.empty((0, 0)))] == [[], []]


def test_performance_profile():
    costs = [[1, 2, 4], [3, 1, np.inf], [np.inf, np.inf, np.inf]]
    expected = [[1 / 3, 1 / 3, 2 / 3], [1 / 3, 2 / 3, 2 / 3], [0, 0, 1 / 3]]
    assert performance_profile(costs, [1, 2, 4]) == pytest.approx(np.array(expected))
