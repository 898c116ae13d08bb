"""What was found comes first: the cost before and after, a drawing, and how to use it."""

import re

import numpy as np
import pytest

from bbo_suite import UserError, figures
from bbo_suite.registry import Registry
from bbo_suite.report import read_study
from bbo_suite.report.findings import MOST, findings


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
