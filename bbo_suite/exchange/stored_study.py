"""What exporters read: the runs of a study, of which only one run's rows are in memory at a time."""

from __future__ import annotations

import hashlib
import re
import string
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.level import LEVEL
from ..errors import UserError
from ..registry import Registry
from ..store.folders import each_readable, run_folders
from ..store.remeasured import finalists
from ..store.rows import RowLog
from ..store.stored_run import StoredRun, open_run

HEAD = (
    *("problem", "fingerprint", "strategy", "options", "seed", "budget", "batch"),
    *("unit", "default", "optimum", LEVEL),
)
"""The facts of a run that files hold besides its rows: its identity and the meaning of its costs."""

_DIGITS = string.digits + string.ascii_letters


@dataclass(frozen=True)
class StoredStudy:
    """The runs of a study, sorted by problem, strategy and seed, and the registry that has their problems."""

    name: str
    runs: tuple[StoredRun, ...]
    registry: Registry

    def by(self, *keys: str) -> Iterator[tuple[tuple[Any, ...], list[StoredRun]]]:
        """Yield groups of runs that agree in some keys of `run.json`, each with the values of these keys."""

        def of(run: StoredRun) -> tuple[Any, ...]:
            return tuple(run.head[key] for key in keys)

        yield from ((agreed, list(runs)) for agreed, runs in groupby(sorted(self.runs, key=of), key=of))


def stored_study(study: str, results: Path, registry: Registry) -> StoredStudy:
    """Return a stored study; damaged runs are left out and named.

    Raises:
      UserError: there is none, or every run of it is damaged.
    """
    runs = sorted(each_readable(run_folders(study, results), _checked), key=lambda run: run.name)
    return StoredStudy(study, tuple(runs), registry)


def _checked(folder: Path) -> StoredRun:
    """Return a run whose log was read once: an exporter that finds damage in the middle could not leave it out."""
    run = open_run(folder)
    deque(RowLog(folder).rows(), maxlen=0)
    finalists(folder)
    return run


def facts(run: StoredRun) -> dict[str, Any]:
    """Return the facts of a run that files hold besides its rows.

    Raises:
      UserError: one is missing.
    """
    if missing := [key for key in HEAD if key not in run.head]:
        raise UserError(f"{missing[0]!r} is missing in the run.json of {run.path}; restore it, or delete the folder")
    return {key: run.head[key] for key in HEAD}


def unpacked(run: StoredRun, text: str, digest: str) -> NDArray:
    """Return the `(d,)` indices of a packed candidate without its space: the reading that has the candidate's digest.

    `100` may be three digits or one number.

    Raises:
      UserError: no reading has the digest.
    """
    readings = [[_DIGITS.index(c) for c in text]] if set(text) <= set(_DIGITS) else []
    numbers = re.fullmatch(r"\d{1,18}(-\d{1,18})*", text, re.ASCII)
    readings += [[int(word) for word in text.split("-")]] if numbers else []
    for reading in filter(None, readings):
        for dtype in ("<i1", "<i2", "<i4", "<i8"):
            if max(reading) <= np.iinfo(dtype).max:
                row = np.array(reading, dtype)
                if hashlib.blake2b(row.tobytes(), digest_size=8).hexdigest() == digest:
                    return row
    raise UserError(f"{run.path} is damaged: the candidate {text[:40]!r} does not have the digest {digest}")
