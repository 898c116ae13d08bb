"""`import`: the runs of a foreign file become runs of a study, marked as imported, so that figures show them."""

from __future__ import annotations

import dataclasses
import math
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

from ..core.evaluation import default_value
from ..core.level import LEVEL, Level
from ..core.problem import Status
from ..errors import UserError
from ..files.names import folder_name, plain
from ..files.writing import acquired, disk_errors
from ..registry import Registry
from ..runs.study_plan import check_name
from ..store.folders import LOCK
from ..store.identity import IMPORTED, check_contents, read_head, wrong_fact
from ..store.rows import Row
from ..store.run_folder import write_ended
from .formats import HEAD, ForeignRun, recognised

_MEANING = ("problem", "fingerprint", "unit", "default")
"""The facts of a run that files of other tools do not hold."""
_ROUNDING = 1e-4
"""Relative error of costs in files, which have fewer digits than the optimum."""


@dataclass(frozen=True)
class Import:
    """An import of a file into a study.

    Attributes:
      file: the file or folder to read.
      study: the name of the folder in `results`; by default the file's.
      problem: the id of the problem that was solved, if the file does not say it.
      strategy, seed: of its runs, if the file does not say them (default: the study's name, and 0).
    """

    file: Path
    study: str | None
    results: Path
    registry: Registry
    problem: str | None = None
    strategy: str | None = None
    seed: int | None = None

    @property
    def path(self) -> Path:
        """The study's folder."""
        stem = self.file.name.removesuffix(".gz").rpartition(".")[0] or self.file.name
        name = self.study or plain(stem) or "imported"
        check_name(name)
        return self.results / name

    def perform(self) -> list[Path]:
        """Import all runs of the file, or none, and return their folders.

        Raises:
          UserError: the file is damaged or of no known format, does not name the problem, or the study holds the same
            runs, or runs of another content of the problem.
        """
        path = self.path
        with disk_errors(self.results):
            self.results.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self.results, prefix=".importing-") as kept:
                runs = self._read(Path(kept) / path.name)
                os.sync()
                path.mkdir(exist_ok=True)
                with acquired(path / LOCK, str(path)):
                    _check(runs, path)
                    return [run.replace(path / run.name) for run in runs]

    def _read(self, folder: Path) -> list[Path]:
        """Write the runs of the file into a folder and return their own folders."""
        name, file_format = recognised(self.file)
        tool = f"{file_format.tool}, read by bbo_suite {version('bbo_suite')} as {name}"
        try:
            runs = [
                run for foreign_run in file_format.read(self.file) if (run := self._write(foreign_run, folder, tool))
            ]
        except ValueError as error:
            raise UserError(f"cannot import {self.file}: {error}; nothing was imported") from None
        except (MemoryError, RecursionError) as error:
            raise UserError(
                f"cannot import {self.file}: it is too large or too deep ({type(error).__name__})"
            ) from None
        if not runs:
            raise UserError(f"{self.file} holds no evaluation; nothing was imported")
        return runs

    def _write(self, foreign_run: ForeignRun, folder: Path, tool: str) -> Path | None:
        """Write a run; None if it has no evaluation."""
        rows = fill_gaps(foreign_run)
        if (first := next(rows, None)) is None:
            return None
        head = self._head(foreign_run)
        folder.mkdir(exist_ok=True)
        path = folder / folder_name(head["problem"], head["strategy"], str(head["seed"]))
        if path.exists():
            duplicate = f"seed {head['seed']} of {head['strategy']} on {head['problem']}"
            raise ValueError(f"{foreign_run.place} repeats {duplicate}; keep all rows of a run together")
        facts = {IMPORTED: {"source": str(self.file), "tool": tool}, "versions": {}, "machine": {}}
        best = math.inf

        def watched() -> Iterator[Row]:
            nonlocal best
            for row in chain([first], rows):
                best = min(best, row.value)
                yield row

        write_ended(path, head | facts, watched(), IMPORTED)
        _warn_below_optimum(best, head, foreign_run.place)
        return path

    def _head(self, foreign_run: ForeignRun) -> dict[str, Any]:
        if not isinstance(foreign_run.head, dict):
            raise ValueError(f"the facts of {foreign_run.place} are not an object")
        head = {key: foreign_run.head[key] for key in HEAD if key in foreign_run.head}
        for key in ("problem", "strategy", "seed"):
            there, given = head.get(key), getattr(self, key)
            if there is not None and given not in (None, there):
                raise ValueError(f"{foreign_run.place} is of {key} {str(there)[:60]!r}, not {given!r}")
        missing = [key for key in _MEANING if key not in head]
        if missing:
            if self.problem is None:
                # A table may name a problem that runs a command, so the user says that it is meant.
                remedy = f"give --problem {shlex.quote(str(head.get('problem', 'ID')))}, and they are looked up"
                raise UserError(f"{self.file} does not say the {', '.join(missing)} of its runs; {remedy}")
            head |= self._meaning(self.problem)
        given = {"strategy": self.strategy or self.path.name, "seed": self.seed or 0}
        head = given | {"options": {}, "batch": 1} | head
        return checked_head({"optimum": None, LEVEL: Level.COSTS.word} | head, foreign_run.place)

    def _meaning(self, problem_id: str) -> dict[str, Any]:
        problem = self.registry.problem(problem_id)
        known = {"problem": problem_id, "fingerprint": problem.fingerprint(), "unit": problem.unit}
        return known | {"default": default_value(problem), "optimum": problem.optimum}


def _warn_below_optimum(best: float, head: dict[str, Any], place: str) -> None:
    """Warn that costs below the optimum probably belong to another problem."""
    optimum = head["optimum"]
    if optimum is not None and best < optimum * (1 - _ROUNDING):
        known = f"the optimum of {head['problem']}, {optimum:.6g} {head['unit']}"
        advice = "check that the costs are of this problem and in this unit"
        print(f"the run at {place} has the cost {best:.6g}, below {known}: {advice}", file=sys.stderr)


def _check(runs: list[Path], path: Path) -> None:
    """Check that none of the runs exists yet, and that all runs of a problem have the same content of it."""
    contents: dict[str, str] = {}
    for run in runs:
        if (path / run.name).exists():
            raise UserError(f"{path / run.name} exists already; nothing was imported: choose another --study")
        head = read_head(run)
        contents.setdefault(head["problem"], head["fingerprint"])
    for study in (path, runs[0].parent):
        check_contents(study, contents)


FILLED = "not in the imported file: no better than the best so far"
"""The reason of an evaluation that a trajectory leaves out; its value is the best so far."""
LARGEST = 10_000_000
"""Maximum number of evaluations of a run."""


def checked_head(head: dict[str, Any], place: str) -> dict[str, Any]:
    """Return the facts of a run if each has its type; the budget is not known yet.

    Raises:
      ValueError: one has not; the message names it.
    """
    if wrong := wrong_fact({"budget": 1} | head):
        raise ValueError(f"{place} has {str(head.get(wrong))[:60]!r} as its {wrong}")
    Level.named(head[LEVEL])
    return head


def fill_gaps(run: ForeignRun) -> Iterator[Row]:
    """Yield every evaluation of a run; those missing in its file repeat the best so far, with a reason that says so.

    Raises:
      ValueError: a row could not have been written by this suite.
    """
    last, best = 0, Row(0, "", math.inf, Status.RUNTIME_ERROR, 0.0, 0.0)
    for row in run.rows:
        if why := _complaint(row, last):
            place = f"at {run.where()}" if run.where else f"of the run at {run.place}"
            raise ValueError(f"evaluation {row.evaluation} {place} {why}")
        if row.evaluation > last + 1:
            yield from _filled(best, last + 1, row.evaluation)
        yield row
        last, best = row.evaluation, min(best, row, key=lambda known: known.value)
    if run.evaluations > LARGEST:
        raise ValueError(f"{run.place} has {run.evaluations} evaluations; at most {LARGEST} are read")
    yield from _filled(best, last + 1, run.evaluations + 1)


def _filled(best: Row, start: int, stop: int) -> Iterator[Row]:
    same = dataclasses.replace(best, strategy_seconds=0.0, evaluation_seconds=0.0, config="", reason=FILLED)
    return (dataclasses.replace(same, evaluation=number) for number in range(start, stop))


def _complaint(row: Row, last: int) -> str:
    """Return what is wrong with a row that follows evaluation `last`; empty if it is valid."""
    if not last < row.evaluation <= LARGEST:
        return f"follows {last}; numbers must ascend, from 1 to at most {LARGEST}"
    if not row.value >= 0:
        return f"costs {row.value}; a cost must not be negative, and a failure costs inf"
    if (row.status is Status.OK) != math.isfinite(row.value):
        return f"costs {row.value} but is {row.status.word}; ok means a finite cost, and a failure costs inf"
    if not all(math.isfinite(t) and t >= 0 for t in (row.strategy_seconds, row.evaluation_seconds)):
        return "took seconds that are negative or not finite"
    if not re.fullmatch(r"([0-9a-f]{16})?", row.digest) or not re.fullmatch(r"[0-9A-Za-z-]*", row.config):
        return "has a malformed digest or candidate"
    return ""
