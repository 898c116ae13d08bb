"""What each strategy found on each problem after equally many evaluations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..core.level import Level
from ..stats import complete_block, mean_interval
from ..store.results import RunResult

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

    This number, the cutoff, is the length of the shortest finished run, or of the shortest run if none is finished.
    Unfinished runs that are shorter are left out.

    Attributes:
      runs: all runs.
      cutoffs: the evaluations after which each problem is compared.
      compared: the runs that reach them.
    """

    runs: Sequence[RunResult]
    cutoffs: dict[str, int]
    compared: list[RunResult]

    @cached_property
    def knowledge(self) -> dict[str, Level]:
        """What each strategy knows."""
        return {run.strategy: Level.of(run.head) for run in self.runs}

    def comparable(self, first: str, second: str) -> bool:
        """Return False if just one of two strategies sees the costs of parts: such strategies are ranked apart."""
        return (self.knowledge[first] is Level.PARTS) == (self.knowledge[second] is Level.PARTS)

    @cached_property
    def remeasured(self) -> set[str]:
        """The problems of which the best candidate of every compared run was measured again."""
        return {run.problem for run in self.compared} - {
            run.problem for run in self.compared if run.remeasured(self.cutoffs[run.problem]) is None
        }

    @cached_property
    def speedups(self) -> dict[tuple[str, str], NDArray[np.float64]]:
        """The `(runs,)` speedups of each problem and strategy, sorted, so that equal runs have equal means.

        On the problems in `remeasured` they are those measured again.
        """
        found: dict[tuple[str, str], list[float]] = defaultdict(list)
        for run in self.compared:
            found[run.problem, run.strategy].append(self.speedup(run))
        return {key: np.sort(found[key]) for key in sorted(found)}

    def speedup(self, run: RunResult) -> float:
        """Return the speedup by which a run is compared."""
        cutoff = self.cutoffs[run.problem]
        again = run.remeasured(cutoff) if run.problem in self.remeasured else None
        return run.speedup(cutoff) if again is None else again

    @cached_property
    def means(self) -> list[Mean]:
        """The mean of each problem and strategy."""
        return [
            Mean(*key, len(runs), *interval(runs, *self.bounds[key]), float(runs.max()))
            for key, runs in self.speedups.items()
        ]

    @cached_property
    def bounds(self) -> dict[tuple[str, str], tuple[float, float]]:
        """The least and the largest possible speedup of each problem and strategy.

        The least is 1 if every run began with the default, else 0; the largest is that of a known optimum. What was
        measured again can be anything.
        """
        runs: dict[tuple[str, str], list[RunResult]] = defaultdict(list)
        for run in self.compared:
            runs[run.problem, run.strategy].append(run)
        return {
            key: (0.0, np.inf) if key[0] in self.remeasured else (min(map(_least, some)), min(map(_most, some)))
            for key, some in runs.items()
        }

    @cached_property
    def table(self) -> pd.DataFrame:
        """Mean speedups, one row per problem and one column per strategy; nan without a run."""
        import pandas as pd

        frame = pd.DataFrame(
            [(m.problem, m.strategy, m.mean) for m in self.means], columns=["problem", "strategy", "mean"]
        )
        return frame.pivot(index="problem", columns="strategy", values="mean")

    @cached_property
    def complete(self) -> pd.DataFrame:
        """The largest part of `table` without a gap: problems that the same strategies ran."""
        rows, columns = complete_block(self.table.notna())
        return self.table.loc[rows, columns]

    def started(self, problem: str) -> dict[str, list[RunResult]]:
        """Return all runs of a problem with an evaluation, by strategy."""
        found: dict[str, list[RunResult]] = defaultdict(list)
        for run in self.runs:
            if run.problem == problem and run.evaluations:
                found[run.strategy].append(run)
        return dict(sorted(found.items()))

    @cached_property
    def _best_means(self) -> dict[tuple[str, bool], float]:
        """The largest mean speedup on each problem of strategies without and with costs of parts."""
        best: dict[tuple[str, bool], float] = {}
        for mean in self.means:
            key = mean.problem, self.knowledge[mean.strategy] is Level.PARTS
            best[key] = max(mean.mean, best.get(key, -np.inf))
        return best

    def best_mean(self, problem: str, strategy: str) -> float:
        """Return the largest mean speedup on a problem among the strategies that one is comparable with."""
        return self._best_means[problem, self.knowledge[strategy] is Level.PARTS]


def _least(run: RunResult) -> float:
    return 1.0 if run.speedup(1) == 1 else 0.0


def _most(run: RunResult) -> float:
    """Return the speedup of a known optimum, or of the run, if noise made it better."""
    optimum = run.head.get("optimum")
    return max(float(run.head["default"]) / optimum, run.speedup(run.evaluations)) if optimum else np.inf


def interval(runs: NDArray[np.float64], least: float = 0.0, most: float = np.inf) -> tuple[float, float, float]:
    """Return the mean speedup and its 95 % interval; an infinite speedup (cost 0) has no interval."""
    with np.errstate(invalid="ignore"):
        return mean_interval(runs, least=least, most=most)


def scores(runs: Sequence[RunResult]) -> Scores:
    """Return the runs of a study, compared after equally many evaluations of each problem."""
    started = [run for run in runs if run.evaluations]
    cutoffs = {}
    for problem in sorted({run.problem for run in started}):
        own = [run for run in started if run.problem == problem]
        finished = [run for run in own if run.ended] or own
        cutoffs[problem] = min(run.reach for run in finished)
    return Scores(runs, cutoffs, [run for run in started if run.reach >= cutoffs[run.problem]])
