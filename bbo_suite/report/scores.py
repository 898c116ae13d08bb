"""Who found what after equally many evaluations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..stats import complete_block, mean_interval
from .run_summary import RunSummary

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Mean:
    """The mean speedup of a strategy on a problem over its runs, with its 95 % interval, and the best run's."""

    problem: str
    strategy: str
    runs: int
    mean: float
    low: float
    high: float
    best: float


@dataclass(frozen=True)
class Scores:
    """The runs of a study, compared after equally many evaluations of each problem.

    That many are what its shortest finished run has (all that it has, where none is finished), so that nobody is
    judged by more than the others. Unfinished runs that are shorter are left out.

    Attributes:
      records: all runs.
      cutoffs: the evaluations after which each problem is compared.
      used: the runs that reach them.
    """

    records: Sequence[RunSummary]
    cutoffs: dict[str, int]
    used: list[RunSummary]

    @cached_property
    def structured(self) -> set[str]:
        """The strategies that see the declared structure."""
        return {record.strategy for record in self.records if record.head["uses_structure"]}

    @cached_property
    def speedups(self) -> dict[tuple[str, str], NDArray[np.float64]]:
        """The `(runs,)` speedups of each problem and strategy, sorted, so that equal runs have equal means."""
        found: dict[tuple[str, str], list[float]] = defaultdict(list)
        for record in self.used:
            found[record.problem, record.strategy].append(record.speedup(self.cutoffs[record.problem]))
        return {key: np.sort(found[key]) for key in sorted(found)}

    @cached_property
    def means(self) -> list[Mean]:
        """The mean of each problem and strategy."""
        return [Mean(*key, len(runs), *interval(runs), float(runs.max())) for key, runs in self.speedups.items()]

    @cached_property
    def table(self) -> pd.DataFrame:
        """Mean speedups, a row a problem and a column a strategy; nan where a strategy has no run."""
        import pandas as pd

        frame = pd.DataFrame(
            [(m.problem, m.strategy, m.mean) for m in self.means], columns=["problem", "strategy", "mean"]
        )
        return frame.pivot(index="problem", columns="strategy", values="mean")

    @cached_property
    def complete(self) -> pd.DataFrame:
        """The largest part of `table` without gaps: strategies that ran on most problems, and what they share."""
        rows, columns = complete_block(self.table.notna())
        return self.table.loc[rows, columns]

    def started(self, problem: str) -> dict[str, list[RunSummary]]:
        """Return all runs of a problem that evaluated anything, by strategy."""
        found: dict[str, list[RunSummary]] = defaultdict(list)
        for record in self.records:
            if record.problem == problem and record.evaluations:
                found[record.strategy].append(record)
        return dict(sorted(found.items()))

    def best_mean(self, problem: str) -> float:
        """Return the largest mean speedup on a problem."""
        return max(mean.mean for mean in self.means if mean.problem == problem)


def interval(runs: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return the mean and its 95 % interval; a cost of nothing is an infinite speedup, without an interval."""
    with np.errstate(invalid="ignore"):
        return mean_interval(runs)


def scores(records: Sequence[RunSummary]) -> Scores:
    """Return the runs of a study, compared after equally many evaluations of each problem."""
    started = [record for record in records if record.evaluations]
    at = {}
    for problem in sorted({record.problem for record in started}):
        runs = [record for record in started if record.problem == problem]
        finished = [record for record in runs if record.ended] or runs
        at[problem] = min(record.reach for record in finished)
    return Scores(records, at, [record for record in started if record.reach >= at[record.problem]])
