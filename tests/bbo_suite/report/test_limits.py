"""What cannot be concluded, by kind, and about which strategies, problems and runs."""

import shutil

import numpy as np
import pytest

from bbo_suite.report.limits import enough_repeats
from bbo_suite.store.plan import RunName, add_planned


def limits(studies):
    """Return what each kind of limit is about."""
    found = {}
    for limit in studies.page().limits:
        found.setdefault(limit.kind, []).append(limit.about)
    return found


def text_of(studies, kind):
    return " ".join(limit.text for limit in studies.page().limits if limit.kind == kind)


def test_a_sound_study_has_only_the_limit_of_its_unknown_optima(studies):
    for number in range(6):
        studies.add(studies.finals(f"p/{number}", x=[4 + 0.1 * i for i in range(5)], y=[5 + 0.1 * i for i in range(5)]))
    assert set(limits(studies)) == {"unknown optimum"}


def test_one_run(studies):
    studies.add({("p/a", "x", 0): [8, 4]})
    assert limits(studies)["one run"] == [("x",)]


def test_one_repeat_on_one_problem(studies):
    studies.add(studies.finals("p/a", x=[4], y=[5]))
    found = limits(studies)
    assert found["single runs"] == [("x", "y")] and found["one problem"] == [("p/a",)]
    assert text_of(studies, "single runs").startswith("Every strategy: only one run,")


def test_one_repeat_on_several_problems(studies):
    for number in range(4):
        studies.add(studies.finals(f"p/{number}", x=[4 + 0.1 * number], y=[5]))
    assert limits(studies)["few problems"] == [("p/0", "p/1", "p/2", "p/3")]
    assert "for 1 pair, p is at least 0.12; 6 problems would be enough" in text_of(studies, "few problems")


@pytest.mark.parametrize(("pairs", "repeats"), [(1, 4), (3, 5), (45, 7)])
def test_how_many_repeats_are_enough(pairs, repeats):
    assert enough_repeats(pairs) == repeats


def test_too_few_repeats_for_a_test(studies):
    studies.add(studies.finals("p/a", x=[4, 4.1], y=[5, 5.1]))
    assert limits(studies)["few repeats"] == [("p/a",)]
    assert "for 1 pair, p is at least 0.33; 4 repeats would be enough" in text_of(studies, "few repeats")


@pytest.mark.parametrize(("repeats", "problems", "said"), [(1, 3, 0), (2, 3, 1), (4, 3, 1), (5, 3, 0), (3, 1, 0)])
def test_bootstrapped_intervals_of_few_repeats_are_too_narrow(studies, repeats, problems, said):
    for number in range(problems):
        studies.add(studies.finals(f"p/{number}", x=[4 + 0.1 * i for i in range(repeats)], y=[5] * repeats))
    assert limits(studies).get("narrow intervals", []) == [("x", "y")] * said


def test_one_strategy(studies):
    studies.add(studies.finals("p/a", x=[4, 5]))
    assert limits(studies)["one strategy"] == [("x",)]


def test_unequal_repeats_and_missing_runs(studies):
    studies.add(studies.finals("p/a", x=[4, 5, 6], y=[4]) | studies.finals("p/b", x=[4, 5, 6]))
    found = limits(studies)
    assert found["missing"] == [("y",), ("y",)] and found["single runs"] == [("y",)] and found["left out"] == [("p/b",)]
    text = text_of(studies, "missing")
    assert "1 of 3 runs on p/a." in text and "no run on p/b." in text


def test_strategies_that_lack_the_same_runs_are_named_together(studies):
    problems = [f"p/{number}" for number in range(9)]
    for number, name in enumerate(problems):
        studies.add(studies.finals(name, x=[4, 5], y=[5, 6], **({} if number else {"z": [4, 5], "w": [4, 5]})))
    assert limits(studies)["missing"] == [("w", "z")]
    assert "p/1, p/2, p/3, p/4 and 4 more." in text_of(studies, "missing")


def test_unequal_budgets(studies):
    studies.add({("p/a", "x", 0): [8, 4], ("p/a", "y", 0): [8, 4, 2, 1]})
    found = limits(studies)
    assert found["budgets differ"] == [("2", "4")] and found["cut"] == [("p/a",)]
    assert studies.judgement().scores.cutoffs == {"p/a": 2}


def test_problems_that_are_cut_alike_are_named_together(studies):
    for name in ("p/a", "p/b"):
        studies.add({(name, "x", 0): [8, 4], (name, "y", 0): [8, 4, 2, 1]})
    assert limits(studies)["cut"] == [("p/a", "p/b")]


def test_unfinished_and_empty_runs(studies):
    studies.add({("p/a", "x", 0): [8, 4, 4]})
    studies.add({("p/a", "y", 0): [8], ("p/a", "z", 0): []}, ended="", budget=3)
    (studies.folder("p/a", "z") / "error.txt").write_text("Traceback\nUserError: it broke\n")
    found = limits(studies)
    stopped = "z on p/a, seed 0 (nothing evaluated yet, stopped by UserError: it broke)"
    assert found["unfinished"] == [("y on p/a, seed 0 (1 evaluation)", stopped)]
    assert found["too short"] == [("y on p/a, seed 0",)]


def test_damaged_runs_are_left_out(studies):
    studies.add({("p/a", name, 0): [8, 4] for name in ("v", "w", "x", "y", "z")})
    log = studies.folder("p/a", "x") / "rows.csv"
    log.write_text(log.read_text().replace("4.0", "four"))
    (studies.folder("p/a", "y") / "run.json").write_text("{")
    (studies.folder("p/a", "z") / "run.json").write_text('{"problem": "p/a"}')
    data = studies.data()
    assert [run.strategy for run in data.runs] == ["v", "w"]
    assert len(data.frame) == 4
    assert limits(studies)["damaged"] == [(sentence,) for sentence in data.damaged]
    assert all(any(str(studies.folder("p/a", name)) in text for text in data.damaged) for name in "xyz")


def test_a_run_that_is_there_twice_counts_once(studies):
    studies.add({("p/a", "x", 0): [8, 4]})
    shutil.copytree(studies.folder("p/a", "x"), studies.path / "s" / "a copy")
    assert "contains the same run as" in text_of(studies, "damaged")
    assert len(studies.data().runs) == 1 and len(studies.data().frame) == 2


def test_an_end_that_cannot_be_read_is_no_end(studies):
    studies.add({("p/a", "x", 0): [8, 4]})
    (studies.folder("p/a", "x") / "end.json").write_text("{")
    assert limits(studies)["unfinished"] == [("x on p/a, seed 0 (2 evaluations)",)]


def test_no_run_can_be_read(studies):
    studies.add({("p/a", "x", 0): [8, 4]})
    (studies.folder("p/a", "x") / "run.json").write_text("{")
    assert studies.data().runs == [] and "No run can be read." in studies.html()


def test_a_log_cut_anywhere_is_reported(studies):
    studies.add({("p/a", "x", 0): [8, 4, 3], ("p/a", "y", 0): [8, 7, 5]})
    log = studies.folder("p/a", "x") / "rows.csv"
    data = log.read_bytes()
    for cut in range(0, len(data), 61):
        log.write_bytes(data[:cut])
        assert text_of(studies, "unfinished").startswith("Not finished: 1 of 2 runs")


def test_no_candidate_works(studies):
    studies.add({(f"p/{p}", name, i): [np.inf] * 2 for p in range(2) for name in "xy" for i in (0, 1)})
    found = limits(studies)
    assert found["all failed"] == [("p/0", "p/1")]
    assert not {"few repeats", "few problems", "narrow intervals"} & set(found)  # more repeats would not help


def test_no_run_beats_the_default(studies):
    studies.add({("p/a", name, i): [8.0] * 2 for name in "xy" for i in (0, 1)})
    assert limits(studies)["no gain"] == [("p/a",)]


def test_noise_and_a_time_limit(studies):
    studies.add({("p/a", "x", 0): [4, 5]}, ended="time", budget=9)
    log = studies.folder("p/a", "x") / "rows.csv"
    lines = [line.split(",") for line in log.read_text().splitlines()]
    lines[2][1] = lines[1][1]
    log.write_text("".join(",".join(line) + "\n" for line in lines))
    found = limits(studies)
    assert (found["noise"], found["time limit"]) == ([("p/a",)], [("x on p/a, seed 0",)])
    assert "p/a (costs of the same candidate differ by up to 25 %)" in text_of(studies, "noise")


def test_what_is_not_the_same_has_a_name_of_its_own(studies):
    studies.add({("p/a", "x", 0): [8, 4], ("p/b", "x", 0): [8, 4]})
    studies.add({("p/a", "x", 1): [8, 5]}, options={"heat": 3})
    studies.add({("p/b", "x", 1): [8, 5]}, fingerprint="f1", machine={"cpu": "y"})
    data = studies.data()
    assert {run.strategy for run in data.runs} == {"x #1", "x #2"} == set(data.frame["strategy"])
    assert set(data.frame["problem"]) == {"p/a", "p/b [f0]", "p/b [f1]"}
    rows = {(row.problem, row.strategy, row.seed) for row in data.frame.itertuples()}
    assert ("p/a", "x #2", 1) in rows and ("p/b [f1]", "x #1", 1) in rows
    found = limits(studies)
    assert (found["settings differ"], found["problem changed"]) == ([("x",)], [("p/b",)])
    assert [len(about) for about in found["several machines"]] == [2]


def test_planned_runs_that_have_not_started(studies):
    studies.add(studies.finals("p/a", x=[4, 4.1]))
    add_planned(studies.path / "s", [RunName("p/a", name, seed) for name in "xy" for seed in range(2)])
    assert limits(studies)["not started"] == [("y on p/a (2 repeats)",)]
    add_planned(studies.path / "s", [RunName("p/b", "x", 7)])
    assert limits(studies)["not started"] == [("y on p/a (2 repeats)", "x on p/b, seed 7")]
    assert text_of(studies, "not started").startswith("Not started: 3 of 5 planned runs.")
