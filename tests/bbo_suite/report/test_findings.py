"""What was found comes first, with a drawing and how to use it; and how near it is to the optimum."""

import re
from pathlib import Path

import numpy as np
import pytest

from bbo_suite import UserError, figures, problem
from bbo_suite.core.enumeration import Enumeration
from bbo_suite.registry import Registry
from bbo_suite.report import read_study
from bbo_suite.report.findings import MOST, findings
from bbo_suite.report.optimum import optima, spaces, whole_space
from bbo_suite.scores import NEAR
from bbo_suite.stats import expected_best, over_random, random_needs


@pytest.fixture
def searched(suite, toy, tmp_path):
    """The report of a study of a problem that is there."""
    done = suite("run", "--study", "s", "--problem", "toy/small", "--strategy", "pick", "--budget", "20", *toy)
    assert done.code == 0
    assert suite("report", "s", *toy[:2]).code == 0
    return (tmp_path / "results" / "s" / "report.html").read_text()


def test_the_report_begins_with_a_picture_of_what_was_found(searched):
    before = searched[: searched.index('id="answer"')]
    assert before.index('id="findings"') < before.index("<svg ") < before.index("<pre>")
    assert "python -m bbo_suite best s --minimal" in before


def test_the_picture_needs_no_script(searched):
    first = re.search(r'<div class="drawing"[^>]*>(.{5})', searched)
    assert first[1] == "<svg " and "data-packed" not in first[0]


def test_the_best_run_of_each_problem_is_listed_by_gain(studies):
    studies.add(studies.finals("p/a", x=[4, 2], y=[3]) | studies.finals("p/b", x=[1], y=[1, np.inf]))
    found = findings(studies.data(), Registry())
    rows = [[cell.text for cell in row] for row in found.table.rows]
    assert rows == [
        ["p/b", "8 seconds", "1 seconds", "speedup 8.0000", "x", "0", "2"],
        ["p/a", "8 seconds", "2 seconds", "speedup 4.0000", "x", "1", "2"],
    ]
    assert [finding.problem for finding in found.shown] == ["p/b", "p/a"]
    assert all("no problem" in finding.missing for finding in found.shown)


def test_few_problems_are_shown(studies):
    for number in range(MOST + 2):
        studies.add(studies.finals(f"p/{number}", x=[4 - 0.1 * number]))
    found = findings(studies.data(), Registry())
    assert len(found.table.rows) == MOST + 2
    assert [finding.problem for finding in found.shown] == [f"p/{MOST + 1 - i}" for i in range(MOST)]


@pytest.mark.slow
def test_nothing_is_evaluated_where_that_takes_long(searched, monkeypatch, toy, tmp_path):
    registry = Registry((toy[1],))
    study = read_study("s", tmp_path / "results")
    monkeypatch.setattr(type(registry.problem("toy/small")), "evaluate", None)
    for run in study.runs:
        object.__setattr__(run, "evaluation_seconds", 1.0)
    (finding,) = findings(study, registry).shown
    assert finding.text and finding.drawing is None and "takes long" in finding.missing


@pytest.mark.slow
def test_without_a_drawing_the_convergence_is_first(studies, drawn, monkeypatch):
    monkeypatch.setattr(figures, "FIGURES", {"convergence": figures.FIGURES["convergence"]})
    html = studies.add(studies.finals("p/a", x=[4, 2])).html()
    first = html[: html.index('id="answer"')]
    assert first.count("<svg ") == 1 and "evaluations" in first[first.index("<svg ") :]


def test_a_study_without_success_found_nothing(studies):
    studies.add({("p/a", "x", 0): [np.inf, np.inf]})
    assert findings(studies.data(), Registry()) is None
    assert 'id="findings"' not in studies.html()


def test_a_damaged_run_is_named(studies):
    studies.add(studies.finals("p/a", x=[4]))
    rows = studies.folder("p/a", "x") / "rows.csv"
    rows.write_text(rows.read_text().replace("4.0", "3.0"))
    with pytest.raises(UserError, match=r"rows\.csv is damaged \(a checksum does not match\)"):
        studies.data()


TILES = "recorded/tile-transformer"


@pytest.fixture(scope="module")
def tiles():
    return problem(TILES)


def recorded(studies, tiles, costs, strategy="x", **head):
    facts = {"fingerprint": tiles.fingerprint(), "optimum": tiles.optimum, "default": 2 * tiles.optimum, **head}
    studies.add({(TILES, strategy, i): run for i, run in enumerate(costs)}, **facts)
    return studies.judgement().scores


def test_every_cost_of_a_recorded_space_is_found(studies, tiles):
    scores = recorded(studies, tiles, [[tiles.optimum] * 3])
    costs = whole_space(scores.runs[0], Registry())
    assert len(costs) == tiles.space.cardinality
    assert costs.min() == tiles.optimum and np.isfinite(costs).all()


@pytest.mark.slow
def test_a_space_that_is_known_whole_is_drawn_once(studies, tiles):
    scores = recorded(studies, tiles, [[tiles.optimum] * 3, [tiles.optimum] * 3])
    (picture,) = spaces(scores, Registry())
    assert TILES in picture.question
    assert "whole space" in picture.drawings[0].caption


def test_over_random_is_what_a_simulation_gives(studies, tiles):
    best, second = tiles.optimum, 1.5 * tiles.optimum
    scores = recorded(studies, tiles, [[second] * 4 + [best] * 2, [best] * 6])
    table, notes = optima(scores, Registry())
    (row,) = table.rows
    rng, costs = np.random.default_rng(0), whole_space(scores.runs[0], Registry())
    drawn = np.mean([np.minimum.accumulate(rng.permutation(costs)[:6]) for _ in range(4000)], axis=0)
    curves = np.array([[second] * 4 + [best] * 2, [best] * 6])
    over = ((drawn - curves) / (drawn - best)).mean()
    assert [cell.text for cell in row[:4]] == [TILES, "x", "2 of 2", "1.000 (1.000 to 1.000)"]
    assert row[4].number == pytest.approx(1)
    assert row[5].number == pytest.approx(over, rel=0.1)
    assert row[6].text == "6"
    assert not notes


def test_the_score_ends_where_random_search_is_near_the_optimum(studies, tiles):
    best, second = tiles.optimum, 1.2 * tiles.optimum
    values = problem(TILES).evaluate(Enumeration(tiles.space, np.random.default_rng(0)).rows(0, 210)).values
    costs = np.where(np.isfinite(values), values, values[np.isfinite(values)].max())
    until = random_needs(costs, NEAR)
    scores = recorded(studies, tiles, [[second] * until + [best] * 9])
    ((*_, end, score, shown),) = optima(scores, Registry())[0].rows
    over = over_random([second] * until, expected_best(costs, range(1, until + 1)), best)
    points = np.unique(np.linspace(1, until, 50).astype(int))
    assert score.number == pytest.approx(over[points - 1].mean())
    assert end.number == 1 > score.number and shown.text == str(until)


def test_the_score_over_problems_is_the_mean_of_means(studies, tiles):
    other, (low, high) = problem("recorded/halide-blur"), (tiles.optimum, 1.2 * tiles.optimum)
    heads = {"fingerprint": other.fingerprint(), "optimum": other.optimum, "default": 2 * other.optimum}
    studies.add({(other.id, name, 0): [cost] * 4 for name, cost in (("x", other.optimum), ("y", 9.0))}, **heads)
    table, _ = optima(recorded(studies, tiles, [[high] * 4, [low] * 4]), Registry())
    found = {(row[0].text, row[1].text): row[5].number for row in table.rows}
    assert found["mean of 2", "x"] == pytest.approx((found[TILES, "x"] + found[other.id, "x"]) / 2)
    assert ("mean of 2", "y") not in found


def test_failures_count_as_the_costliest_for_a_strategy_as_for_random_search(studies, tiles):
    scores = recorded(studies, tiles, [[np.inf] * 5 + [tiles.optimum]])
    costs = whole_space(scores.runs[0], Registry())
    ((*_, mean, _),) = optima(scores, Registry())[0].rows
    random = expected_best(costs, range(1, 7))
    over = over_random([costs.max()] * 5 + [tiles.optimum], random, tiles.optimum)
    assert mean.number == pytest.approx(over.mean()) and mean.number < 0.5


@pytest.mark.parametrize("head", [{"fingerprint": "another"}, {"problem": "none/such"}])
def test_without_the_same_problem_there_is_no_baseline(studies, tiles, head):
    scores = recorded(studies, tiles, [[tiles.optimum] * 3], **head)
    assert whole_space(scores.runs[0], Registry()) is None
    table, notes = optima(scores, Registry())
    assert [cell.text for cell in table.rows[0][-3:]] == ["–", "–", "–"]
    assert [note.kind for note in notes] == ["no random baseline"]


def test_large_spaces_are_left_alone(studies):
    ehrlich = next(name for name in Registry().instances() if name.startswith("ehrlich/"))
    made = problem(ehrlich)
    studies.add({(ehrlich, "x", 0): [2.0, 1.0]}, fingerprint=made.fingerprint(), optimum=1.0)
    assert whole_space(studies.data().runs[0], Registry()) is None


@pytest.mark.slow
def test_a_plugins_space_is_enumerated_too(suite, toy):
    run = ("run", *toy[:2], "--problem", "toy/small", "--strategy", "annealing", "--budget", 20, "--study", "s")
    assert suite(*run, "--json").code == 0
    pages = [Path(suite("report", "s", *given).out.removesuffix("\n")).read_text() for given in ((), toy[:2])]
    assert ["there is no exact baseline of random search" in page for page in pages] == [True, False]


def test_no_interval_reaches_beyond_the_optimum(studies, tiles):
    costs = [[2.5 * tiles.optimum], [tiles.optimum], [tiles.optimum]]
    row = optima(recorded(studies, tiles, costs), Registry())[0].rows[0]
    assert row[3].text.startswith("0.800 (") and row[3].text.endswith(" to 1.000)")
