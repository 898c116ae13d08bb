"""Is one strategy better than another: on one problem over its runs, and over all problems?"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..stats import (
    difference_interval,
    holm,
    mean_interval,
    probability_of_improvement,
    rank_sum_p,
    signed_rank_p,
    signed_rank_sum,
)
from .scores import Scores

_LARGEST = 1e300  # in the place of an infinite speedup, of which there is no difference


@dataclass(frozen=True)
class Pair:
    """Two strategies.

    Attributes:
      gap, low, high: by how much the first is better and its 95 % interval. On one problem the difference of the mean
        speedups (Welch 1947); over problems the geometric mean of their ratios (Student, over problems).
      p: that they differ by chance, nan without a test. On one problem Mann-Whitney over runs, over problems Wilcoxon
        signed-rank over their mean speedups; two-sided.
      holm: the same, corrected for all pairs that were tested.
      problems: over how many; 0 if on one.
      wins, ties: of the first, on these problems, by the mean.
      improvement: probability that a run of the first is better (Agarwal et al. 2021).
      lead: above 0 where the test's ranks speak for the first, below where for the second. A mean that rests on few
        runs or problems may say the opposite, and then no test says that it is better.
    """

    first: str
    second: str
    gap: float
    low: float
    high: float
    p: float
    holm: float = np.nan
    problems: int = 0
    wins: int = 0
    ties: int = 0
    improvement: float = np.nan
    lead: float = 0.0

    @property
    def open(self) -> bool:
        """Does the interval hold no difference?"""
        return self.low <= (1 if self.problems else 0) <= self.high

    def turned(self) -> Pair:
        """Return the pair told from the second one's side."""
        bounds = (self.low, self.gap, self.high)
        high, gap, low = (1 / x for x in bounds) if self.problems else (-x for x in bounds)
        other = replace(self, first=self.second, second=self.first, gap=gap, low=low, high=high, lead=-self.lead)
        return replace(other, wins=self.problems - self.wins - self.ties, improvement=1 - self.improvement)

    def from_better(self) -> Pair:
        """Return the pair told from the better one's side."""
        return self.turned() if self.gap < (1 if self.problems else 0) else self


def within(scores: Scores, problem: str) -> list[Pair]:
    """Return every pair of strategies on one problem."""
    runs = {strategy: part for (name, strategy), part in scores.speedups.items() if name == problem}
    return _corrected(_within(one, other, runs) for one, other in itertools.combinations(runs, 2))


def _within(first: str, second: str, runs: Mapping[str, NDArray]) -> Pair:
    ours, theirs = runs[first], runs[second]
    lead = probability_of_improvement([ours], [theirs]) - 0.5
    return Pair(first, second, *difference_interval(ours, theirs), rank_sum_p(ours, theirs), lead=lead)


def across(scores: Scores) -> list[Pair]:
    """Return every pair of strategies over the problems on which both ran."""
    strategies = scores.table.columns
    return _corrected(
        _across(scores, one, other, shared)
        for one, other in itertools.combinations(strategies, 2)
        if (shared := [name for name in scores.cutoffs if {(name, one), (name, other)} <= set(scores.speedups)])
    )


def _across(scores: Scores, first: str, second: str, problems: Sequence[str]) -> Pair:
    runs = [[scores.speedups[problem, name] for problem in problems] for name in (first, second)]
    ours, theirs = (np.minimum([part.mean() for part in side], _LARGEST) for side in runs)
    some = np.all([(side > 0) & (side < _LARGEST) for side in (ours, theirs)], axis=0)  # the others have no ratio
    ratio = np.exp(mean_interval(np.log(ours[some] / theirs[some])) if some.any() else np.full(3, np.nan))
    gap, low, high = ratio.tolist()
    p = signed_rank_p(ours, theirs) if len(problems) > 1 else np.nan
    wins, ties = int((ours > theirs).sum()), int((ours == theirs).sum())
    pair = Pair(first, second, gap, low, high, p, problems=len(problems), wins=wins, ties=ties)
    return replace(pair, improvement=probability_of_improvement(*runs), lead=signed_rank_sum(ours - theirs))


def _corrected(pairs: Iterable[Pair]) -> list[Pair]:
    listed = list(pairs)
    tested = [pair for pair in listed if not np.isnan(pair.p)]
    corrected = dict(zip(map(id, tested), holm([pair.p for pair in tested]), strict=True))
    return [replace(pair, holm=float(corrected.get(id(pair), np.nan))) for pair in listed]
