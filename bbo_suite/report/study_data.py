"""A study's folder as it is: damaged, unfinished and empty runs are noted, the others are used."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UserError
from ..store import frames
from ..store.folders import has_begun, has_runs, readable, run_folders
from ..store.plan import RunName, read_planned
from ..store.results import COUNTED, RunResult, counted, hashed, numbers_and_rows, result_of
from ..store.rows import TEXTS, is_long, joined_runs
from ..store.run_table import Published, last_rows, published, results_of

if TYPE_CHECKING:
    import pandas as pd

_KEY = ["problem", "strategy", "seed"]
Heads = dict[Path, dict[str, Any]]


@dataclass(frozen=True)
class StudyData:
    """What a study contains.

    Attributes:
      name: of the study.
      runs: by problem, strategy and seed.
      frame: every evaluation (see `bbo_suite.load`); with candidates if there is one run only.
      damaged: a sentence for each run that cannot be read.
      planned, waiting: the number of planned runs, and those that have not started.
      only_results: True if only the last row of each run is known.
      folder: where its runs are stored; None if they are not.
      report: the file that its report is written to by default; None if it is in the folder.
    """

    name: str
    runs: list[RunResult]
    frame: pd.DataFrame
    damaged: list[str]
    planned: int = 0
    waiting: Sequence[RunName] = ()
    only_results: bool = False
    folder: Path | None = None
    report: Path | None = None


def read_study(study: str, results: Path, with_rows: bool = True) -> StudyData:
    """Return what a study's folder contains; of a published study that is a table of runs.

    Args:
      with_rows: False to leave the frame of all evaluations empty, which takes most of the memory.

    Raises:
      UserError: there is no such study, or the name stands for several published ones.
    """
    import pandas as pd

    if not has_runs(results / study) and (tables := published(study, results)):
        one = only_one(study, tables)
        return replace(study_of_table(study, one.runs), report=one.folder / f"report{one.suffix}.html")
    damaged: list[str] = []
    heads = _heads(run_folders(study, results), damaged)
    paths, lengths, parts, numbers = _rows(heads, damaged, with_rows)
    if damaged and not paths:
        raise UserError(damaged[0])
    naming = Naming([heads[path] for path in paths])
    described = [_described(path, heads[path], naming) for path in paths]
    summaries = [
        replace(result_of(path, heads[path], own), problem=named["problem"], strategy=named["strategy"])
        for path, named, own in zip(paths, described, numbers, strict=True)
    ]
    summaries.sort(key=lambda run: (run.problem, run.strategy, run.seed))
    frame = frames.joined(described, lengths, parts) if with_rows else pd.DataFrame()
    planned = read_planned(results / study)
    waiting = [run for run in planned if not has_begun(results / study / run.folder)]
    return StudyData(study, summaries, frame, damaged, len(planned), waiting, folder=results / study)


def only_one(study: str, found: Sequence[Published]) -> Published:
    """Return the only one of some published studies.

    Raises:
      UserError: there are several.
    """
    if len(found) > 1:
        names = ", ".join(each.name for each in found)
        raise UserError(f"{study!r} stands for several published studies; choose one of {names}")
    return found[0]


def study_of_table(name: str, runs: pd.DataFrame) -> StudyData:
    """Return a study of which only a table of runs is left (see `store.run_table`)."""
    results = sorted(results_of(runs), key=lambda run: (run.problem, run.strategy, run.seed))
    return StudyData(name, results, last_rows(runs), [], only_results=True)


def _heads(paths: Iterable[Path], damaged: list[str]) -> Heads:
    heads: Heads = {}
    seen: dict[tuple, Path] = {}
    for path in paths:
        try:
            head = frames.read_checked(path)
            other = seen.setdefault(tuple(head[name] for name in _KEY), path)
            if other != path:
                raise UserError(f"{path} contains the same run as {other}; delete one of them")
            heads[path] = head
        except UserError as error:
            damaged.append(str(error))
    return heads


def _rows(
    heads: Heads, damaged: list[str], kept: bool
) -> tuple[list[Path], list[int], list[pd.DataFrame], list[dict[str, Any]]]:
    """Return the runs that can be read, the length of each, the rows of all, and the numbers that follow for each.

    Digests and reasons are read for the numbers only.
    """
    texts = TEXTS if kept and len(heads) == 1 else COUNTED  # candidates are drawn for a single run only
    paths: list[Path] = []
    lengths: list[int] = []
    rows: list[pd.DataFrame] = []
    numbers: list[dict[str, Any]] = []
    errors: list[UserError] = []
    long = [path for path in heads if is_long(path)]
    for path, own, its_rows in readable(long, lambda path: (path, *numbers_and_rows(path, texts, kept)), errors):
        paths.append(path)
        lengths.append(own["evaluations"])
        numbers.append(own)
        rows += its_rows
    for part in joined_runs((path for path in heads if path not in long), texts, errors, hashed):
        paths += part.paths
        lengths += part.lengths
        numbers += counted(part.frame, part.lengths)
        rows += [part.frame.drop(columns=[*COUNTED])] if kept else []
    damaged += map(str, errors)
    return paths, lengths, rows, numbers


def _described(path: Path, head: dict[str, Any], naming: Naming) -> dict[str, Any]:
    return frames.described(path, head) | {"problem": naming.problem(head), "strategy": naming.strategy(head)}


class Naming:
    """Names of problems and strategies, with a number or a hash where one name stands for several."""

    def __init__(self, heads: list[dict[str, Any]]) -> None:
        self._contents: dict[str, list[str]] = defaultdict(list)
        self._settings: dict[str, list[str]] = defaultdict(list)
        for head in heads:
            for known, name, what in (
                (self._contents, head["problem"], str(head["fingerprint"])),
                (self._settings, head["strategy"], _json(head["options"])),
            ):
                if what not in known[name]:
                    known[name].append(what)

    def problem(self, head: dict[str, Any]) -> str:
        """Return a problem's id, with its fingerprint if the study holds several of that id."""
        name, known = frames.printable(head["problem"]), self._contents[head["problem"]]
        return f"{name} [{head['fingerprint']}]" if len(known) > 1 else name

    def strategy(self, head: dict[str, Any]) -> str:
        """Return a strategy's id, with a number if the study holds several settings of it."""
        name, known = frames.printable(head["strategy"]), self._settings[head["strategy"]]
        return f"{name} #{known.index(_json(head['options'])) + 1}" if len(known) > 1 else name


def _json(options: Any) -> str:  # noqa: ANN401 - whatever JSON holds
    return json.dumps(options, sort_keys=True)
