"""A run without its rows: the numbers that a report needs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class RunSummary:
    """One run.

    Attributes:
      problem, strategy: their names in the report.
      head: the content of `run.json`.
      ended: why it ended (budget, covered, time); empty if it has not.
      error: that stopped its last attempt; empty if none did.
      evaluations, unique: number of candidates, and of different ones; nan if an imported run does not tell them.
      failures: by status.
      reasons: how often each reason for a failure occurred.
      steps, costs: `(m,)` evaluations at which it improved, and the best cost from then on.
      strategy_seconds, evaluation_seconds: totals.
      noise: the largest relative difference between two costs of the same candidate; nan if none was repeated.
    """

    problem: str
    strategy: str
    head: dict[str, Any]
    ended: str
    error: str
    evaluations: int
    unique: float
    failures: Counter[str]
    reasons: Counter[str]
    steps: NDArray[np.int64]
    costs: NDArray[np.float64]
    strategy_seconds: float
    evaluation_seconds: float
    noise: float

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return int(self.head["seed"])

    @property
    def reach(self) -> int:
        """The evaluations up to which its best is known: the budget, if it covered its space."""
        return max(self.evaluations, int(self.head["budget"])) if self.ended == "covered" else self.evaluations

    def best(self, evaluations: int) -> float:
        """Return the best cost after a number of evaluations, inf if all failed."""
        place = int(np.searchsorted(self.steps, evaluations, side="right"))
        return float(self.costs[place - 1]) if place else np.inf

    def speedup(self, evaluations: int) -> float:
        """Return the default's cost / the best cost so far: 0 if all failed."""
        default, best = float(self.head["default"]), self.best(evaluations)
        return 1.0 if default == best else np.inf if best == 0 else default / best


def from_rows(rows: pd.DataFrame) -> dict[str, Any]:
    """Return the fields of a `RunSummary` that follow from its rows, which are in order."""
    values, failed = rows["value"].to_numpy(), (rows["status"] != "ok").to_numpy()
    best = np.minimum.accumulate(values)
    better = np.append(np.isfinite(best[:1]), best[1:] < best[:-1])
    unique, noise = _repeated(rows["digest"], values)
    return {
        "evaluations": len(rows),
        "unique": unique,
        "failures": Counter(rows["status"][failed].astype(str)),
        "reasons": Counter(filter(None, rows["reason"][failed].astype(str))),
        "steps": np.flatnonzero(better) + 1,
        "costs": best[better],
        "strategy_seconds": float(rows["strategy_seconds"].to_numpy().sum(dtype=np.float64)),
        "evaluation_seconds": float(rows["evaluation_seconds"].to_numpy().sum(dtype=np.float64)),
        "noise": noise,
    }


def _repeated(digests: pd.Series, values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the number of different candidates, and the largest difference of a repeated one; nan if unknown."""
    import pandas as pd

    if (digests == "").any():  # an imported run without digests
        return np.nan, np.nan
    codes, names = pd.factorize(digests)
    if len(names) == len(values):
        return len(names), np.nan
    first = np.empty(len(names))
    first[codes[::-1]] = values[::-1]
    before = first[codes]
    both = np.isfinite(values) & np.isfinite(before) & (before > 0)
    apart = np.abs(values[both] / before[both] - 1).max(initial=0.0)
    return len(names), float(np.inf if (np.isfinite(values) != np.isfinite(before)).any() else apart)
