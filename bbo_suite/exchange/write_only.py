"""Formats that are only written: measurements of candidates for auto-tuners (T4, Kernel Tuner), and digests of runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pandas as pd

from ..core.problem import Problem, Status
from ..errors import UserError
from ..files.names import folder_name
from ..recording.files import Measurements, Outcome, write_t4
from ..store.rows import STATUS
from ..store.stored_run import StoredRun
from ..verify.digests import RunDigest, write_digests
from .formats import ForeignRun, Format, StoredStudy


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
                "candidates cannot be named; export --to csv, parquet or ioh, which do not name candidates"
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


def _write_t4(study: StoredStudy, path: Path) -> list[str]:
    """Write a folder with a file for each run; its results are in the order of the evaluations."""
    path.mkdir()
    candidates = Candidates(study)
    for run in study.runs:
        write_t4(path / f"{run.path.name}.json", candidates.of(run)[1])
    return list(candidates.notes())


def _recognises_t4(path: Path, start: bytes) -> bool:
    """Return whether it is JSON that begins as T4 or KTT's output does."""
    return start.lstrip()[:1] == b"{" and any(key in start for key in (b'"metadata"', b'"results"', b'"Results"'))


def _read_t4(path: Path) -> Iterator[ForeignRun]:
    """Refuse: measurements of configurations are a problem, not a trajectory."""
    raise UserError(
        f"{path} holds measurements of configurations, which are a problem to search and not a run: "
        f"`run --problem recorded:{path}`"
    )


T4 = Format("T4, the results of auto-tuners, one file per run", "", _write_t4, _recognises_t4, _read_t4, "T4")


_FAILURES = {Status.FORBIDDEN: "InvalidConfig", Status.COMPILE_ERROR: "CompilationFailedConfig"}
"""Kernel Tuner's word for a failure, in place of a time; all other failures are runtime failures."""
_TIMES = ("compile_time", "verification_time", "benchmark_time", "strategy_time", "framework_time")
_TAKEN = {"time", "times", "timestamp", "__error__", *_TIMES}
"""Names in a row that do not belong to parameters."""


def _write_kernel_tuner(study: StoredStudy, path: Path) -> list[str]:
    """Write a folder with a cache per problem; times are in milliseconds, any other unit names the objective."""
    path.mkdir()
    candidates = Candidates(study)
    for (problem,), runs in study.by("problem"):
        with (path / f"{folder_name(problem)}.json").open("w", encoding="utf-8") as file:
            _write(file, problem, candidates, runs)
    return list(candidates.notes())


def _write(file: TextIO, problem: str, candidates: Candidates, runs: Sequence[StoredRun]) -> None:
    objective = "time" if runs[0].head["unit"] == "seconds" else runs[0].head["unit"]
    seen: set[str] = set()
    for number, run in enumerate(runs):
        known, measurements = candidates.of(run)
        names, values = _described(measurements, objective)
        if not number:
            file.write(f'{json.dumps(_head(run, problem, objective, names, values))[:-1]},\n"cache": {{')
        written = str(datetime.fromtimestamp(run.modified, UTC)) if len(known) else ""
        for i, digest in enumerate(known["digest"].tolist()):
            if digest not in seen:
                own = [values[column][index] for column, index in enumerate(measurements.configs[i].tolist())]
                row = dict(zip(names, own, strict=True)) | _outcome(measurements.outcomes[i], objective)
                row |= _spent(known, i) | {"timestamp": written}
                file.write(f"{',' if seen else ''}\n{json.dumps(','.join(map(str, own)))}: {json.dumps(row)}")
                seen.add(digest)
    file.write("}\n}")  # exactly the bytes that Kernel Tuner expects at the end


def _outcome(outcome: Outcome, objective: str) -> dict[str, Any]:
    cost, status, _ = outcome
    if status != Status.OK:
        return {objective: _FAILURES.get(Status(status), "RuntimeFailedConfig")}
    return {"time": cost * 1e3, "times": [cost * 1e3]} if objective == "time" else {objective: cost}


def _spent(known: pd.DataFrame, i: int) -> dict[str, float]:
    """Return the parts of an evaluation's time in milliseconds; two of them are known, the others 0."""
    milliseconds = [1e3 * known[column].to_numpy()[i].item() for column in ("evaluation_seconds", "strategy_seconds")]
    return dict.fromkeys(_TIMES, 0.0) | dict(zip(("benchmark_time", "strategy_time"), milliseconds, strict=True))


def _described(measurements: Measurements, objective: str) -> tuple[list[str], list[list[Any]]]:
    """Return names and values as cells; indices where the texts of values would give two candidates the same key."""
    names, values = measurements.described()
    names = [f"{name} (parameter)" if name in _TAKEN | {objective} else name for name in names]
    texts = [{str(value) for value in own} for own in values]
    told = [
        len(words) == len(own) and not any("," in word for word in words)
        for words, own in zip(texts, values, strict=True)
    ]
    return names, [own if apart else list(range(len(own))) for own, apart in zip(values, told, strict=True)]


def _head(run: StoredRun, problem: str, objective: str, names: list[str], values: list[list[Any]]) -> dict[str, Any]:
    return {
        "device_name": str(run.head.get("machine", {}).get("cpu", "")),
        "kernel_name": problem,
        "problem_size": "",
        "tune_params_keys": names,
        "tune_params": dict(zip(names, values, strict=True)),
        "objective": objective,
    }


def _recognises_kernel_tuner(path: Path, start: bytes) -> bool:
    """Return whether it is JSON that begins as a cache does."""
    return start.lstrip()[:1] == b"{" and (b'"tune_params_keys"' in start or b'"cache"' in start)


KERNEL_TUNER = Format(
    "Kernel Tuner's cache, one file per problem",
    "",
    _write_kernel_tuner,
    _recognises_kernel_tuner,
    _read_t4,
    "Kernel Tuner",
)


def _write_digests(study: StoredStudy, path: Path) -> list[str]:
    """Write the digests of all complete runs."""
    unfinished: list[StoredRun] = []
    write_digests(path, _digests(study, unfinished))
    return [f"left out: {run} is not complete" for run in unfinished]


def _digests(study: StoredStudy, unfinished: list[StoredRun]) -> Iterator[RunDigest]:
    for run in study.runs:
        digest = RunDigest.of(run)
        if run.is_complete(digest.evaluations):
            yield digest
        else:
            unfinished.append(run)


def _recognises_digests(path: Path, start: bytes) -> bool:
    """Return whether a file begins with the header of such a table."""
    return start.startswith(",".join(RunDigest._fields).encode())


def _read_digests(path: Path) -> Iterator[ForeignRun]:
    """Refuse: digests do not hold evaluations."""
    raise UserError(f"{path} holds digests and no evaluations; compare a study with it: `validate STUDY --digests`")


DIGESTS = Format(
    "digests of runs, for `validate --digests`", ".csv", _write_digests, _recognises_digests, _read_digests, "digests"
)
