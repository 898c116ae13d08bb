"""Two strategies compared: on one problem over its runs, and over problems."""

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
    rank_sum_p_values,
    signed_rank_p,
    signed_rank_sum,
)
from .scores import Scores

LEVEL = 0.05
"""Corrected p-values up to this are significant."""
_LARGEST = 1e300  # replaces an infinite speedup, so that differences are defined


@dataclass(frozen=True)
class Pair:
    """Two strategies, seen from the first.

    Attributes:
      gap, low, high: by how much the first is better, and the 95 % interval. On one problem the difference of the mean
        speedups (Welch 1947); over problems the geometric mean of their ratios (Student's t, over problems).
      p: two-sided p-value of a difference, nan without a test. On one problem Mann-Whitney over runs, over problems
        Wilcoxon signed-rank over mean speedups.
      holm: `p`, corrected for all pairs that were tested.
      problems: the number of problems that both ran; 0 for a pair on one problem.
      wins, ties: of the first on these problems, by mean speedup.
      improvement: probability that a run of the first is better (Agarwal et al. 2021).
      rank_lead: positive if the ranks that are tested favour the first, negative if they favour the second. They may
        contradict the gap, when a mean depends on few runs or problems; the first is then not significantly better.
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
    rank_lead: float = 0.0

    @property
    def significant(self) -> bool:
        """True if the first is significantly better, corrected for all pairs."""
        return bool(self.holm <= LEVEL and self.rank_lead > 0)

    @property
    def interval_includes_equality(self) -> bool:
        """True if the interval of the gap contains no difference."""
        return self.low <= (1 if self.problems else 0) <= self.high

    def reversed(self) -> Pair:
        """Return the pair, seen from the second."""
        bounds = (self.low, self.gap, self.high)
        high, gap, low = (1 / x for x in bounds) if self.problems else (-x for x in bounds)
        losses = self.problems - self.wins - self.ties
        other = replace(self, first=self.second, second=self.first, gap=gap, low=low, high=high, wins=losses)
        return replace(other, improvement=1 - self.improvement, rank_lead=-self.rank_lead)

    def better_first(self) -> Pair:
        """Return the pair, seen from the strategy of the better mean."""
        return self.reversed() if self.gap < (1 if self.problems else 0) else self


def on_problem(scores: Scores, problem: str) -> list[Pair]:
    """Return every pair of strategies on one problem."""
    runs = {strategy: part for (name, strategy), part in scores.speedups.items() if name == problem}
    names = [pair for pair in itertools.combinations(runs, 2) if scores.comparable(*pair)]
    p_values = rank_sum_p_values([(runs[one], runs[other]) for one, other in names]).tolist()
    return _corrected(_on_problem(*pair, runs, p) for pair, p in zip(names, p_values, strict=True))


def _on_problem(first: str, second: str, runs: Mapping[str, NDArray], p: float) -> Pair:
    ours, theirs = runs[first], runs[second]
    lead = probability_of_improvement([ours], [theirs]) - 0.5
    return Pair(first, second, *difference_interval(ours, theirs), p, rank_lead=lead)


def over_problems(scores: Scores) -> list[Pair]:
    """Return every pair of strategies over the problems that both ran."""
    strategies = scores.table.columns
    return _corrected(
        _over_problems(scores, one, other, shared)
        for one, other in itertools.combinations(strategies, 2)
        if scores.comparable(one, other)
        and (shared := [name for name in scores.cutoffs if {(name, one), (name, other)} <= scores.speedups.keys()])
    )


def _over_problems(scores: Scores, first: str, second: str, problems: Sequence[str]) -> Pair:
    runs = [[scores.speedups[problem, name] for problem in problems] for name in (first, second)]
    ours, theirs = (np.minimum([part.mean() for part in side], _LARGEST) for side in runs)
    some = np.all([(side > 0) & (side < _LARGEST) for side in (ours, theirs)], axis=0)  # the others have no ratio
    ratio = np.exp(mean_interval(np.log(ours[some] / theirs[some])) if some.any() else np.full(3, np.nan))
    gap, low, high = ratio.tolist()
    p = signed_rank_p(ours, theirs) if len(problems) > 1 else np.nan
    wins, ties = int((ours > theirs).sum()), int((ours == theirs).sum())
    pair = Pair(first, second, gap, low, high, p, problems=len(problems), wins=wins, ties=ties)
    return replace(pair, improvement=probability_of_improvement(*runs), rank_lead=signed_rank_sum(ours - theirs))


def _corrected(pairs: Iterable[Pair]) -> list[Pair]:
    listed = list(pairs)
    tested = [pair for pair in listed if not np.isnan(pair.p)]
    corrected = dict(zip(map(id, tested), holm([pair.p for pair in tested]), strict=True))
    return [replace(pair, holm=float(corrected.get(id(pair), np.nan))) for pair in listed]
