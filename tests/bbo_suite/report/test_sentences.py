"""What the report says in words, of ordinary and of awkward studies."""

import re
import shutil

import numpy as np
import pytest

from bbo_suite.report import formatting
from bbo_suite.report.answer import sentences
from bbo_suite.store.plan import RunName, add_planned

LEVEL = [8.0] * 2


def answer(studies):
    return " ".join(sentences(studies.judgement()))


def limits(studies):
    return " ".join(studies.page().limits)


def test_a_clear_winner_on_one_problem(studies):
    studies.add(studies.finals("p/a", x=[4, 4.1, 4.2, 4.3, 4.4], y=[6, 6.1, 6.2, 6.3, 6.4]))
    text = answer(studies)
    assert "x is the best of 2 strategies that see only costs: mean speedup 1.9069 (95 % interval " in text
    assert "on p/a after 2 evaluations" in text
    assert "x is significantly better than y (by 0.6159, 95 % interval " in text
    assert "p = 0.0079" in text  # 2 / (10 choose 5)
    assert "tie" not in text


def test_a_mean_that_rests_on_one_run_is_not_called_better(studies):
    studies.add(studies.finals("p/a", lucky=[7.9] * 9 + [0.1], steady=[6.0] * 10, slow=[7.99] * 10))
    text = answer(studies)
    assert "lucky is ahead of steady (by " in text
    assert "in the mean only, which rests on a few runs: by rank it is significantly worse" in text
    assert "lucky is significantly better than slow" in text and "better than steady" not in text
    assert "by the mean only: by rank significantly worse than steady" in studies.html()


def test_a_winner_over_problems_and_a_tie(studies):
    rng = np.random.default_rng(0)
    for number in range(8):
        x = 4 + 0.1 * rng.random(3)
        studies.add(studies.finals(f"p/{number}", x=x, y=x + (-1) ** number * 0.01 * rng.random(3), z=x * 1.5))
    text = answer(studies)
    assert (
        "of 3 strategies that see only costs: geometric mean speedup 1.9" in text
        and "over 8 problems after 2 evaluations" in text
    )
    assert "is significantly better than z (by 5" in text and "p = 0.023" in text  # 3 / 2^7
    assert "is not told apart from" in text and "read these as ties" in text
    assert "significantly better than all others of its kind on none" in text


def test_strategies_that_see_structure_are_judged_apart(studies):
    runs = studies.finals("p/a", blind=[6, 6.1, 6.2, 6.3], other=[7, 7.1, 7.2, 7.3], seeing=[4, 4.1, 4.2, 4.3])
    studies.add(runs, structure=("seeing",))
    text = answer(studies)
    assert text.startswith("blind is the best of 2 strategies that see only costs")
    assert "seeing is the only strategy that sees the structure to judge" in text
    assert "Structure: seeing is ahead of blind (by 0.6" in text
    assert "too little data for a test of that" in text  # three pairs of four runs each: p is 0.086 at least
    assert "5 repeats would do" in limits(studies)
    assert "seeing *" in studies.html()


def test_structure_beside_none(studies):
    studies.add(studies.finals("p/a", one=[4, 4], two=[5, 5]), structure=("one", "two"))
    text = answer(studies)
    assert "one is the best of 2 strategies that see the structure" in text
    assert "only costs" not in text and "Structure:" not in text


def test_ties_everywhere(studies):
    for problem in ("p/a", "p/b"):
        studies.add(studies.finals(problem, x=[4, 4], y=[4, 4], z=[4, 4]))
    text = answer(studies)
    assert "x, y and z tie as the best of 3 strategies that see only costs, to the last digit: geometric" in text
    assert "Problem by problem (2 with several strategies that see only costs): 2 ties." in text
    assert "a tie with y and z" in studies.html()


def test_one_run(studies):
    studies.add({("p/a", "x", 0): [8, 4]})
    assert (
        answer(studies)
        == "x is the only strategy that sees only costs to judge: mean speedup 2.0000 on p/a after 2 evaluations."
    )
    assert "compares nothing" in limits(studies)


def test_one_repeat_on_one_problem(studies):
    studies.add(studies.finals("p/a", x=[4], y=[5]))
    assert "x is ahead of y (by 0.4000); there is too little data for a test of that" in answer(studies)
    text = limits(studies)
    assert "Every strategy: one run only, so there is no interval and no test" in text
    assert "With one problem nothing can be said about others than p/a" in text


def test_one_repeat_on_several_problems(studies):
    for number in range(4):
        studies.add(studies.finals(f"p/{number}", x=[4 + 0.1 * number], y=[5]))
    assert "too little data for a test" in answer(studies)
    text = limits(studies)
    assert "4 problems are too few for a test over problems: corrected for 1 pair, p cannot fall below 0.12" in text
    assert "6 problems would do" in text


@pytest.mark.parametrize(("repeats", "problems", "said"), [(1, 3, 0), (2, 3, 1), (4, 3, 1), (5, 3, 0), (3, 1, 0)])
def test_bootstrapped_intervals_of_few_repeats_are_too_narrow(studies, repeats, problems, said):
    for number in range(problems):
        studies.add(studies.finals(f"p/{number}", x=[4 + 0.1 * i for i in range(repeats)], y=[5] * repeats))
    sentence = f"Intervals over problems are bootstrapped from {repeats} repeats, and too narrow"
    assert limits(studies).count(sentence) == limits(studies).count("bootstrapped") == said


def test_one_strategy(studies):
    studies.add(studies.finals("p/a", x=[4, 5]))
    assert "the only strategy that sees only costs to judge" in answer(studies)
    assert "Only x ran" in limits(studies)


def test_unequal_repeats_and_missing_runs(studies):
    studies.add(studies.finals("p/a", x=[4, 5, 6], y=[4]) | studies.finals("p/b", x=[4, 5, 6]))
    text = limits(studies)
    assert "y has 1 of 3 runs on p/a." in text and "y has no run on p/b." in text
    assert "y: one run only on p/a" in text
    assert "means over problems leave out p/b." in text
    assert answer(studies).startswith(
        "y is the best of 2 strategies that see only costs: geometric mean speedup 2.0000 over 1 problem"
    )


def test_those_that_lack_the_same_runs_are_named_together(studies):
    problems = [f"p/{number}" for number in range(9)]
    for number, name in enumerate(problems):
        studies.add(studies.finals(name, x=[4, 5], y=[5, 6], **({} if number else {"z": [4, 5], "w": [4, 5]})))
    text = limits(studies)
    assert "w and z have no run on p/1, p/2, p/3, p/4 and 4 more." in text and "x " not in text.split("no run")[0]


def test_pairs_that_met_on_more_problems_than_the_means_are_about_say_so(studies):
    for number in range(4):
        studies.add(studies.finals(f"p/{number}", x=[4, 5], y=[5, 6], **({"z": [4, 5]} if number else {})))
    assert "all problems that both ran, 3 to 4; the means are over the 3 that all of these ran." in answer(studies)
    studies.add(studies.finals("p/0", z=[4, 5]))
    assert "that both ran" not in answer(studies)


def test_unequal_budgets(studies):
    studies.add({("p/a", "x", 0): [8, 4], ("p/a", "y", 0): [8, 4, 2, 1]})
    text = limits(studies)
    assert "Budgets are unequal (2 and 4 evaluations)" in text
    assert "p/a is compared after 2 evaluations of 4, where the shortest of its runs ends" in text
    assert "x and y tie" in answer(studies)


def test_unfinished_and_empty_runs(studies):
    studies.add({("p/a", "x", 0): [8, 4, 4]})
    studies.add({("p/a", "y", 0): [8], ("p/a", "z", 0): []}, ended="", budget=3)
    (studies.folder("p/a", "z") / "error.txt").write_text("Traceback\nUserError: it broke\n")
    text = limits(studies)
    assert "Not finished: 2 of 3 runs. y on p/a, seed 0 (1 evaluation)" in text
    assert "z on p/a, seed 0 (nothing evaluated yet, stopped by UserError: it broke)" in text
    assert "Too short to be compared with the others, and left out: y on p/a, seed 0" in text


def test_nothing_evaluated(studies):
    studies.add({("p/a", "x", 0): []}, ended="", budget=3)
    assert answer(studies) == "Nothing was evaluated yet, so there is nothing to compare."
    assert "There is nothing to draw." in studies.html()


def test_damaged_runs_are_left_out(studies):
    studies.add({("p/a", name, 0): [8, 4] for name in ("v", "w", "x", "y", "z")})
    log = studies.folder("p/a", "x") / "rows.csv"
    log.write_text(log.read_text().replace("4.0", "four"))
    (studies.folder("p/a", "y") / "run.json").write_text("{")
    (studies.folder("p/a", "z") / "run.json").write_text('{"problem": "p/a"}')
    data = studies.data()
    assert [record.strategy for record in data.records] == ["v", "w"]
    assert len(data.frame) == 4
    text = limits(studies)
    assert text.count("A run is left out: ") == 3
    assert "is damaged" in text and "is no JSON" in text and "is missing in " in text


def test_a_run_that_is_there_twice_counts_once(studies):
    studies.add({("p/a", "x", 0): [8, 4]})
    shutil.copytree(studies.folder("p/a", "x"), studies.path / "s" / "a copy")
    assert "holds the same run as" in limits(studies)
    assert len(studies.data().records) == 1 and len(studies.data().frame) == 2


def test_an_end_that_cannot_be_read_is_none(studies):
    studies.add({("p/a", "x", 0): [8, 4]})
    (studies.folder("p/a", "x") / "end.json").write_text("{")
    assert "Not finished: 1 of 1 run." in limits(studies)


def test_no_run_can_be_read(studies):
    studies.add({("p/a", "x", 0): [8, 4]})
    (studies.folder("p/a", "x") / "run.json").write_text("{")
    assert "No run can be read." in studies.html()


def test_a_log_cut_anywhere_is_reported(studies):
    studies.add({("p/a", "x", 0): [8, 4, 3], ("p/a", "y", 0): [8, 7, 5]})
    log = studies.folder("p/a", "x") / "rows.csv"
    data = log.read_bytes()
    for cut in range(0, len(data), 61):
        log.write_bytes(data[:cut])
        assert "Not finished: 1 of 2 runs" in limits(studies)


def test_all_failed(studies):
    for problem in ("p/a", "p/b"):
        studies.add({(problem, name, i): [np.inf, np.inf] for name in "xy" for i in (0, 1)})
    assert answer(studies) == "Every candidate of every run failed, so no strategy is better than another."
    assert "On p/a and p/b every candidate failed" in limits(studies)
    failed = next(table for table in studies.page().origin if table.name == "failures")
    assert [cell.text for cell in failed.rows[0]] == ["p/a", "x", "timeout", "4", "all"]


def test_all_failed_on_one_problem_of_two(studies):
    studies.add({("p/a", name, i): [np.inf, np.inf] for name in "xy" for i in (0, 1)})
    studies.add(studies.finals("p/b", x=[4, 5], y=[5, 6]))
    html = studies.html()
    assert "all failed" in html and not re.search(r"\bnan\b", html)


def test_nobody_beats_the_default(studies):
    studies.add({("p/a", name, i): LEVEL for name in "xy" for i in (0, 1)})
    assert "On p/a no run beats the default." in limits(studies)


def test_costs_of_nothing_are_infinite_speedups(studies):
    studies.add(studies.finals("p/a", x=[0.0, 0.0], y=[0.0, 4]) | studies.finals("p/b", x=[0.0, 4], y=[4, 4]))
    assert "infinite" in studies.html()


def test_noise_and_time_are_said(studies):
    studies.add({("p/a", "x", 0): [4, 5]}, ended="time", budget=9)
    log = studies.folder("p/a", "x") / "rows.csv"
    lines = [line.split(",") for line in log.read_text().splitlines()]
    lines[2][1] = lines[1][1]
    log.write_text("".join(",".join(line) + "\n" for line in lines))
    text = limits(studies)
    assert "Costs are noisy on p/a (the same candidate differed by up to 25 %)" in text
    assert "their time was up" in text


def test_what_is_not_the_same_has_names_of_its_own(studies):
    studies.add({("p/a", "x", 0): [8, 4], ("p/b", "x", 0): [8, 4]})
    studies.add({("p/a", "x", 1): [8, 5]}, options={"heat": 3})
    studies.add({("p/b", "x", 1): [8, 5]}, fingerprint="f1", machine={"cpu": "y"})
    data = studies.data()
    assert {record.strategy for record in data.records} == {"x #1", "x #2"} == set(data.frame["strategy"])
    assert set(data.frame["problem"]) == {"p/a", "p/b [f0]", "p/b [f1]"}
    rows = {(row.problem, row.strategy, row.seed) for row in data.frame.itertuples()}
    assert ("p/a", "x #2", 1) in rows and ("p/b [f1]", "x #1", 1) in rows
    text = limits(studies)
    assert "x was run with 2 settings" in text and "p/b changed while the study was made" in text
    assert "2 different machines" in text


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


def test_words():
    assert [formatting.listed(names) for names in ([], ["a"], ["a", "b"], "abc")] == [
        "none",
        "a",
        "a and b",
        "a, b and c",
    ]
    assert formatting.listed(map(str, range(9)), 3) == "0, 1 and 7 more"
    assert [formatting.counted(n, "strategy") for n in (1, 1000)] == ["1 strategy", "1,000 strategies"]
    assert [formatting.p_value(p) for p in (np.nan, 1e-9, 0.0123, 1.0)] == ["–", "< 0.001", "0.012", "1"]
    assert [formatting.speedup(x) for x in (np.inf, np.nan, 1.00012, 123.4, 1e9)] == [
        "infinite",
        "–",
        "1.0001",
        "123",
        "1e+09",
    ]


def test_planned_runs_that_nobody_began_are_named(studies):
    studies.add(studies.finals("p/a", x=[4, 4.1]))
    add_planned(studies.path / "s", [RunName("p/a", name, seed) for name in "xy" for seed in range(2)])
    assert "Not begun: 2 of 4 planned runs. y on p/a (2 repeats)." in limits(studies)
    add_planned(studies.path / "s", [RunName("p/b", "x", 7)])
    assert "Not begun: 3 of 5 planned runs. y on p/a (2 repeats) and x on p/b, seed 7." in limits(studies)


@pytest.mark.parametrize(
    ("value", "shown"), [(-0.00001, "0.0000"), (-0.00006, "-0.0001"), (1.04037, "1.0404"), (-0.0, "0.0000")]
)
def test_nothing_is_never_below_nothing(value, shown):
    assert formatting.decimals(value) == shown


@pytest.mark.parametrize(
    ("part", "shown"), [(0, "none"), (1, "all"), (9990 / 10_000, "99.9 %"), (9999 / 10_000, "99.9 %"), (1e-5, "0.1 %")]
)
def test_only_all_is_all_and_only_none_is_none(part, shown):
    assert formatting.share(part) == shown


def test_an_interval_that_holds_no_difference_beside_a_small_p_is_explained(studies):
    for number in range(8):
        studies.add(studies.finals(f"p/{number}", x=[6.9 if number else 1.0] * 2, y=[7.0] * 2))
    text = answer(studies)
    assert "x is significantly better than y" in text and "interval -" in text
    assert "the interval of the mean gap to y holds no difference, too, since a few problems differ much" in text


def test_the_worth_of_structure_without_a_test_is_not_called_chance(studies):
    studies.add(studies.finals("p/a", x=[4, 5], y=[6, 7]), structure=["x"])
    assert "which may be chance" not in answer(studies)
    assert "Structure: x is ahead of y" in answer(studies) and "too little data for a test of that" in answer(studies)


def test_a_study_that_failed_altogether_is_not_told_how_many_repeats_would_do(studies):
    studies.add({(f"p/{p}", name, i): [np.inf] * 2 for p in range(2) for name in "xy" for i in (0, 1)})
    assert "would do" not in limits(studies) and "every candidate failed" in limits(studies)


def test_problems_that_are_cut_alike_are_named_together(studies):
    for name in ("p/a", "p/b"):
        studies.add({(name, "x", 0): [8, 4], (name, "y", 0): [8, 4, 2, 1]})
    assert "p/a and p/b are compared after 2 evaluations of 4, where the shortest of their runs ends." in limits(
        studies
    )
