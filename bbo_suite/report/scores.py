"""Who found what after equally many evaluations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..stats import mean_interval
from .record import Record

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Scores:
    """The runs of a study, compared after equally many evaluations of each problem.

    That many are what its shortest finished run has (all that it has, where none is finished), so that nobody is
    judged by more than the others. Unfinished runs that are shorter are left out.

    Attributes:
      records: all runs.
      at: the evaluations after which each problem is compared.
      used: the runs that reach them.
    """

    records: Sequence[Record]
    at: dict[str, int]
    used: list[Record]

    @cached_property
    def seeing(self) -> set[str]:
        """The strategies that see the declared structure."""
        return {record.strategy for record in self.records if record.head["uses_structure"]}

    @cached_property
    def runs(self) -> pd.DataFrame:
        """A row a used run: problem, strategy, seed, speedup, cost, at."""
        import pandas as pd

        columns = ["problem", "strategy", "seed", "speedup", "cost", "at"]
        rows = ((r.problem, r.strategy, r.seed, self.at[r.problem]) for r in self.used)
        found = [(*row[:3], r.speedup(row[3]), r.best(row[3]), row[3]) for row, r in zip(rows, self.used, strict=True)]
        return pd.DataFrame(found, columns=columns)

    @cached_property
    def means(self) -> pd.DataFrame:
        """A row a problem and strategy: problem, strategy, runs, at, mean, low, high (95 %) and best of the speedup."""
        import pandas as pd

        rows = []
        for (problem, strategy), part in self.runs.groupby(["problem", "strategy"], sort=True):
            speedups = part["speedup"].to_numpy()
            with np.errstate(invalid="ignore"):  # a cost of nothing is an infinite speedup, without an interval
                mean, low, high = mean_interval(speedups)
            rows.append((problem, strategy, len(part), int(part["at"].iloc[0]), mean, low, high, speedups.max()))
        return pd.DataFrame(rows, columns=["problem", "strategy", "runs", "at", "mean", "low", "high", "best"])

    @cached_property
    def speedups(self) -> dict[tuple[str, str], np.ndarray]:
        """The `(runs,)` speedups of each problem and strategy."""
        groups = self.runs.groupby(["problem", "strategy"], sort=True)["speedup"]
        return {key: part.to_numpy() for key, part in groups}  # type: ignore[misc]

    @cached_property
    def table(self) -> pd.DataFrame:
        """Mean speedups, a row a problem and a column a strategy; nan where a strategy has no run."""
        return self.means.pivot(index="problem", columns="strategy", values="mean")

    @cached_property
    def whole(self) -> pd.DataFrame:
        """The largest part of `table` without gaps: strategies that ran on most problems, and what they share."""
        table = self.table
        order = table.notna().sum().sort_values(ascending=False, kind="stable").index
        parts = [table[order[:k]].dropna() for k in range(1, len(order) + 1)]
        best = max(parts, key=lambda part: (part.size, len(part)), default=table)
        return best[sorted(best.columns)]


def scores(records: Sequence[Record]) -> Scores:
    """Return the runs of a study, compared after equally many evaluations of each problem."""
    started = [record for record in records if record.evaluations]
    at = {}
    for problem in sorted({record.problem for record in started}):
        runs = [record for record in started if record.problem == problem]
        finished = [record for record in runs if record.ended] or runs
        at[problem] = min(record.reach for record in finished)
    return Scores(records, at, [record for record in started if record.reach >= at[record.problem]])
