"""The text of each section of a report, as stored in `expected`.

To accept a new text, delete its file and run this test twice: it writes the file that is missing, and fails.
"""

from pathlib import Path

import numpy as np
import pytest

from bbo_suite.report import judgement, page, rankings

EXPECTED = Path(__file__).parent / "expected"


@pytest.fixture(scope="module")
def content(tmp_path_factory, studies_in):
    """Return the page of a study with strategies of both kinds, a strategy that is not everywhere, and failures."""
    studies, rng = studies_in(tmp_path_factory.mktemp("text")), np.random.default_rng(0)
    for number in range(7):
        finals = {
            name: 4 + 0.2 * rng.random(3) + place for place, name in enumerate(["graybox", "annealing", "random"])
        }
        studies.add(studies.finals(f"p/{number}", **finals), structure=("graybox",))
        other = {name: costs + 0.5 * rng.random(3) for name, costs in finals.items()}
        studies.add(studies.finals(f"p/{number}", **other), name="t", structure=("graybox",), options={"heat": 3})
    studies.add({("p/0", "evolution", 0): [8, np.inf]}, budget=3, ended="")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bbo_suite.report.pictures", lambda frame, *_: [])
        for module in (judgement, rankings):
            patch.setattr(module, "_SAMPLES", 100)
        return page(studies.data(), studies.data("t"))


def table_text(table):
    rows = [table.columns, *([cell.text for cell in row] for row in table.rows)]
    return "\n".join([f"## {table.title}", *(" | ".join(row) for row in rows), table.caption])


SECTIONS = {
    "summary": lambda content: content.summary,
    "answer": lambda content: "\n".join(content.answers),
    "limits": lambda content: "\n".join(limit.text for limit in content.limits),
    "comparison": lambda content: "\n".join([*content.compared[0], table_text(content.compared[1])]),
    "tables": lambda content: "\n\n".join(map(table_text, content.tables)),
    "provenance": lambda content: "\n\n".join(map(table_text, content.provenance)),
}


@pytest.mark.parametrize("section", SECTIONS)
def test_the_text_of_a_section(content, section):
    file, text = EXPECTED / f"{section}.txt", SECTIONS[section](content).replace("\u00a0", " ") + "\n"
    if not file.exists():
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
        pytest.fail(f"wrote {file}: read it, and run this test again")
    assert text == file.read_text(encoding="utf-8")
