"""Levels of knowledge are judged apart, and compared by the measurements that they save."""

import numpy as np
import pytest

from bbo_suite.core.level import Level
from bbo_suite.report.judgement import BLACK_BOX, COMPILES, STRUCTURED, USES_PARTS
from bbo_suite.report.rankings import overviews, pairwise
from bbo_suite.report.targets import levels, savings

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
