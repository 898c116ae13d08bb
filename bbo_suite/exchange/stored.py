"""A study as it is stored, run by run: at no time is more than one run's rows in memory."""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import UserError
from ..files import read_json
from ..registry import Registry
from ..store.frames import rows, study_path
from ..store.identity import RUN

if TYPE_CHECKING:
    import pandas as pd

_DIGITS = string.digits + string.ascii_letters
HEAD = (
    *("problem", "fingerprint", "strategy", "options", "seed", "budget", "batch"),
    *("unit", "default", "optimum", "uses_structure"),
)
"""What is told of a run beside its rows: what it is, and what its costs mean."""


@dataclass(frozen=True)
class StoredRun:
    """One run's folder and what its `run.json` says, of which `HEAD` is there."""

    path: Path
    facts: dict[str, Any]

    @property
    def head(self) -> dict[str, Any]:
        """The facts of `HEAD`."""
        return {key: self.facts[key] for key in HEAD}

    def frame(self) -> pd.DataFrame:
        """Return the rows that are complete, as in `frames.rows`."""
        return rows(self.path)


@dataclass(frozen=True)
class StoredStudy:
    """The runs of a study, and where the problems are found that they are of."""

    name: str
    runs: tuple[StoredRun, ...]
    registry: Registry

    def by(self, *keys: str) -> Iterator[tuple[tuple[Any, ...], list[StoredRun]]]:
        """Yield the runs that agree in some of the facts, in their order, with these facts."""

        def of(run: StoredRun) -> tuple[Any, ...]:
            return tuple(run.facts[key] for key in keys)

        yield from ((agreed, list(runs)) for agreed, runs in groupby(sorted(self.runs, key=of), key=of))


def stored(study: str, results: Path, registry: Registry) -> StoredStudy:
    """Return a study's runs, sorted by problem, strategy and seed.

    Raises:
      UserError: there is none, or a `run.json` is damaged.
    """
    runs = [StoredRun(file.parent, _facts(file)) for file in study_path(study, results).glob(f"*/{RUN}")]
    runs.sort(key=lambda run: (run.facts["problem"], run.facts["strategy"], run.facts["seed"]))
    return StoredStudy(study, tuple(runs), registry)


def _facts(file: Path) -> dict[str, Any]:
    facts = read_json(file)
    for key in HEAD:
        if key not in facts:
            raise UserError(f"{file} has no {key!r}; restore it, or delete its folder")
    return facts


def unpacked(run: StoredRun, text: str, digest: str) -> NDArray:
    """Return the `(d,)` indices of a packed candidate of a run without its space, which its digest stands for.

    `100` is three digits or one number; only one of the two has the digest.

    Raises:
      UserError: no reading has it.
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
