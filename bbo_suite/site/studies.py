"""The studies of a folder, as they were stored or as published tables, and the numbers of all their runs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import quote

from ..errors import UserError, error_boundary, leave_out
from ..files.names import folder_name
from ..report import read_study
from ..report.page import Page
from ..report.study_data import StudyData, study_of_table
from ..store.folders import has_runs
from ..store.results import RunResult
from ..store.run_table import read_studies, row_of, run_tables, table_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Entry:
    """A study as the site lists it.

    Attributes:
      summary: which strategies ran on which problems.
      verdict: the answer in its first sentence.
    """

    name: str
    summary: str
    verdict: str
    runs: list[RunResult]

    @classmethod
    def of(cls, study: StudyData, page: Page) -> Self:
        """Return the entry of a study with its report; its rows are not kept."""
        return cls(study.name, page.summary, page.answers[0], study.runs)

    @property
    def folder(self) -> str:
        """The name of the folder of its report: names in tables may be any text."""
        return folder_name(self.name)

    @property
    def link(self) -> str:
        """The address of its report, from the first page."""
        return f"{quote(self.folder)}/report.html"


class Source(NamedTuple):
    """Where a study comes from.

    Attributes:
      path: a folder of runs, or a table of published ones.
      place: of the study in the table.
      name: under which it is listed; where one name stands for several studies, with a number.
    """

    path: Path
    place: int
    name: str


def sources(results: Path) -> list[Source]:
    """Return the studies of a folder, by path. Tables that cannot be read are left out and named."""
    seen, found = Counter[str](), list[Source]()
    for path in _paths(results):
        try:
            with error_boundary(f"study {path.name}", "reading"):
                names = [path.name] if path.is_dir() else [name for name, _ in read_studies(path)]
        except UserError as error:
            leave_out(error)
            continue
        for place, name in enumerate(names):
            seen[name] += 1
            found.append(Source(path, place, name if seen[name] == 1 else f"{name} ({seen[name]})"))
    return found


def _paths(results: Path) -> Iterator[Path]:
    """Yield the folders of stored studies, and the tables of published ones."""
    for folder in sorted(path for path in results.glob("*") if path.is_dir()):
        try:
            yield from [folder] if has_runs(folder) else run_tables(folder)
        except UserError as error:
            leave_out(error)


def read(source: Source) -> StudyData:
    """Return a study; its runs that cannot be read are left out and named.

    Raises:
      UserError: none can be read.
    """
    with error_boundary(f"study {source.name}", "reading"):
        if not source.path.is_dir():
            _, runs = list(read_studies(source.path))[source.place]
            return study_of_table(source.name, runs)
        study = read_study(source.path.name, source.path.parent)
    for damage in study.damaged:
        leave_out(damage)
    return replace(study, name=source.name)


def task(run: RunResult) -> str:
    """Return the digest of a run's problem; its id where the digest is not recorded."""
    return str(run.head["fingerprint"] or run.head["problem"])


def cost(run: RunResult) -> float:
    """Return the best cost of a run, measured again if it was; inf if nothing succeeded."""
    return run.final_cost


def best_known(runs: Iterable[RunResult]) -> dict[str, float]:
    """Return the lowest cost of each task: of its runs, or the optimum where it is known."""
    known: dict[str, float] = {}
    for run in runs:
        optimum = run.head.get("optimum")
        costs = cost(run), math.inf if optimum is None else float(optimum)
        known[task(run)] = min(known.get(task(run), math.inf), *costs)
    return known


def points(run: RunResult, known: dict[str, float]) -> float:
    """Return best known cost / cost: 1 is the best known, 0 if nothing succeeded."""
    best, own = known[task(run)], cost(run)
    return 1.0 if own == best < math.inf else best / own if own < math.inf else 0.0


def table_of_runs(entries: Iterable[Entry]) -> pd.DataFrame:
    """Return the table of the runs of all studies (see `store.run_table`), with the name of the study of each."""
    return table_of({"study": entry.name, **row_of(run)} for entry in entries for run in entry.runs)


def points_file(entries: Iterable[Entry], known: dict[str, float]) -> dict[str, Any]:
    """Return the content of `points.json`: tasks by digest, environments, and the points of each run."""
    environments: list[dict[str, Any]] = []
    tasks: dict[str, dict[str, Any]] = {}
    rows = []
    for entry in entries:
        for run in entry.runs:
            head = run.head
            tasks[task(run)] = {"problem": head["problem"], "unit": head["unit"], "default": head["default"]}
            place = {name: head[name] for name in ("versions", "machine") if head.get(name)}
            if place not in environments:
                environments.append(place)
            rows.append(_point(entry.name, run, known) | {"environment": environments.index(place)})
    best = {name: {**facts, "best_known": _number(known[name])} for name, facts in tasks.items()}
    return {"tasks": best, "environments": environments, "points": rows}


def _point(study: str, run: RunResult, known: dict[str, float]) -> dict[str, Any]:
    named = {name: run.head[name] for name in ("strategy", "options", "seed", "budget")}
    result = {"cost": _number(cost(run)), "points": _number(points(run, known)), "status": run.status}
    return {"task": task(run), "study": study, **named, "evaluations": run.evaluations, **result}


def _number(value: float) -> float | None:
    """Return a number as JSON can hold it."""
    return value if math.isfinite(value) else None
