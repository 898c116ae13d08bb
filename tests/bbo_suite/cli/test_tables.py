"""Tables on standard output; names with control characters reach no terminal, and no page ends because of them."""

import json
import os
import re
import shutil
import sys

import pytest
from bbo_toys import FACTS

from bbo_suite.cli.catalogue import fact_table, list_table, reflowed
from bbo_suite.cli.tables import reserved, summary_table
from bbo_suite.core.problem import Status
from bbo_suite.files.names import folder_name, printable, without_controls
from bbo_suite.store.identity import write_head
from bbo_suite.store.plan import RunName, add_planned
from bbo_suite.store.rows import HEADER, Row

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


HOSTILE = ["a\x1b[31m\x1b]0;title\x07\x00\x08\x7f\x9b2J", "e\r\nf\ng\u202eh", "$x_{$</title>&"]
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e]|\r(?!\n)")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A study of which every text is hostile."""
    study = tmp_path_factory.mktemp("results") / "s"
    study.mkdir()
    for number, name in enumerate(HOSTILE):
        for strategy in ("x\x1b[2J", "$y"):
            run = RunName(name, strategy, 0)
            path = study / run.folder
            path.mkdir()
            named = {"problem": name, "fingerprint": name, "strategy": strategy, "options": {name: name}, "unit": name}
            facts = {"seed": 0, "budget": 3, "batch": 1, "machine": {"cpu": name}, "versions": {name: name}}
            write_head(path, FACTS | named | facts | {"baselines": {name: 1.0}, "published_in": name})
            rows = [Row(i, f"{i:016x}", 3.0 / i, Status.OK, 0.1, 0.1, "01") for i in (1, 2, 3)]
            (path / "rows.csv").write_text(HEADER + "".join(row.line() for row in rows))
            (path / "diagnostics.csv").write_text("evaluation,name,value\n1,r\x1b[1m,2.0\n")
            (path / ("end.json" if number else "error.txt")).write_text('{"reason": "budget", "evaluations": 3}')
            add_planned(study, [run, run._replace(seed=1)])
    return study


COMMANDS = [
    "report s",
    "plot s",
    "watch s --once",
    "list studies",
    "best s",
    "validate s",
]
COMMANDS += [pytest.param("site --out out", marks=pytest.mark.slow)]
COMMANDS += [
    "export s --to csv",
    "export s --to t4",
    "run --problem a\x1b[31m",
    "show a\x1b[31m",
    "report \x1b[31m",
]


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_passes_them_on(suite, whole, tmp_path, command):
    shutil.copytree(whole, tmp_path / "results" / "s")
    done = suite(*command.split(" "))
    assert "Traceback" not in done.err and not CONTROL.search(done.out + done.err)
    for page in tmp_path.rglob("*.html"):
        assert (not CONTROL.search(page.read_text()) and "<title>s" in page.read_text()) or page.name == "index.html"
    if command.startswith(("report s", "site", "plot")):
        assert (done.code, list(tmp_path.rglob("*.html")) != []) == (0, "plot" not in command), done.err


@pytest.mark.parametrize(
    ("text", "name", "lines"),
    [
        ("plain é ü 中 ✓", "plain é ü 中 ✓", "plain é ü 中 ✓"),
        ("a\x1b[31m", "a\\x1b[31m", "a\\x1b[31m"),
        ("a\nb\tc", "a\\nb\\tc", "a\nb\tc"),
        ("a\r\nb\rc", "a\\r\\nb\\rc", "a\r\nb\\rc"),
        ("\udc80", "\\udc80", "\udc80"),
        ("\u202e\x9b\x7f", "\\u202e\\x9b\\x7f", "\\u202e\\x9b\\x7f"),
    ],
)
def test_how_they_are_written(text, name, lines):
    assert (printable(text), without_controls(text)) == (name, lines)


def test_folders_and_json_keep_names_apart(whole):
    heads = [json.loads(file.read_text()) for file in whole.glob("*/run.json")]
    assert {head["problem"] for head in heads} == set(HOSTILE) and len(heads) == 2 * len(HOSTILE)
    assert len({folder_name(name) for name in HOSTILE}) == len(HOSTILE)
