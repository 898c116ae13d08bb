"""Kernel Tuner's cache, one file per problem: the measurements of all runs of a study, each candidate once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

import pandas as pd

from ..core.problem import Status
from ..files.names import folder_name
from ..recording.files import Measurements, Outcome
from ..store.stored_run import StoredRun
from . import t4
from .candidates import Candidates
from .formats import Format
from .stored_study import StoredStudy

_FAILURES = {Status.FORBIDDEN: "InvalidConfig", Status.COMPILE_ERROR: "CompilationFailedConfig"}
"""Kernel Tuner's word for a failure, in place of a time; all other failures are runtime failures."""
_TIMES = ("compile_time", "verification_time", "benchmark_time", "strategy_time", "framework_time")
_TAKEN = {"time", "times", "timestamp", "__error__", *_TIMES}
"""Names in a row that do not belong to parameters."""


def write(study: StoredStudy, path: Path) -> list[str]:
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


def recognises(path: Path, start: bytes) -> bool:
    """Return whether it is JSON that begins as a cache does."""
    return start.lstrip()[:1] == b"{" and (b'"tune_params_keys"' in start or b'"cache"' in start)


FORMAT = Format("Kernel Tuner's cache, one file per problem", "", write, recognises, t4.read, "Kernel Tuner")
