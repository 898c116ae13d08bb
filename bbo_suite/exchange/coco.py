"""COCO (Hansen et al. 2021): a folder of data for each strategy, as `python -m cocopp FOLDER FOLDER` takes them.

cocopp accepts its own suites only. So the data claim to be of the suite `bbob-largescale`, for which cocopp has no
results of others to compare with. Up to 24 problems get the numbers of its functions, and `PROBLEMS.txt` lists them.
The precision that COCO measures is here the percentage by which a cost exceeds the reference: the optimum or, if it is
not known, the best cost of the study.
"""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

import numpy as np
import pandas as pd

from ..errors import UserError
from ..files.names import folder_name
from ..store.stored_run import StoredRun
from .formats import ForeignRun, Format
from .stored_study import StoredStudy, unpacked

_SUITE, MOST = "bbob-largescale", 24
"""The suite that the data claim to be, and its number of functions."""
_FAILED = 1e20
"""Stands for an infinite precision, which cocopp cannot handle."""
_COLUMNS = (
    "f evaluations | g evaluations | best noise-free fitness - Fopt ({}) | measured fitness | best measured fitness"
)


def write(study: StoredStudy, path: Path) -> list[str]:
    """Write a folder for each strategy and list in `PROBLEMS.txt` which problem has which number."""
    problems = [problem for (problem,), _ in study.by("problem")]
    if len(problems) > MOST:
        raise UserError(f"study {study.name!r} has {len(problems)} problems; COCO's suite holds at most {MOST}")
    path.mkdir()
    lines = []
    for number, ((problem,), runs) in enumerate(study.by("problem"), start=1):
        reference, known = _reference(runs)
        for (strategy,), own in StoredStudy(study.name, tuple(runs), study.registry).by("strategy"):
            _write(path / folder_name(strategy), number, strategy, own, reference)
        lines.append(f"f{number} {' '.join(problem.split())}: % above {known} {reference!r} {runs[0].head['unit']}\n")
    (path / "PROBLEMS.txt").write_text("".join(lines), encoding="utf-8")
    return []


def _reference(runs: Sequence[StoredRun]) -> tuple[float, str]:
    """Return the reference cost and a description of it."""
    optimum = runs[0].head["optimum"]
    if optimum is not None and 0 < optimum < math.inf:
        return float(optimum), "the optimum"
    found = [cost for run in runs if 0 < (cost := run.frame()["value"].min()) < math.inf]
    return float(min(found, default=runs[0].head["default"])), "the best of the study"


def _write(folder: Path, number: int, strategy: str, runs: Sequence[StoredRun], reference: float) -> None:
    (folder / f"data_f{number}").mkdir(parents=True, exist_ok=True)
    data = folder / f"data_f{number}" / f"f{number}.dat"
    told, dimension = [], 0
    with data.open("w", encoding="utf-8") as file:
        for run in runs:
            if len(frame := run.frame()):
                last = _append(file, frame, reference)
                told.append(f"{run.head['seed'] + 1}:{len(frame)}|{last:.1e}")
                dimension = max(dimension, _dimension(run, frame))
    if not told:
        return shutil.rmtree(data.parent)
    for suffix in (".dat", ".tdat"):
        data.with_name(f"f{number}_DIM{dimension}{suffix}").write_bytes(data.read_bytes())
    data.unlink()
    name = re.sub(r"[^\w.@:+-]+", "-", strategy, flags=re.ASCII)
    facts = f"suite = '{_SUITE}', funcId = {number}, DIM = {dimension}, Precision = 1.000e-08, algId = '{name}'"
    facts += ", coco_version = '2.8.2', logger = 'bbob', data_format = 'bbob-new2'"
    path = f"data_f{number}/f{number}_DIM{dimension}.dat"
    (folder / f"f{number}.info").write_text(f"{facts}\n% \n{path}, {', '.join(told)}\n", encoding="utf-8")


def _append(file: TextIO, frame: pd.DataFrame, reference: float) -> float:
    """Write the improvements of a run and its last row, and return the precision that it reached."""
    best = frame["value"].cummin().to_numpy()
    precision = np.where(np.isfinite(best), 100 * (best / reference - 1), _FAILED)
    kept = np.union1d(np.flatnonzero(np.diff(precision, prepend=np.inf) < 0), len(frame) - 1)
    measured, found = (np.where(np.isfinite(costs), costs, _FAILED) for costs in (frame["value"].to_numpy(), best))
    file.write(f"% {_COLUMNS.format(repr(reference))}\n")
    for i in kept.tolist():
        file.write(f"{i + 1} 0 {precision[i]:+.9e} {measured[i]:+.9e} {found[i]:+.9e}\n")
    return float(precision[-1])


def _dimension(run: StoredRun, frame: pd.DataFrame) -> int:
    known = frame[frame["config"] != ""].head(1)
    return len(unpacked(run, known["config"].item(), known["digest"].item())) if len(known) else 1


def recognises(path: Path, start: bytes) -> bool:
    """Return whether it is an index, or a folder with indices."""
    return any(path.rglob("*.info")) if path.is_dir() else path.suffix == ".info" and b"funcId" in start


def read(path: Path) -> Iterator[ForeignRun]:
    """Refuse: COCO's data are distances to an optimum, on functions that are not problems of this suite."""
    raise UserError(
        f"{path} holds data of COCO: distances to an optimum on functions that are not problems of this suite; import "
        "a file that `export` wrote as csv, parquet, ioh or optuna"
    )


FORMAT = Format("COCO's data, a folder for each strategy, for cocopp", "", write, recognises, read, "COCO")
