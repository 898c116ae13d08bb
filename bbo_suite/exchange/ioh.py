"""IOHprofiler: a JSON index of runs beside the rows of all of them, for IOHinspector and IOHanalyzer.

As IOHexperimenter writes it (de Nobel et al. 2023), every evaluation logged; our own data are under `bbo_suite` in
each run. IOHinspector evaluates the texts of `experiment_attributes` as Python, so none are written.
Tests read what is written with IOHinspector; IOHanalyzer, which Debian does not package, has not been tried on it.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from ..core.problem import Status
from ..files.names import folder_name
from ..files.reading import parse_json
from ..files.writing import write_json
from ..store.rows import Row
from ..store.stored_run import StoredRun
from .formats import ForeignRun, Format, StoredStudy, facts, unpacked

if TYPE_CHECKING:
    import pandas as pd

_LARGEST = 65_535
"""The largest number of dimensions that IOHinspector accepts."""
_VERSION = "1.0.0"
"""Version of the format; IOHanalyzer does not accept JSON of older versions."""
_COLUMNS = ("evaluations", "raw_y", "status", "strategy_seconds", "evaluation_seconds")


def write(study: StoredStudy, path: Path) -> list[str]:
    """Write a folder for each strategy with an index for each problem; status is the number of `Status`."""
    path.mkdir()
    numbers = {problem: number for number, ((problem,), _) in enumerate(study.by("problem"), start=1)}
    for (problem, strategy), runs in study.by("problem", "strategy"):
        _write(path / folder_name(strategy), numbers[problem], problem, strategy, runs)
    return []


def _write(folder: Path, number: int, problem: str, strategy: str, runs: Sequence[StoredRun]) -> None:
    stem = f"f{number}_{folder_name(problem)}"
    (folder / f"data_{stem}").mkdir(parents=True, exist_ok=True)
    told, data = [], folder / f"data_{stem}" / f"IOHprofiler_f{number}.dat"
    with data.open("w", encoding="utf-8", newline="") as file:
        for run in runs:
            if len(frame := run.frame()):
                _append(file, frame)
                told.append(_told(run, frame))
    if not told:
        return shutil.rmtree(data.parent)
    dimension = max(len(run["best"]["x"]) for run in told)
    named = data.with_name(f"IOHprofiler_f{number}_DIM{dimension}.dat")
    data.rename(named)
    index = {
        "version": _VERSION,
        "suite": "bbo_suite",
        "function_id": number,
        "function_name": problem,
        "maximization": False,
        "algorithm": {"name": strategy, "info": json.dumps(runs[0].head["options"])},
        "attributes": list(_COLUMNS),
        "scenarios": [
            {"dimension": min(dimension, _LARGEST), "path": str(named.relative_to(folder).as_posix()), "runs": told}
        ],
    }
    write_json(folder / f"IOHprofiler_{stem}.json", index)


def _append(file: TextIO, frame: pd.DataFrame) -> None:
    status = frame["status"].astype(str).map({status.word: int(status) for status in Status})
    columns = ["evaluation", "value", "status", "strategy_seconds", "evaluation_seconds"]
    frame.assign(status=status)[columns].to_csv(file, sep=" ", index=False, header=list(_COLUMNS), lineterminator="\n")


def _told(run: StoredRun, frame: pd.DataFrame) -> dict[str, Any]:
    place = int(frame["value"].argmin())
    best = frame.iloc[place]
    x = unpacked(run, best["config"], best["digest"]).tolist() if best["config"] else []
    value = float(best["value"])
    found = {"evals": place + 1, "y": value if math.isfinite(value) else None, "x": x}
    return {"instance": 1, "evals": len(frame), "best": found, "bbo_suite": facts(run)}


def recognises(path: Path, start: bytes) -> bool:
    """Return whether it is an index, or a folder with indices."""
    if path.is_dir():
        return any(path.rglob("IOHprofiler_*.json"))
    return start.lstrip()[:1] == b"{" and path.suffix == ".json" and b'"function_id"' in start


def read(path: Path) -> Iterator[ForeignRun]:
    """Yield the runs of an index, or of all in a folder.

    Raises:
      ValueError: with the file, and the key or the line, that is wrong.
    """
    for file in sorted(path.rglob("IOHprofiler_*.json")) if path.is_dir() else [path]:
        index = _index(file)
        if index["maximization"]:
            raise ValueError(f"{file.name} maximises ('maximization'); costs are minimised here")
        for scenario in index["scenarios"]:
            yield from _scenario(file, index, scenario)


def _index(file: Path) -> dict[str, Any]:
    try:
        index = parse_json(file.read_bytes())
    except ValueError as error:
        raise ValueError(f"{file.name} is not valid JSON ({error})") from None
    for key, kind in (("maximization", bool), ("scenarios", list), ("algorithm", dict)):
        if not isinstance(index, dict) or not isinstance(index.get(key), kind):
            raise ValueError(f"{file.name} has no {key!r}, or one of the wrong type")
    return index


def _scenario(file: Path, index: dict[str, Any], scenario: Any) -> Iterator[ForeignRun]:  # noqa: ANN401 - JSON
    try:
        told, data = scenario["runs"], file.parent / scenario["path"]
        heads = [
            run.get("bbo_suite", {"strategy": str(index["algorithm"]["name"]), "seed": i}) for i, run in enumerate(told)
        ]
        lengths = [int(run["evals"]) for run in told]
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise ValueError(f"{file.name} has a scenario with a missing or wrong entry ({error})") from None
    if not data.resolve().is_relative_to(file.parent.resolve()) or not data.is_file():
        raise ValueError(f"{file.name} names a 'path' that is not a file beside it: {str(scenario['path'])[:80]!r}")
    with data.open(encoding="utf-8", errors="replace") as lines:
        reader = _Lines(data.name, lines)
        for number, (head, length) in enumerate(zip(heads, lengths, strict=True), start=1):
            yield ForeignRun(head, reader.run(length) if length else (), f"run {number} of {file.name}", length)
        if next(reader.run(0), None):
            raise ValueError(f"{data.name}, line {reader.number} belongs to a run that {file.name} does not list")


class _Lines:
    """The rows of a file run by run: a run begins with a header, or where numbers start again."""

    def __init__(self, name: str, file: TextIO) -> None:
        self._name, self._file, self.number = name, file, 0
        self._columns: list[str] = []
        self._next: Row | None = None

    def run(self, length: int) -> Iterator[Row]:
        """Yield the logged rows of the next run; the last of them must be evaluation `length`."""
        row, self._next = self._next or self._row()[0], None
        last, line = 0, self.number
        while row:
            yield row
            last, line = row.evaluation, self.number
            row, begins = self._row()
            if row and (begins or row.evaluation <= last):
                row, self._next = None, row
        if length and last != length:
            raise ValueError(f"{self._name}, line {line} ends a run of {length} evaluations at {last}")

    def _row(self) -> tuple[Row | None, bool]:
        """Return the next row, and whether there was a header before it."""
        begins = False
        for line in self._file:
            self.number += 1
            cells = line.split()
            if cells[:2] == ["evaluations", "raw_y"]:
                self._columns, begins = cells, True
            elif cells:
                return self._parsed(cells), begins
        return None, begins

    def _parsed(self, cells: list[str]) -> Row:
        try:
            own = {key: float(cell) for key, cell in zip(self._columns, cells, strict=True)}
            number, value = int(own["evaluations"]), own["raw_y"]
            status = Status(int(own.get("status", Status.OK if math.isfinite(value) else Status.RUNTIME_ERROR)))
            seconds = own.get("strategy_seconds", 0.0), own.get("evaluation_seconds", 0.0)
            return Row(number, "", value, status, *seconds)
        except (ValueError, KeyError, OverflowError):
            raise ValueError(f"{self._name}, line {self.number} is not a row {' '.join(self._columns)}") from None


IOH = Format(
    "IOHprofiler's JSON and .dat, for IOHanalyzer and IOHinspector", "", write, recognises, read, "IOHprofiler"
)
