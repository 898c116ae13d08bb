"""What is computed: against hand calculation, scipy and brute force; and numbers and lists as text."""

import itertools

import numpy as np
import pytest
from scipy import stats

from bbo_suite.core.quantities import with_noun
from bbo_suite.figures.heat import heat_data
from bbo_suite.report import formatting, provenance, rankings, read_study, targets
from bbo_suite.report.compare import rows_of
from bbo_suite.report.drawings import compared_rows
from bbo_suite.report.rankings import overviews, pairwise
from bbo_suite.scores import scores
from bbo_suite.stats import difference_interval, rank_sum_p, smallest_rank_sum_p, smallest_signed_rank_p
from bbo_suite.store import rows


def test_a_record_holds_what_its_rows_add_up_to(studies):
    studies.add({("p/a", "x", 0): [9, np.inf, 4, 9, 4, 2]}, budget=10, ended="")
    (record,) = studies.data().runs
    assert (record.evaluations, record.unique, record.ended) == (6, 4, "")
    assert (dict(record.failures), dict(record.reasons)) == ({"timeout": 1}, {"took too long": 1})
    assert (record.strategy_seconds, record.evaluation_seconds) == (3.0, 1.5)
    assert [record.best(n) for n in range(8)] == [np.inf, 9, 9, 4, 4, 4, 2, 2]
    assert record.speedup(3) == 2 and record.speedup(0) == 0
    assert record.noise == 0


def test_noise_is_how_much_one_candidate_differs(studies, monkeypatch):
    studies.add({("p/a", "x", 0): [4, 5], ("p/a", "y", 0): [4, np.inf], ("p/a", "z", 0): [4, 5]})
    for strategy in ("x", "y"):
        studies.with_digests("p/a", strategy, "0" * 16, "0" * 16)
    x, y, z = studies.data().runs
    assert (x.noise, y.noise) == (pytest.approx(0.25), np.inf)
    assert np.isnan(z.noise)


def test_of_candidates_without_digests_neither_noise_nor_repeats_are_claimed(studies):
    studies.add({("p/a", "x", 0): [4, 5, 5]})
    studies.with_digests("p/a", "x", "", "", "")
    (record,) = studies.data().runs
    assert np.isnan(record.noise) and np.isnan(record.unique)
    assert "noise" not in {limit.kind for limit in studies.page().limits}


@pytest.mark.parametrize(
    ("lengths", "ended", "budgets", "at", "used"),
    [
        ([4, 4], ["budget"] * 2, [4, 4], 4, 2),
        ([4, 6], ["budget"] * 2, [4, 6], 4, 2),  # unequal budgets
        ([6, 2], ["budget", ""], [6, 6], 6, 1),  # an unfinished run does not pull the others down
        ([6, 6], ["budget", ""], [6, 9], 6, 2),  # unless it is long enough
        ([3, 2], ["", ""], [9, 9], 2, 2),  # nothing is finished yet
        ([2, 6], ["covered", "budget"], [6, 6], 6, 2),  # nothing more was to be found
        ([2, 6], ["time", "budget"], [6, 6], 2, 2),
        ([0, 6], ["", "budget"], [6, 6], 6, 1),
    ],
)
def test_everybody_is_judged_after_equally_many_evaluations(studies, lengths, ended, budgets, at, used):
    for seed, (length, reason, budget) in enumerate(zip(lengths, ended, budgets, strict=True)):
        studies.add({("p/a", "x", seed): [8.0] * length}, ended=reason, budget=budget)
    found = scores(studies.data().runs)
    assert (found.cutoffs, len(found.compared)) == ({"p/a": at}, used)


def test_welch_and_mann_whitney_are_scipys():
    rng = np.random.default_rng(0)
    ours, theirs = rng.normal(1.1, 0.1, 7), rng.normal(1.0, 0.3, 5)
    welch = stats.ttest_ind(ours, theirs, equal_var=False).confidence_interval()
    assert difference_interval(ours, theirs) == pytest.approx((ours.mean() - theirs.mean(), welch.low, welch.high))
    assert rank_sum_p(ours, theirs) == stats.mannwhitneyu(ours, theirs).pvalue
    assert rank_sum_p(np.ones(3), np.ones(4)) == 1
    assert difference_interval(np.ones(3), np.full(3, 2.0)) == (-1, -1, -1)
    assert np.isnan(difference_interval(np.ones(1), np.ones(3))[1:]).all()
    assert np.isnan(difference_interval(np.array([np.inf, 1]), np.ones(2))).all()
    assert np.isnan(rank_sum_p(np.ones(1), np.ones(3)))


def test_small_samples_with_ties_are_tested_exactly():
    assert rank_sum_p(np.ones(3), np.full(3, 2.0)) == pytest.approx(0.1)  # 1 of 20 ways to deal them, two-sided
    ours, theirs = np.array([1.0, 1, 2, 3]), np.array([2.0, 3, 3, 4, 5])
    ranks = stats.rankdata([*ours, *theirs])
    sums = np.array([ranks[list(dealt)].sum() for dealt in itertools.combinations(range(9), 4)])
    assert rank_sum_p(ours, theirs) == pytest.approx(2 * np.mean(sums <= ranks[:4].sum()))


@pytest.mark.parametrize(("n", "m"), [(2, 2), (3, 5), (5, 5), (7, 4)])
def test_no_test_gives_less_than_the_smallest(n, m):
    apart = stats.mannwhitneyu(np.arange(n), np.arange(m) + n, method="exact").pvalue
    assert smallest_rank_sum_p(n, m) == pytest.approx(apart)
    assert smallest_signed_rank_p(n) == pytest.approx(stats.wilcoxon(1.0 + np.arange(n), method="exact").pvalue)


def test_a_better_mean_that_ranks_contradict_is_not_significant(studies):
    studies.add(studies.finals("p/a", lucky=[7.9] * 9 + [0.1], steady=[6.0] * 10))
    found = studies.judgement().problems["p/a"]
    assert list(found.means) == ["lucky", "steady"] and found.pair("lucky", "steady").holm < 0.01
    assert not found.pair("lucky", "steady").significant and found.pair("steady", "lucky").significant
    assert found.verdict(["lucky", "steady"]).contrary == ["steady"]


def test_a_geometric_mean_that_ranks_contradict_is_not_significant(studies):
    for number in range(12):
        studies.add(studies.finals(f"p/{number}", lucky=[0.1 if number == 3 else 7 + number / 100], steady=[6]))
    found = studies.judgement().overall
    assert list(found.means) == ["lucky", "steady"] and found.pair("lucky", "steady").holm < 0.05
    assert found.verdict(["lucky", "steady"]).contrary == ["steady"] and not found.pair("lucky", "steady").significant


def test_pairs_over_problems_against_scipy(studies):
    rng = np.random.default_rng(1)
    for number in range(7):
        finals = {name: 4 + rng.random(3) + 0.3 * place for place, name in enumerate("xyz")}
        studies.add(studies.finals(f"p/{number}", **finals))
    judged = studies.judgement()
    table = judged.scores.table
    found = judged.overall.pair("x", "y")
    logs = np.log(table["x"] / table["y"])
    bounds = stats.t.interval(0.95, 6, logs.mean(), logs.std(ddof=1) / np.sqrt(7))
    assert (found.gap, found.low, found.high) == pytest.approx(np.exp([logs.mean(), *bounds]))
    assert found.p == pytest.approx(stats.wilcoxon(table["x"], table["y"]).pvalue)
    assert (found.problems, found.wins, found.ties) == (7, (table["x"] > table["y"]).sum(), 0)
    speedups = judged.scores.speedups
    better = [[a > b for a in speedups[p, "x"] for b in speedups[p, "y"]] for p in judged.scores.cutoffs]
    assert found.improvement == pytest.approx(np.mean(better))
    turned = judged.overall.pair("y", "x")
    assert (turned.gap, turned.low, turned.high) == pytest.approx((1 / found.gap, 1 / found.high, 1 / found.low))
    assert (turned.wins + found.wins, turned.improvement + found.improvement) == (7, pytest.approx(1))
    p = sorted(pair.p for pair in judged.overall.pairs)
    assert min(pair.holm for pair in judged.overall.pairs) == pytest.approx(min(1, 3 * p[0]))
    assert judged.overall.smallest_p == pytest.approx(3 * 2 / 2**7)
    means = np.exp(np.log(table).mean())
    assert {name: mean[0] for name, mean in judged.overall.means.items()} == pytest.approx(means.to_dict())


def test_the_table_over_problems_leaves_no_gaps(studies):
    for number in range(3):
        studies.add(studies.finals(f"p/{number}", x=[4, 4], y=[5, 4]))
    studies.add(studies.finals("p/0", z=[2, 2]))
    judged = studies.judgement()
    assert judged.scores.complete.shape == (3, 2)
    rows = next(overviews(judged, np.random.default_rng(0))).rows
    assert [(row[0].text, row[3].text, row[4].text) for row in rows] == [("x", "1.00", "3"), ("y", "2.00", "0")]
    # x's gain is a third of z's on p/0 and the best elsewhere: of 1/3 1/3 1 1 1 1 one is left out at each end
    assert rows[0][2].text == "0.83 (0.83 to 0.83)"
    assert [row[2].text for row in pairwise(judged).rows if row[0].text == "z"] == ["1–0–0", "1–0–0"]


def test_expected_running_times_by_hand(studies):
    studies.add({("p/a", "x", 0): [8, 4, 4, 4], ("p/a", "x", 1): [8, 8, 8, 6], ("p/a", "y", 0): [8, 8, 8, 8]})
    x, y = targets.running_times(studies.judgement().scores).rows
    # the best speedup is 2, so half of its gain is 1.5, a cost of 5.33: after 2 evaluations, and never of 4
    assert [cell.text for cell in x[2:]] == ["2.0000", "6 (1/2)", "6 (1/2)", "6 (1/2)"]
    assert [cell.text for cell in y[3:]] == ["– (0/1)"] * 3


def test_a_gain_that_is_next_to_nothing_has_no_shares(studies):
    studies.add(studies.finals("p/a", x=[8 / (1 + 2e-7), 8], y=[8, 8]) | studies.finals("p/b", x=[6, 6], y=[4, 4]))
    judged = studies.judgement()
    rows = rankings.speedups(judged.scores).rows
    assert [row[-1].text for row in rows] == ["–", "–", "33 %", "100 %"]
    middles = {row[0].text: row[2].text for row in next(overviews(judged, np.random.default_rng(0))).rows}
    assert middles == {"x": "0.33 (0.33 to 0.33)", "y": "1.00 (1.00 to 1.00)"}
    assert {row[0].text for row in targets.running_times(judged.scores).rows} == {"p/b"}
    assert ("tiny gain", ("p/a",)) in {(limit.kind, limit.about) for limit in studies.page().limits}


def test_figures_show_what_the_tables_judge(studies):
    studies.add({("p/a", "x", 0): [8, 4, 4], ("p/b", "x", 0): [8, 4]})
    studies.add({("p/a", "x", 1): [8], ("p/a", "y", 0): [8, 6, 5, 2]}, ended="", budget=9)
    data, found = studies.data(), studies.judgement()
    shown = compared_rows(data.frame, found.scores)
    kept = {key: run["value"].tolist() for key, run in shown.groupby(["problem", "strategy", "seed"], observed=True)}
    assert kept == {("p/a", "x", 0): [8, 4, 4], ("p/a", "y", 0): [8, 6, 5], ("p/b", "x", 0): [8, 4]}
    drawn = {(c.problem, c.strategy): c.speedup for c in heat_data(shown).itertuples()}
    assert drawn == {(mean.problem, mean.strategy): mean.mean for mean in found.scores.means}


def test_candidates_and_seconds_by_hand(studies):
    studies.add({("p/a", "x", 0): [8, 4, 4, np.inf], ("p/a", "x", 1): [8, 7]}, structure=("x",))
    (row,) = provenance.spending(studies.judgement().scores).rows
    assert [cell.text for cell in row] == ["p/a", "x *", "2", "6", "83.3 %", "16.7 %", "1.5", "0.75", "500"]


def test_two_studies_are_compared_after_equally_many_evaluations(studies):
    studies.add({("p/a", "x", i): [8, 4] for i in (0, 1)} | {("p/b", "x", 0): [8, 4]})
    studies.add({("p/a", "x", i): [8, 5, 1, 1] for i in (0, 1, 2)} | {("p/a", "y", 0): [8, 8, 8, 8]}, name="t")
    (row,) = rows_of(studies.data(), studies.data("t"))
    assert (row.problem, row.strategy, row.cutoff) == ("p/a", "x", 2)
    assert (row.ours.tolist(), row.theirs.tolist()) == ([2, 2], [1.6, 1.6, 1.6])


def test_long_runs_are_counted_without_their_rows(studies, monkeypatch):
    studies.add({("p/a", "x", 0): [8, 4, 5], ("p/a", "y", 0): [8, np.inf, 2, 2, 7], ("p/b", "x", 1): [3]})
    whole = [run.facts("") for run in studies.data().runs]
    monkeypatch.setattr(rows, "PIECE", 200)
    few = read_study("s", studies.path, with_rows=False)
    assert [run.facts("") for run in few.runs] == whole and few.frame.empty


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (1.0, "0 %"),
        (1.012, "1.2 %"),
        (1.00123, "0.12 %"),
        (0.9, "-10 %"),
        (1.1, "10 %"),
        (3, "200 %"),
        (1e5, "9,999,900 %"),
    ],
)
def test_percent(ratio, text):
    assert formatting.percent(ratio) == text


def test_lists_and_counts():
    lists = [formatting.listed(names) for names in ([], ["a"], ["a", "b"], "abc")]
    assert lists == ["none", "a", "a and b", "a, b and c"]
    assert formatting.listed(map(str, range(9)), 3) == "0, 1 and 7 more"
    assert [with_noun(n, "strategy") for n in (1, 1000)] == ["1 strategy", "1,000 strategies"]


def test_p_values_and_speedups():
    assert [formatting.p_value(p) for p in (np.nan, 1e-9, 0.0123, 1.0)] == ["–", "< 0.001", "0.012", "1"]
    speedups = [formatting.speedup(x) for x in (np.inf, np.nan, 1.00012, 123.4, 1e9)]
    assert speedups == ["infinite", "–", "1.0001", "123", "1e+09"]


@pytest.mark.parametrize(
    ("part", "shown"), [(0, "none"), (1, "all"), (9990 / 10_000, "99.9 %"), (9999 / 10_000, "99.9 %"), (1e-5, "0.1 %")]
)
def test_only_all_is_all_and_only_none_is_none(part, shown):
    assert formatting.share(part) == shown
