"""T4, the results format of auto-tuners, one file per run: schema 1.0.0 of github.com/odgaard/TuningSchema."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..errors import UserError
from ..recording.files import write_t4
from .candidates import Candidates
from .formats import ForeignRun, Format
from .stored_study import StoredStudy


def write(study: StoredStudy, path: Path) -> list[str]:
    """Write a folder with a file for each run; its results are in the order of the evaluations."""
    path.mkdir()
    candidates = Candidates(study)
    for run in study.runs:
        write_t4(path / f"{run.path.name}.json", candidates.of(run)[1])
    return list(candidates.notes())


def recognises(path: Path, start: bytes) -> bool:
    """Return whether it is JSON that begins as T4 or KTT's output does."""
    return start.lstrip()[:1] == b"{" and any(key in start for key in (b'"metadata"', b'"results"', b'"Results"'))


def read(path: Path) -> Iterator[ForeignRun]:
    """Refuse: measurements of configurations are a problem, not a trajectory."""
    raise UserError(
        f"{path} holds measurements of configurations, which are a problem to search and not a run: "
        f"`run --problem recorded:{path}`"
    )


FORMAT = Format("T4, the results of auto-tuners, one file per run", "", write, recognises, read, "T4")
