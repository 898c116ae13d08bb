"""Digests: one line per complete run, with which `validate --digests` compares a study that is made again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..errors import UserError
from ..store.digests import RunDigest, write_digests
from ..store.stored_run import StoredRun
from .formats import ForeignRun, Format
from .stored_study import StoredStudy


def write(study: StoredStudy, path: Path) -> list[str]:
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


def recognises(path: Path, start: bytes) -> bool:
    """Return whether a file begins with the header of such a table."""
    return start.startswith(",".join(RunDigest._fields).encode())


def read(path: Path) -> Iterator[ForeignRun]:
    """Refuse: digests do not hold evaluations."""
    raise UserError(f"{path} holds digests and no evaluations; compare a study with it: `validate STUDY --digests`")


FORMAT = Format("digests of runs, for `validate --digests`", ".csv", write, recognises, read, "digests")
