"""A run without its rows: the numbers that a report needs."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.problem import Status
from ..store.remeasured import Finalist, final_speedup

if TYPE_CHECKING:
    import pandas as pd

_UNKNOWN = -1


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
      finalists: the candidates that were measured again.
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
    finalists: Sequence[Finalist] = ()

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

    def remeasured(self, evaluations: int) -> float | None:
        """Return the speedup of the best candidate so far, measured again; None if it was not, 0 if all failed."""
        place = int(np.searchsorted(self.steps, evaluations, side="right"))
        return final_speedup(self.finalists, int(self.steps[place - 1])) if place else 0.0

    @property
    def rounds(self) -> tuple[float, ...]:
        """The speedups of its best candidate in each round in which it was measured again; empty if it was not."""
        best = [each.speedups for each in self.finalists if len(self.steps) and each.evaluation == self.steps[-1]]
        return best[0] if best else ()

    @property
    def final_speedup(self) -> float:
        """The speedup of its best candidate, measured again if it was."""
        again = self.remeasured(self.evaluations)
        return self.speedup(self.evaluations) if again is None else again

    @property
    def final_cost(self) -> float:
        """The best cost, or if measured again the default's cost / the speedup; inf if all failed."""
        again = self.remeasured(self.evaluations)
        if again is None:
            return self.best(self.evaluations)
        return float(self.head["default"]) / again if again else np.inf


def from_rows(rows: pd.DataFrame, lengths: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield the fields of a `RunSummary` that follow from its rows, for each run.

    Args:
      rows: of all runs, one run after the other.
      lengths: the number of rows of each run.
    """
    import pandas as pd

    digests, names = pd.factorize(rows["digest"])
    digests = np.where(np.isin(digests, np.flatnonzero(names == "")), _UNKNOWN, digests)
    kinds = {name: rows[name].cat for name in ("status", "reason")}
    arrays = [rows[name].to_numpy() for name in ("value", "strategy_seconds", "evaluation_seconds")]
    arrays += [digests, *(kind.codes.to_numpy() for kind in kinds.values())]
    words = [list(kind.categories) for kind in kinds.values()]
    for end, length in zip(itertools.accumulate(lengths), lengths, strict=True):
        yield _numbers([array[end - length : end] for array in arrays], words)


def _numbers(columns: Sequence[NDArray], words: Sequence[Sequence[str]]) -> dict[str, Any]:
    values, strategy_seconds, evaluation_seconds, digests, statuses, reasons = columns
    best, failed = np.minimum.accumulate(values), statuses != Status.OK
    better = np.append(np.isfinite(best[:1]), best[1:] < best[:-1])
    unique, noise = _repeated(digests, values)
    return {
        "evaluations": len(values),
        "unique": unique,
        "failures": Counter(words[0][code] for code in statuses[failed].tolist()),
        "reasons": Counter(filter(None, (words[1][code] for code in reasons[failed].tolist()))),
        "steps": np.flatnonzero(better) + 1,
        "costs": best[better],
        "strategy_seconds": float(strategy_seconds.sum(dtype=np.float64)),
        "evaluation_seconds": float(evaluation_seconds.sum(dtype=np.float64)),
        "noise": noise,
    }


def _repeated(digests: NDArray[np.int64], values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the number of different candidates, and the largest difference of a repeated one; nan if unknown."""
    if (digests == _UNKNOWN).any():  # an imported run without digests
        return np.nan, np.nan
    known, first, places = np.unique(digests, return_index=True, return_inverse=True)
    if len(known) == len(values):
        return len(known), np.nan
    before = values[first][places]
    both = np.isfinite(values) & np.isfinite(before) & (before > 0)
    apart = np.abs(values[both] / before[both] - 1).max(initial=0.0)
    return len(known), float(np.inf if (np.isfinite(values) != np.isfinite(before)).any() else apart)
