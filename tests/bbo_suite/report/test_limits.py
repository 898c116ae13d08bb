"""What cannot be concluded, and about which runs; on noisy problems, what losses are made of.

Who is best, by how much, and how sure that is: as values; levels of knowledge are judged apart.
"""

import shutil

import numpy as np
import pytest

from bbo_suite import load
from bbo_suite.core.level import Level
from bbo_suite.figures.captions import noisy_costs
from bbo_suite.report.answer import headlines, sentences
from bbo_suite.report.judgement import BLACK_BOX, COMPILES, STRUCTURED, USES_PARTS
from bbo_suite.report.limits import enough_repeats
from bbo_suite.report.rankings import loss_table, losses, overviews, pairwise, winners
from bbo_suite.report.targets import levels, savings
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


@pytest.mark.slow
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


def verdicts(board, judgement):
    """Return the verdict of each group of strategies, by the group's short name."""
    ranked = {group: board.ranked(names) for group, names in judgement.groups()}
    return {group: board.verdict(names) for group, names in ranked.items() if names}


def overall(studies):
    judgement = studies.judgement()
    return judgement.overall, verdicts(judgement.overall, judgement)


def answer(studies):
    return " ".join(sentences(studies.judgement()))


def words_for_winners(studies):
    return [row[-1].text for row in winners(studies.judgement()).rows]


def test_a_clear_winner_on_one_problem(studies):
    studies.add(studies.finals("p/a", x=[4, 4.1, 4.2, 4.3, 4.4], y=[6, 6.1, 6.2, 6.3, 6.4]))
    board, found = overall(studies)
    assert found[BLACK_BOX].best == "x" and found[BLACK_BOX].beaten == ["y"] and found[BLACK_BOX].clear
    pair = board.pair("x", "y")
    assert (board.means["x"][0], pair.gap) == (pytest.approx(1.9069, abs=5e-5), pytest.approx(0.6159, abs=5e-5))
    assert pair.holm == pytest.approx(2 / 252)  # 10 choose 5
    assert board.scope == "on p/a" and words_for_winners(studies) == ["significantly better than all others"]


def test_a_mean_that_depends_on_one_run_is_not_called_better(studies):
    studies.add(studies.finals("p/a", lucky=[7.9] * 9 + [0.1], steady=[6.0] * 10, slow=[7.99] * 10))
    _, found = overall(studies)
    verdict = found[BLACK_BOX]
    assert (verdict.best, verdict.beaten, verdict.contrary) == ("lucky", ["slow"], ["steady"]) and not verdict.clear
    assert words_for_winners(studies) == ["only by the mean: significantly worse by rank than steady"]
    assert "only because of a few runs: by rank it is significantly worse" in answer(studies)
    assert answer(studies).startswith(
        "None of 3 black-box strategies is the best. lucky has the highest mean, but by rank"
    )


@pytest.mark.slow
def test_a_winner_over_problems_and_one_that_does_not_differ(studies):
    rng = np.random.default_rng(0)
    for number in range(8):
        x = 4 + 0.1 * rng.random(3)
        studies.add(studies.finals(f"p/{number}", x=x, y=x + (-1) ** number * 0.01 * rng.random(3), z=x * 1.5))
    board, found = overall(studies)
    best, other = list(board.means)[:2]
    assert {best, other} == {"x", "y"} and 1.9 < board.means[best][0] < 2
    assert (found[BLACK_BOX].beaten, found[BLACK_BOX].undecided) == (["z"], [other])
    assert board.pair(best, "z").holm == pytest.approx(3 / 2**7) and board.pair(best, "z").gap == pytest.approx(
        1.5, abs=0.01
    )
    judgement = studies.judgement()
    assert found[BLACK_BOX].leaders == [best, other] and found[BLACK_BOX].trailing == ["z"]
    headline = next(sentences(judgement))
    assert headline.startswith(f"{best} and {other} cannot be told apart by a test; both are ahead of z: ")
    assert "best" not in headline
    assert not any(verdicts(each, judgement)[BLACK_BOX].clear for each in judgement.problems.values())


def test_only_what_every_leader_beats_is_behind_all_of_them(studies):
    runs = studies.finals("p/a", x=[4, 4.1, 4.2, 4.3, 4.4], y=[3.9, 4.15, 4.6, 5.9, 7.9], z=[5.8, 6, 6.1, 6.2, 6.3])
    studies.add(runs)
    verdict = overall(studies)[1][BLACK_BOX]
    assert (verdict.leaders, verdict.beaten, verdict.trailing) == (["x", "y"], ["z"], [])
    assert next(sentences(studies.judgement())).startswith("x and y cannot be told apart by a test: mean speedup 1.9")


def test_strategies_that_use_structure_are_judged_apart(studies):
    runs = studies.finals("p/a", blind=[6, 6.1, 6.2, 6.3], other=[7, 7.1, 7.2, 7.3], seeing=[4, 4.1, 4.2, 4.3])
    studies.add(runs, structure=("seeing",))
    board, found = overall(studies)
    assert (found[BLACK_BOX].best, found[STRUCTURED].best) == ("blind", "seeing")
    assert found[STRUCTURED].clear and board.pair("seeing", "blind").gap == pytest.approx(0.6279, abs=5e-5)
    assert not board.testable and board.smallest_p == pytest.approx(3 * 2 / 70)  # three pairs, 8 choose 4
    assert "seeing *" in studies.html() and "too little data for a test" in answer(studies)


def test_nothing_is_compared_where_each_problem_has_a_strategy_of_its_own(studies):
    studies.add(studies.finals("p/a", x=[4, 4])).add(studies.finals("p/b", y=[2, 2]))
    (found,) = headlines(studies.judgement())
    assert (
        found
        == answer(studies)
        == (
            "One strategy ran on each problem, so none are compared: geometric mean speedup 2.8284 over 2 problems, by "
            "x on p/a (2.0000) and y on p/b (4.0000)."
        )
    )
    studies.add(studies.finals("p/b", z=[3, 3]))
    assert "none are compared" not in answer(studies)


def test_ties_everywhere(studies):
    for problem in ("p/a", "p/b"):
        studies.add(studies.finals(problem, x=[4, 4], y=[4, 4], z=[4, 4]))
    _, found = overall(studies)
    assert [found[BLACK_BOX].best, *found[BLACK_BOX].tied] == ["x", "y", "z"] and not found[BLACK_BOX].clear
    assert words_for_winners(studies) == ["tied with y and z"] * 2
    assert "significantly better than all others of its kind: none on 2." in answer(studies)


@pytest.mark.parametrize("problems", [1, 4])
def test_one_repeat_cannot_be_tested(studies, problems):
    for number in range(problems):
        studies.add(studies.finals(f"p/{number}", x=[4 + 0.1 * number], y=[5]))
    board, found = overall(studies)
    assert not board.testable and found[BLACK_BOX].undecided == ["y"]
    assert board.tested == (problems > 1)
    headline = next(sentences(studies.judgement()))
    assert headline.startswith("There are too few ") and "which of 2 black-box strategies is best" in headline


def test_pairs_are_compared_on_all_problems_that_both_ran(studies):
    for number in range(4):
        studies.add(studies.finals(f"p/{number}", x=[4, 5], y=[5, 6], **({"z": [4, 5]} if number else {})))
    board, _ = overall(studies)
    assert board.scope == "over 3 problems"
    assert (board.pair("x", "y").problems, board.pair("x", "z").problems) == (4, 3)
    assert "all problems that both ran, 3 to 4; the means cover the 3 problems" in answer(studies)
    studies.add(studies.finals("p/0", z=[4, 5]))
    assert "that both ran" not in answer(studies)


def test_nothing_evaluated(studies):
    studies.add({("p/a", "x", 0): []}, ended="", budget=3)
    assert studies.judgement().overall is None
    html = studies.html()
    assert "There is nothing to draw." in html and "Nothing has been evaluated yet" in html


def test_all_failed(studies):
    for problem in ("p/a", "p/b"):
        studies.add({(problem, name, i): [np.inf, np.inf] for name in "xy" for i in (0, 1)})
    assert studies.judgement().all_failed and "Every candidate of every run failed" in answer(studies)
    failed = next(table for table in studies.page().provenance if table.name == "failures")
    assert [cell.text for cell in failed.rows[0]] == ["p/a", "x", "timeout", "4", "all"]


def test_a_cost_of_0_is_an_infinite_speedup(studies):
    studies.add(studies.finals("p/a", x=[0.0, 0.0], y=[0.0, 4]) | studies.finals("p/b", x=[0.0, 4], y=[4, 4]))
    assert np.isinf(studies.judgement().overall.means["x"][0]) and "infinite" in studies.html()


def test_intervals_end_where_no_speedup_can_be(studies):
    studies.add(studies.finals("p/a", x=[2, 7], y=[2, 4]), optimum=2.0)
    studies.add({("p/b", "x", i): [6, cost] for i, cost in enumerate((1, 6))})
    for mean in studies.judgement().scores.means:
        runs = studies.judgement().scores.speedups[mean.problem, mean.strategy]
        assert runs.min() <= mean.low <= mean.mean <= mean.high <= runs.max()


SEES = {"structure": ("local",), "parts": ("graybox",)}


def study(studies, problems=1, seeds=3, **costs):
    """Add runs of 20 evaluations; `costs` gives each strategy's lowest cost by the evaluation that found it."""
    for number in range(problems):
        runs = {
            (f"p/{number}", name, seed): np.minimum.accumulate([found.get(n, 8.0) for n in range(1, 21)])
            for name, found in costs.items()
            for seed in range(seeds)
        }
        studies.add(runs, **SEES)
    return studies.judgement()


def test_levels_are_groups_of_their_own(studies):
    judged = study(studies, annealing={16: 4.0}, random={20: 7.0}, local={10: 3.0}, graybox={2: 3.5})
    found = {BLACK_BOX: ["annealing", "random"], STRUCTURED: ["local"], USES_PARTS: ["graybox"]}
    assert dict(judged.groups()) == {**found, COMPILES: []}


def test_what_sees_parts_is_in_no_pair_and_no_ranking_with_others(studies):
    plain = study(studies, 2, annealing={16: 4.0}, random={20: 7.0}, local={10: 3.0})
    with_parts = study(
        type(studies)(studies.path / "more"),
        2,
        annealing={16: 4.0},
        random={20: 7.0},
        local={10: 3.0},
        graybox={2: 1.0},
    )
    assert [row[0].text for row in pairwise(with_parts).rows] == [row[0].text for row in pairwise(plain).rows]
    ours, theirs = (list(overviews(each, np.random.default_rng(0))) for each in (plain, with_parts))
    assert ours[0].rows == theirs[0].rows and len(ours) == 1
    assert [row[0].text for row in theirs[1].rows] == ["graybox **"]
    assert theirs[1].rows[0][3].number == 1 and "**" in theirs[1].caption and "**" not in theirs[0].caption


def test_measurements_saved_are_counted_to_the_best_of_costs_alone(studies):
    judged = study(studies, annealing={16: 4.0}, random={20: 7.0}, local={10: 3.0}, graybox={1: 5.0, 2: 4.0, 9: 3.9})
    found = {level.strategy: (level.evaluations, level.saved, level.reached) for level in levels(judged)}
    assert found == {"annealing": (16, 1, 3), "local": (10, 1.6, 3), "graybox": (2, 8, 3)}
    table = savings(judged)
    assert [row[1].text for row in table.rows] == [level.sees for level in Level if level is not Level.COMPILATION]
    assert "compiling is not counted" in table.note
    page = studies.page()
    assert "graybox is after 2 evaluations as good as annealing (costs only) is after 16" in " ".join(page.answers)
    assert all("compiling is not counted" in text for text in page.answers if text.startswith("Measurements saved"))


def test_what_never_becomes_as_good_saves_nothing(studies):
    judged = study(studies, annealing={16: 4.0}, graybox={2: 4.1})
    assert [(level.evaluations, level.saved, level.reached) for level in levels(judged)][1] == (np.inf, 0, 0)
    assert "never becomes as good as annealing" in " ".join(studies.page().answers)


def test_over_problems_savings_are_a_geometric_mean(studies):
    study(studies, 1, annealing={16: 4.0}, graybox={2: 4.0})
    runs = {("p/b", name, 0): [8.0, 8.0, 8.0, cost] for name, cost in (("annealing", 4.0), ("graybox", 5.0))}
    studies.add(runs, **SEES)
    assert (
        "on 1 of 2 problems the best strategy becomes as good as the best one that sees only costs, which needs 8 times"
        in " ".join(studies.page().answers)
    )


@pytest.mark.parametrize(
    "costs", [{"annealing": {2: 8.0}, "graybox": {2: 4.0}}, {"local": {2: 4.0}, "graybox": {2: 4.0}}]
)
def test_nothing_is_saved_where_costs_alone_gain_nothing_or_did_not_run(studies, costs):
    assert levels(study(studies, **costs)) == []
