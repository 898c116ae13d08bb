"""What one look at a large study costs, and one screen: `pytest tests/benchmarks -k watch`.

A made-up study of 1,000 runs of 10,000 evaluations, 800 MB: 600 runs done, 200 under way, the others to come. Seconds
on one busy core: 0.28 for the first look, 0.05 for one after 200 runs have grown by a batch, 0.02 for the screen.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from bbo_suite.cli.watch import WIDE, StudyView, screen
from bbo_suite.core.problem import Status
from bbo_suite.store.plan import RunName, add_planned
from bbo_suite.store.rows import HEADER, Row

RUNS, DONE, GOING, BUDGET, BATCH = 1000, 600, 200, 10_000, 100


def lines(start: int, stop: int) -> str:
    """Return rows as a run writes them: one in a hundred is better than all before, one in fifty fails."""
    found = []
    for number in range(start, stop):
        status = Status.TIMEOUT if number % 50 == 7 else Status.OK
        value = np.inf if status else 1.0 - number // 100 / 1e4
        kept = "01" * 300 if number % 100 == 0 or number == 1 else ""
        found.append(Row(number, f"{number:016x}", value, status, 1e-5, 2e-4, kept, "20 s" if status else "").line())
    return "".join(found)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the folder of the made-up study."""
    path = tmp_path_factory.mktemp("results") / "large"
    path.mkdir()
    names = [RunName(f"fusion/p{p}", f"s{s}", seed) for p in range(20) for s in range(5) for seed in range(10)]
    add_planned(path, names)
    (path / "study.json").write_text(json.dumps({"format": 1, "budget": BUDGET, "batch": BATCH}))
    whole, half = (HEADER + lines(1, stop) for stop in (BUDGET + 1, BUDGET // 2 + 1))
    for i, name in enumerate(names[: DONE + GOING]):
        folder = path / name.folder
        folder.mkdir()
        (folder / "run.json").write_text(json.dumps({**name._asdict(), "budget": BUDGET, "default": 1.0}))
        (folder / "rows.csv").write_text(whole if i < DONE else half)
        if i < DONE:
            end = {"reason": "budget", "evaluations": BUDGET, "best": 0.99, "seconds": 2.1}
            (folder / "end.json").write_text(json.dumps(end))
    yield path
    shutil.rmtree(path)


def test_first_look(benchmark, study: Path) -> None:
    def look() -> StudyView:
        view = StudyView(study.name, study.parent)
        view.refresh()
        return view

    view = benchmark.pedantic(look, rounds=3)
    assert sum(run.evaluations for run in view.runs) == DONE * BUDGET + GOING * BUDGET // 2


def test_next_look(benchmark, study: Path) -> None:
    view, batch = StudyView(study.name, study.parent), lines(BUDGET // 2 + 1, BUDGET // 2 + BATCH + 1).encode()
    view.refresh()
    going = [run for run in view.runs if 0 < run.evaluations < BUDGET]

    def grow() -> None:
        for run in going:
            with (run.path / "rows.csv").open("ab") as file:
                file.write(batch)

    benchmark.pedantic(view.refresh, setup=grow, rounds=5)
    assert all(run.evaluations == BUDGET // 2 + 5 * BATCH for run in going)
    for run in going:
        os.truncate(run.path / "rows.csv", run._tail.offset - 5 * len(batch))


def test_screen(benchmark, study: Path) -> None:
    view = StudyView(study.name, study.parent)
    view.refresh()
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123 - not a file
        benchmark(lambda: Console(file=nowhere, width=WIDE).print(screen(view)))
