"""What cannot be concluded, by kind, and about which strategies, problems and runs."""

import shutil

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


FEW = {
    "one run": ({"p/a": {"x": [4]}}, {"one run": [("x",)]}),
    "one repeat": ({"p/a": {"x": [4], "y": [5]}}, {"single runs": [("x", "y")], "one problem": [("p/a",)]}),
    "one repeat on several problems": (
        {f"p/{number}": {"x": [4 + 0.1 * number], "y": [5]} for number in range(4)},
        {"few problems": [("p/0", "p/1", "p/2", "p/3")]},
    ),
    "two repeats": ({"p/a": {"x": [4, 4.1], "y": [5, 5.1]}}, {"few repeats": [("p/a",)]}),
    "one strategy": ({"p/a": {"x": [4, 5]}}, {"one strategy": [("x",)]}),
    "missing runs": (
        {"p/a": {"x": [4, 5, 6], "y": [4]}, "p/b": {"x": [4, 5, 6]}},
        {"missing": [("y",), ("y",)], "single runs": [("y",)], "left out": [("p/b",)]},
    ),
}


@pytest.mark.parametrize("name", FEW)
def test_too_few_runs(studies, name):
    finals, expected = FEW[name]
    for problem, costs in finals.items():
        studies.add(studies.finals(problem, **costs))
    assert limits(studies).items() >= expected.items()


@pytest.mark.parametrize("costs", [[8, 4, 2, 1], [8, 4, 4, 4]])
def test_unequal_budgets(studies, costs):
    studies.add({("p/a", "x", 0): [8, 4], ("p/a", "y", 0): costs, ("p/b", "x", 0): [8, 4], ("p/b", "y", 0): costs})
    found = limits(studies)
    assert found["budgets differ"] == [("2", "4")] and found["cut"] == [("p/a", "p/b")]
    assert studies.judgement().scores.cutoffs == {"p/a": 2, "p/b": 2}


@pytest.mark.parametrize(("pairs", "repeats"), [(1, 4), (3, 5), (45, 7)])
def test_how_many_repeats_are_enough(pairs, repeats):
    assert enough_repeats(pairs) == repeats


@pytest.mark.parametrize(("repeats", "problems", "said"), [(1, 3, 0), (2, 3, 1), (4, 3, 1), (5, 3, 0), (3, 1, 0)])
def test_bootstrapped_intervals_of_few_repeats_are_too_narrow(studies, repeats, problems, said):
    for number in range(problems):
        studies.add(studies.finals(f"p/{number}", x=[4 + 0.1 * i for i in range(repeats)], y=[5] * repeats))
    assert limits(studies).get("narrow intervals", []) == [("x", "y")] * said


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


def test_a_log_cut_anywhere_is_reported(studies):
    studies.add({("p/a", "x", 0): [8, 4, 3], ("p/a", "y", 0): [8, 7, 5]})
    log = studies.folder("p/a", "x") / "rows.csv"
    data = log.read_bytes()
    for cut in range(0, len(data), 61):
        log.write_bytes(data[:cut])
        assert text_of(studies, "unfinished").startswith("Not finished: 1 of 2 runs")


def test_noise_and_a_time_limit(studies):
    studies.add({("p/a", "x", 0): [4, 5]}, ended="time", budget=9)
    studies.with_digests("p/a", "x", "0" * 16, "0" * 16)
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
