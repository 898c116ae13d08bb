"""The candidates of stored runs as names and values, for formats that hold nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import version

import numpy as np
import pandas as pd

from ..core.problem import Problem
from ..errors import UserError
from ..recording.files import Measurements
from ..store.rows import STATUS
from ..store.stored_run import StoredRun
from .stored_study import StoredStudy


@dataclass
class Candidates:
    """The evaluations of runs whose candidates are stored, and a count of the others."""

    study: StoredStudy
    told: int = field(default=0, init=False)
    left_out: int = field(default=0, init=False)

    def of(self, run: StoredRun) -> tuple[pd.DataFrame, Measurements]:
        """Return the rows of a run whose candidates are stored, and their measurements.

        Raises:
          UserError: the run's problem has changed or is missing, or a candidate is damaged.
        """
        problem, frame = self._problem(run), run.frame()
        known = frame[frame["config"] != ""].reset_index(drop=True)
        self.told, self.left_out = self.told + len(known), self.left_out + len(frame) - len(known)
        configs = _configs(run, problem, known)
        words, costs, reasons = known["status"].astype(str), known["value"].tolist(), known["reason"].tolist()
        outcomes = list(zip(costs, (int(STATUS[word]) for word in words), reasons, strict=True))
        columns, default = range(len(problem.space)), problem.default_row()
        there = default if (configs == default).all(axis=1).any() else None
        return known, Measurements(problem.space, columns, configs, outcomes, _metadata(run), problem.unit, there)

    def _problem(self, run: StoredRun) -> Problem:
        problem = self.study.registry.problem(run.head["problem"])
        here, there = problem.fingerprint(), run.head["fingerprint"]
        if here != there:
            raise UserError(
                f"{run.path} was made with content {there} of {problem.id}, but here the content is {here}, so its "
                "candidates cannot be named; export --to csv, parquet, ioh or coco, which do not name candidates"
            )
        return problem

    def notes(self) -> Iterator[str]:
        """Yield one sentence about the evaluations that are left out, if there are any."""
        if self.left_out:
            yield (
                f"{self.left_out:,} of {self.told + self.left_out:,} evaluations are left out: only improvements are "
                "stored with their candidate; a study made by `run --all-configs` has all"
            )


def _configs(run: StoredRun, problem: Problem, known: pd.DataFrame) -> np.ndarray:
    space = problem.space
    try:
        configs = np.array([space.unpack(text) for text in known["config"]], space.dtype).reshape(-1, len(space))
    except ValueError as error:
        raise UserError(f"{run.path} is damaged: {error}") from None
    if space.digests(configs) != known["digest"].tolist():
        raise UserError(f"{run.path} is damaged: a candidate in it does not have its digest")
    return configs


def _metadata(run: StoredRun) -> dict[str, object]:
    seconds = {"timeunit": "seconds"} if run.head["unit"] == "seconds" else {}
    keys = ("problem", "fingerprint", "strategy", "options", "seed", "budget", "batch")
    return {key: run.head[key] for key in keys} | seconds | {"made by": f"bbo_suite {version('bbo_suite')}"}
