"""Curves, means, their intervals, times to a target; tests of significance, ranks, complete blocks, profiles.

Pairs in turns: the interval is that of an exact test, sequential looks are rarely wrong, losers cost few runs.
"""

import itertools
import math
from itertools import combinations, count

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wilcoxon

from bbo_suite.stats import (
    area_under,
    best_so_far,
    bootstrap_interval,
    complete_block,
    expected_best,
    expected_running_time,
    first_hits,
    fraction_of_optimum,
    holm,
    interquartile_mean,
    mean_interval,
    over_random,
    performance_profile,
    probability_of_improvement,
    quartiles,
    random_needs,
    rank_sum_p,
    rank_sum_p_values,
    ranking,
    runtime_ecdf,
    signed_rank_p,
    stratified_rank_sum,
)
from bbo_suite.timing import LOOKS, noise_of, pair, ratio, screened, settled

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


@pytest.mark.slow
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


@pytest.mark.slow
def test_bootstrap_against_scipy_on_one_task():
    scores = np.random.default_rng(1).gamma(2, size=40)
    expected = scipy.stats.bootstrap((scores,), np.mean, n_resamples=20_000, method="percentile", rng=2)
    found = bootstrap_interval([scores], lambda s: s[0].mean(axis=-1), np.random.default_rng(3), samples=20_000)
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


def test_random_search_needs_what_closes_the_gap():
    """Of 1, 2, 3, 5, 9 the best of 1, 2, 3, 4, 5 draws is expected to cost 4, 2.1, 1.5, 1.2, 1; the median is 3."""
    costs = [9.0, 1.0, 5.0, 3.0, 2.0]
    assert expected_best(costs, range(1, 6)) == pytest.approx([4, 2.1, 1.5, 1.2, 1])
    assert [random_needs(costs, share) for share in (0.0, 0.3, 0.5, 0.7, 0.85, 0.95, 1.0)] == [2, 2, 3, 3, 4, 5, 5]
    assert random_needs([7.0], 0.95) == 1


def test_over_random_is_0_at_random_and_1_at_the_optimum():
    found = over_random([8, 6, 4, 9], [8, 8, 8, 8], optimum=4)
    assert found.tolist() == [0, 0.5, 1, -0.25]
    assert np.isnan(over_random([4, 9], [4, 4 + 1e-9], optimum=4)).all()


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


@pytest.mark.parametrize("size", [10, 20, 40])
def test_the_interval_holds_what_the_signed_rank_test_does_not_refuse(size):
    logs = np.random.default_rng(size).standard_t(3, size) * 0.05 + 0.02
    found = ratio(logs.tolist())
    for end, outward in ((found.low, -1), (found.high, 1)):
        inside, outside = (math.log(end) - outward * step for step in (1e-9, -1e-9))
        assert (
            wilcoxon(logs - inside, method="exact").pvalue > 0.0129 >= wilcoxon(logs - outside, method="exact").pvalue
        )
    assert found.low < found.value < found.high


@pytest.mark.parametrize(
    ("logs", "verdict"),
    [([0.1, -0.1] * 5, "not shown"), ([-0.1 - i / 1e3 for i in range(10)], "faster"), ([0.1] * 10, "slower")],
)
def test_the_verdict_is_where_the_interval_lies(logs, verdict):
    assert ratio(logs).verdict == verdict


def test_few_pairs_show_nothing_and_a_failure_is_infinitely_dear():
    assert (ratio([0.5] * 5).low, ratio([0.5] * 5).high) == (0, math.inf)
    assert ratio([0.0] * 10 + [math.inf]).value == math.inf


@pytest.mark.slow
@pytest.mark.parametrize("spread", ["normal", "heavy"])
def test_looking_again_and_again_finds_few_gains_where_there_are_none(spread):
    rng = np.random.default_rng(1)
    draw = (lambda: rng.normal(0, 0.05)) if spread == "normal" else lambda: 0.02 * rng.standard_t(2)
    found = [settled(draw() for _ in count()) for _ in range(200)]
    wrong = sum(each.verdict != "not shown" for each in found)
    assert wrong <= 18  # 5 % of 200, and three standard deviations more
    assert {each.pairs for each in found} <= {*LOOKS}


def test_a_clear_gain_ends_at_the_first_look_and_time_ends_it_after_that():
    rng = np.random.default_rng(0)
    assert settled(-0.3 + rng.normal(0, 0.01) for _ in count()).pairs == LOOKS[0]
    assert settled((rng.normal(0, 0.5) for _ in count()), seconds=0).pairs == LOOKS[0]


def test_which_program_runs_first_alternates():
    order = []
    costs = {"a": 2.0, "b": 1.0}
    run = {name: lambda name=name: order.append(name) or costs[name] for name in costs}
    assert [pair(run["a"], run["b"], number) for number in range(2)] == [math.log(2)] * 2
    assert order == ["b", "a", "a", "b"]


@pytest.mark.parametrize(("slower", "runs"), [(1.5, 1), (1.04, 3), (1.0, 16), (0.9, 16)])
def test_repeats_are_for_what_may_be_the_best(slower, runs):
    counted = count(1)
    last = [0]

    def candidate():
        last[0] = next(counted)
        return slower

    assert screened(candidate, lambda: 1.0, noise=0.02, best=1.0) == pytest.approx(slower)
    assert last[0] == runs


def test_noise_is_that_of_a_ratio_of_equal_programs():
    rng = np.random.default_rng(0)
    noise, cost = noise_of(lambda: math.exp(rng.normal(0, 0.1)), pairs=2000)
    assert noise == pytest.approx(0.1 * math.sqrt(2), rel=0.1) and cost == pytest.approx(1, rel=0.02)
