"""Names with control characters: no command hands them to a terminal, and no page ends because of them."""

import json
import re
import shutil

import pytest
from bbo_toys import FACTS

from bbo_suite.core.problem import Status
from bbo_suite.files.names import folder_name, printable, without_controls
from bbo_suite.store.identity import write_head
from bbo_suite.store.plan import RunName, add_planned
from bbo_suite.store.rows import HEADER, Row

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
