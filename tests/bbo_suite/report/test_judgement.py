"""Who is best, by how much, and how sure that is: as values; levels of knowledge are judged apart."""

import numpy as np
import pytest

from bbo_suite.core.level import Level
from bbo_suite.report.answer import headlines, sentences
from bbo_suite.report.judgement import BLACK_BOX, COMPILES, STRUCTURED, USES_PARTS
from bbo_suite.report.rankings import overviews, pairwise, winners
from bbo_suite.report.targets import levels, savings


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
