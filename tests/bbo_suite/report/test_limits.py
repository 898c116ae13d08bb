"""What cannot be concluded, and about which runs; on noisy problems, what losses are made of."""

import shutil

import numpy as np
import pytest

from bbo_suite import load
from bbo_suite.figures.captions import noisy_costs
from bbo_suite.report.limits import enough_repeats
from bbo_suite.report.rankings import loss_table, losses
from bbo_suite.scores import final_values
from bbo_suite.site.studies import best_known, cost, points
from bbo_suite.store.folders import REMEASURED
from bbo_suite.store.plan import RunName, add_planned
from bbo_suite.store.remeasured import ROUNDS, Pair, PairLog


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


DEFAULT = 8.0
"""The cost of the default in `studies`."""
AGAIN = {"x": {2: 1.5, 1: 1.8, 3: 1.2}, "y": {3: 1.6, 1: 1.0}}
"""Speedups of evaluations of two strategies, measured again; the search preferred the first."""


def measure_again(folder, speedups, spread=0.0):
    log = PairLog(folder)
    for number in range(1, ROUNDS + 1):
        for evaluation, speedup in speedups.items():
            shift = 1 + spread * ((number + 1) // 2 - 2)  # both halves have the same median
            log.append([Pair(number, evaluation, DEFAULT, DEFAULT / (speedup * shift), "010").line()])


@pytest.fixture
def noisy(studies):
    studies.add({("p/a", "x", 0): [5.0, 4.0, 4.5], ("p/a", "y", 0): [8.0, 7.0, 4.4]}, noisy=True)
    for name, speedups in AGAIN.items():
        measure_again(studies.folder("p/a", name), speedups, spread=0.1)
    return studies


def test_the_headline_and_the_tables_compare_what_was_measured_again(noisy):
    judgement = noisy.judgement()
    assert {key: runs.tolist() for key, runs in judgement.scores.speedups.items()} == {
        ("p/a", "x"): [pytest.approx(1.5)],
        ("p/a", "y"): [pytest.approx(1.6)],
    }
    page = noisy.page()
    assert "is that of y: mean speedup 1.6000 on p/a after 3 evaluations, measured again" in page.answers[0]
    assert [limit.about for limit in page.limits if limit.kind == "measured again"] == [("p/a",)]
    assert "noise" not in {limit.kind for limit in page.limits}
    assert page.findings.shown[0].cost == "8 → 4.44444 seconds, speedup 1.8000 when measured again"


def test_a_loss_is_split_into_selection_and_exploration(noisy):
    (x,), (y,) = losses(noisy.judgement().scores, "p/a").values()
    assert (x.search, y.search) == (2.0, DEFAULT / 4.4)
    assert (x.again, x.selection, x.exploration) == pytest.approx((1.5, 1.2, 1.0))
    assert (y.again, y.selection, y.exploration) == pytest.approx((1.6, 1.0, 1.8 / 1.6))
    (first, second) = loss_table(noisy.judgement().scores).rows
    assert [cell.text for cell in first] == ["p/a", "x", "1", "2.0000", "1.5000", "17 %", "0 %"]
    assert [cell.text for cell in second][-2:] == ["0 %", "11 %"]


def test_noise_alone_is_no_loss_by_selection(studies):
    """The best of ten equal candidates looks better in one half of the rounds, but not in the other."""
    rng, factors = np.random.default_rng(0), []
    for seed in range(60):
        studies.add({("p/a", "x", seed): np.arange(4.0, 4.9, 0.09)[:10].tolist()})
        log = PairLog(studies.path / "s" / f"p--a__x__{seed}")
        for number in range(1, ROUNDS + 1):
            for evaluation in range(1, 11):
                log.append([Pair(number, evaluation, DEFAULT, 4 * rng.lognormal(0, 0.1), "010").line()])
    (runs,) = losses(studies.judgement().scores, "p/a").values()
    factors = np.log([run.selection for run in runs])
    assert abs(factors.mean()) < 2 * factors.std() / np.sqrt(60) < 0.03


def test_a_problem_of_which_one_run_was_not_measured_again_is_compared_as_before(noisy):
    (noisy.folder("p/a", "y") / REMEASURED).unlink()
    scores = noisy.judgement().scores
    assert scores.speedups["p/a", "x"].tolist() == [2.0] and not scores.remeasured
    (limit,) = [limit for limit in noisy.page().limits if limit.kind == "noise"]
    assert limit.about == ("p/a",) and "The same command does that" in limit.text
    assert loss_table(scores).rows == []


def test_a_run_that_was_cut_while_it_measured_again_counts_as_not_measured_again(noisy):
    file = noisy.folder("p/a", "y") / REMEASURED
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))
    assert noisy.judgement().scores.remeasured == {"p/a"}  # its best candidate has all rounds
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))
    assert noisy.judgement().scores.remeasured == set()


def test_frames_and_figures_take_what_was_measured_again(noisy):
    frame = load("s", noisy.path)
    np.testing.assert_allclose(frame["remeasured"], [1.8, 1.5, 1.5, 1.0, np.nan, 1.6])
    assert frame["speedup"].tolist()[:3] == [DEFAULT / 5, 2.0, 2.0]
    np.testing.assert_allclose(final_values(frame).frame["speedup"], [1.5, 1.6])
    assert noisy_costs(frame) == " Noisy costs: measured again after the search."
    (noisy.folder("p/a", "y") / REMEASURED).unlink()
    assert final_values(load("s", noisy.path)).frame["speedup"].tolist() == [2.0, DEFAULT / 4.4]
    (noisy.folder("p/a", "x") / REMEASURED).unlink()
    frame = load("s", noisy.path)
    assert "remeasured" not in frame and noisy_costs(frame) == ""


def test_points_of_a_site_follow_from_what_was_measured_again(noisy):
    x, y = noisy.data().runs
    known = best_known([x, y])
    assert (cost(x), cost(y)) == (pytest.approx(DEFAULT / 1.5), pytest.approx(DEFAULT / 1.6))
    assert (points(x, known), points(y, known)) == (pytest.approx(1.5 / 1.6), 1.0)


def test_a_run_whose_measurements_are_damaged_is_left_out_and_named(noisy, capsys):
    file = noisy.folder("p/a", "y") / REMEASURED
    file.write_text(file.read_text().replace("1,3,8.0,", "1,3,9.0,"))
    (damage,) = noisy.data().damaged
    assert f"{REMEASURED}, line 2 is damaged (its checksum does not match)" in damage
    assert set(load("s", noisy.path)["strategy"]) == {"x"} and "line 2 is damaged" in capsys.readouterr().err


def test_what_was_found_has_the_number_of_its_run(studies):
    studies.add({("p/a", "lucky", 0): [4.0], ("p/a", "steady", 0): [4.0]})
    for name, odd, even in (("lucky", 2.6, 1.5), ("steady", 2.0, 2.0)):
        log = PairLog(studies.folder("p/a", name))
        for number in range(1, ROUNDS + 1):
            log.append([Pair(number, 1, DEFAULT, DEFAULT / (odd if number % 2 else even), "010").line()])
    (row,) = studies.page().findings.table.rows
    assert [cell.text for cell in row[3:5]] == ["speedup 2.0500", "lucky"]
    assert {run.strategy: run.final_speedup for run in studies.data().runs} == {"lucky": 2.05, "steady": 2.0}
    cost = DEFAULT / 2.05
    assert studies.page().findings.shown[0].cost == f"8 → {cost:.6g} seconds, speedup 2.0500 when measured again"
