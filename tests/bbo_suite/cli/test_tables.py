import os
import re
import sys

import pytest

from bbo_suite.cli.catalogue import fact_table, list_table, reflowed
from bbo_suite.cli.tables import reserved, summary_table

SUMMARY = {
    **{"problem": "fusion/resnet50", "strategy": "random", "seed": 0, "evaluations": 10_000, "unique": 9_999},
    **{
        "failed": 1,
        "unit": "seconds",
        "default": 0.00445,
        "best": 0.004,
        "speedup": 1.1125,
        "level": "costs",
        "remeasured": False,
    },
    **{"strategy_seconds": 1.5, "evaluation_seconds": 2.5, "ended": "budget"},
}


@pytest.fixture
def terminal(monkeypatch):
    """Return a function that makes standard output a terminal of so many columns."""

    def make(columns):
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
        monkeypatch.setenv("NO_COLOR", "1")

    return make


def test_a_file_gets_every_column_on_one_line(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    summary_table([SUMMARY])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "resnet50" in line]
    assert all(text in line for text in ("random", "10,000", "9,999", "0.00445", "1.1125", "1.50", "2.50"))


def test_a_run_that_covered_its_space_says_so(capsys):
    summary_table([SUMMARY])
    assert "covered" not in capsys.readouterr().out
    summary_table([SUMMARY, {**SUMMARY, "evaluations": 343, "ended": "covered"}])
    out = capsys.readouterr().out
    assert "343 covered" in out and "10,000 covered" not in out and "no candidate was left" in out


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
def test_a_terminal_gets_what_fits(capsys, terminal, columns):
    terminal(columns)
    summary_table([SUMMARY, {**SUMMARY, "seed": 1}])
    lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert max(map(len, lines)) <= columns
    text = " ".join(" ".join(lines).split())
    assert "1.1125" in text and "random" in text
    assert ("a wider terminal" in text) == (columns < 200)


def test_names_are_shown_as_they_are(capsys):
    odd = {**SUMMARY, "problem": "x:[red]/[/red]", "strategy": "[bold]_$", "level": "structure"}
    summary_table([odd, {**SUMMARY, "best": None, "speedup": None, "unique": None}])
    out = capsys.readouterr().out
    assert "x:[red]/[/red]" in out and "[bold]_$ *" in out
    assert "* uses the structure" in out
    list_table([{"id": "[a]", "kind": "strategy", "sees": "structure", "what": "[/b]"}])
    fact_table({"id": "[a]", "what": "one\nline\n\nanother", "optimum": None, "flag": True})
    out = capsys.readouterr().out
    assert "[a]" in out and "[/b]" in out and "one line" in out and "unknown" in out and "True" in out


def test_nothing_is_cut_off_a_list(capsys, terminal):
    terminal(40)
    list_table([{"id": "family/" + "x" * 60, "kind": "strategy", "sees": "structure", "what": "word " * 20}])
    assert "".join(capsys.readouterr().out.split()).count("x") == 60


def test_reserved_output(capfd):
    with reserved(True):
        print("python")
        os.system("echo child")
    with reserved(False):
        print("mine", flush=True)
    out, err = capfd.readouterr()
    assert (out, sorted(err.split())) == ("mine\n", ["child", "python"])


DOCSTRING = """One line.

A sentence that is long
enough for two lines:
  - The first point, which is longer
    than a line.
  - The second.

    python -m bbo_suite run --strategy a-command-is-not-wrapped \\
      --quiet

Attributes:
  name: for readers of the code only.
"""


def test_a_docstring_keeps_its_bullets_and_fits():
    assert reflowed(DOCSTRING, 30).splitlines() == [
        "One line.",
        "",
        "A sentence that is long enough",
        "for two lines:",
        "  - The first point, which is",
        "    longer than a line.",
        "  - The second.",
        "",
        "    python -m bbo_suite run --strategy a-command-is-not-wrapped \\",
        "      --quiet",
    ]


def test_the_best_cost_agrees_with_a_speedup_that_was_measured_again(capsys):
    summary_table([{**SUMMARY, "default": 8.0, "best": 2.0, "speedup": 3.2, "remeasured": True}])
    assert "2.5" in capsys.readouterr().out
