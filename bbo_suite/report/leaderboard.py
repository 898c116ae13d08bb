"""Strategies held against each other in one way: on one problem, or over several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..stats import bootstrap_interval, smallest_rank_sum_p, smallest_signed_rank_p
from . import formatting, pairs
from .pairs import Pair
from .scores import Scores

LEVEL = 0.05
_SAMPLES = 1000


@dataclass(frozen=True)
class Leaderboard:
    """Strategies, best first, and every pair of them.

    Attributes:
      means: mean speedup of each strategy and its 95 % interval; over problems their geometric mean.
      pairs: told from either side.
      scope: in formatting.
      reachable: the smallest corrected p-value that so many runs or problems could give; nan without a test.
    """

    means: dict[str, tuple[float, float, float]]
    pairs: list[Pair]
    scope: str
    reachable: float

    @property
    def testable(self) -> bool:
        """Could any difference be significant?"""
        return bool(self.reachable <= LEVEL)

    @property
    def tested(self) -> int:
        """How many pairs are corrected for."""
        return sum(not np.isnan(pair.p) for pair in self.pairs)

    @property
    def samples(self) -> str:
        """What pairs are tested over, in a word."""
        return "problems" if any(pair.problems for pair in self.pairs) else "runs"

    def best(self, names: Iterable[str]) -> list[str]:
        """Return those of the named strategies that take part, the best first."""
        wanted = set(names)
        return [name for name in self.means if name in wanted]

    def pair(self, first: str, second: str) -> Pair:
        """Return two strategies, told from the first one's side."""
        for pair in self.pairs:
            if {pair.first, pair.second} == {first, second}:
                return pair if pair.first == first else pair.turned()
        raise KeyError(f"{first} and {second} did not meet")

    def significant(self, first: str, second: str) -> bool:
        """Is the first better than the second beyond chance, corrected for all pairs?"""
        pair = self.pair(first, second)
        return bool(pair.holm <= LEVEL and pair.lead > 0)

    def contrary(self, first: str, second: str) -> bool:
        """Does the test say that the second is better, although the first has the better mean?"""
        return self.significant(second, first)

    def tied(self, first: str, second: str) -> bool:
        """Have both the same mean, to the last digit?"""
        return self.means[first][0] == self.means[second][0]

    def gap(self, first: str, second: str) -> str:
        """Return by how much the first is better, with its interval."""
        return formatting.gap(self.pair(first, second), ", 95 % interval {} to {}")


def on_problem(scores: Scores, problem: str) -> Leaderboard:
    """Return the board on one problem; pairs are tested over their runs."""
    means = {mean.strategy: (mean.mean, mean.low, mean.high) for mean in scores.means if mean.problem == problem}
    runs = [len(part) for (name, _), part in scores.speedups.items() if name == problem]
    found = pairs.within(scores, problem)
    tested = sum(not np.isnan(pair.p) for pair in found)
    reachable = tested * smallest_rank_sum_p(*sorted(runs)[-2:]) if tested else np.nan
    return Leaderboard(_sorted(means), found, f"on {problem}", reachable)


def over_problems(scores: Scores, rng: Generator) -> Leaderboard:
    """Return the board over the problems that all its strategies share; pairs are tested over problems."""
    means = {}
    for name in scores.complete.columns:
        runs = [scores.speedups[problem, name] for problem in scores.complete.index]
        repeated = min(map(len, runs)) > 1
        with np.errstate(invalid="ignore"):  # an infinite mean has no interval
            low, high = bootstrap_interval(runs, geometric, rng, samples=_SAMPLES) if repeated else (np.nan, np.nan)
        means[name] = (geometric(runs), low, high)
    found = pairs.across(scores)
    tested = [pair.problems for pair in found if not np.isnan(pair.p)]
    reachable = len(tested) * smallest_signed_rank_p(max(tested)) if tested else np.nan
    return Leaderboard(_sorted(means), found, f"over {formatting.counted(len(scores.complete), 'problem')}", reachable)


def geometric(runs: Sequence[NDArray[np.float64]]) -> float:
    """Return the geometric mean over problems of the mean over runs; 0 if all runs of a problem failed."""
    means = np.array([part.sum() / len(part) for part in runs])
    with np.errstate(divide="ignore"):
        return float(np.exp(np.log(means).mean()))


def _sorted(means: dict[str, tuple[float, float, float]]) -> dict[str, tuple[float, float, float]]:
    return dict(sorted(means.items(), key=lambda item: -item[1][0]))
