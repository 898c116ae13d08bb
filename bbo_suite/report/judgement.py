"""Who is best, as objects: everything that the answer and the tables put into words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..core.level import Level
from ..core.quantities import with_noun
from ..scores import ALPHA, Pair, Scores, pairs_on_problem, pairs_over_problems, scores
from ..stats import smallest_rank_sum_p, smallest_signed_rank_p
from ..store.results import RunResult

SAMPLES = 1000
"""Bootstrap samples of an interval over problems."""


@dataclass(frozen=True)
class Verdict:
    """How the best of some strategies compares with the others.

    Attributes:
      best: the strategy of the highest mean.
      tied: others of exactly the same mean.
      beaten: others that are significantly worse.
      contrary: others of a lower mean that are significantly better by rank.
      undecided: the rest, each without a significant difference.
      trailing: those of `beaten` that are significantly worse than each of the leaders, not only than the best.
    """

    best: str
    tied: list[str]
    beaten: list[str]
    contrary: list[str]
    undecided: list[str]
    trailing: list[str]

    @property
    def leaders(self) -> list[str]:
        """The best and all that are not significantly worse: none of them may be called the best alone."""
        return [self.best, *self.tied, *self.contrary, *self.undecided]

    @property
    def clear(self) -> bool:
        """True if the best is significantly better than every other strategy."""
        return not (self.tied or self.contrary or self.undecided)


@dataclass(frozen=True)
class Leaderboard:
    """Strategies, the best first, and every pair of them.

    Attributes:
      means: mean speedup of each strategy and its 95 % interval; over problems their geometric mean.
      pairs: each pair once.
      scope: "on PROBLEM" or "over N problems".
      smallest_p: the smallest corrected p-value that the number of runs or problems permits; nan without a test.
    """

    means: dict[str, tuple[float, float, float]]
    pairs: list[Pair]
    scope: str
    smallest_p: float

    @property
    def testable(self) -> bool:
        """True if a difference could be significant."""
        return bool(self.smallest_p <= ALPHA)

    @property
    def tested(self) -> int:
        """The number of pairs that p-values are corrected for."""
        return sum(not np.isnan(pair.p) for pair in self.pairs)

    @property
    def samples(self) -> str:
        """What tests compare: "problems" or "runs"."""
        return "problems" if any(pair.problems for pair in self.pairs) else "runs"

    def ranked(self, names: Iterable[str]) -> list[str]:
        """Return those of the named strategies that are compared here, the best first."""
        wanted = set(names)
        return [name for name in self.means if name in wanted]

    def pair(self, first: str, second: str) -> Pair:
        """Return two strategies as a pair, seen from the first.

        Raises:
          KeyError: they were not compared.
        """
        for pair in self.pairs:
            if {pair.first, pair.second} == {first, second}:
                return pair if pair.first == first else pair.reversed()
        raise KeyError(f"{first} and {second} were not compared")

    def tied(self, first: str, second: str) -> bool:
        """Return True if both have exactly the same mean."""
        return self.means[first][0] == self.means[second][0]

    def verdict(self, ranked: Sequence[str]) -> Verdict:
        """Return how the first of some strategies, the best first, compares with the others."""
        best, others = ranked[0], ranked[1:]
        tied = [name for name in others if self.tied(best, name)]
        rest = [name for name in others if name not in tied]
        beaten = [name for name in rest if self.pair(best, name).significant]
        contrary = [name for name in rest if self.pair(name, best).significant]
        undecided = [name for name in rest if name not in {*beaten, *contrary}]
        leaders = [best, *tied, *contrary, *undecided]
        trailing = [name for name in beaten if all(self.pair(leader, name).significant for leader in leaders)]
        return Verdict(best, tied, beaten, contrary, undecided, trailing)


def on_problem(scores: Scores, problem: str) -> Leaderboard:
    """Return the leaderboard of one problem; pairs are tested over runs."""
    means = {mean.strategy: (mean.mean, mean.low, mean.high) for mean in scores.means if mean.problem == problem}
    runs = [len(part) for (name, _), part in scores.speedups.items() if name == problem]
    found = pairs_on_problem(scores, problem)
    tested = sum(not np.isnan(pair.p) for pair in found)
    smallest = tested * smallest_rank_sum_p(*sorted(runs)[-2:]) if tested else np.nan
    return Leaderboard(_sorted(means), found, f"on {problem}", smallest)


def over_problems(scores: Scores, rng: Generator) -> Leaderboard:
    """Return the leaderboard over the problems that all its strategies ran; pairs are tested over problems."""
    means = {}
    for name in scores.complete.columns:
        runs = [scores.speedups[problem, name] for problem in scores.complete.index]
        repeated = min(map(len, runs)) > 1
        low, high = _bootstrap(runs, rng) if repeated else (np.nan, np.nan)
        means[name] = (geometric(runs), low, high)
    found = pairs_over_problems(scores)
    tested = [pair.problems for pair in found if not np.isnan(pair.p)]
    smallest = len(tested) * smallest_signed_rank_p(max(tested)) if tested else np.nan
    return Leaderboard(_sorted(means), found, f"over {with_noun(len(scores.complete), 'problem')}", smallest)


def _bootstrap(runs: Sequence[NDArray[np.float64]], rng: Generator) -> tuple[float, float]:
    """Return the 95 % interval of `geometric`, from resampled runs of each problem; nan for an infinite mean."""
    logs = np.zeros(SAMPLES)
    with np.errstate(divide="ignore", invalid="ignore"):
        for part in runs:
            logs += np.log(part[rng.integers(0, len(part), (SAMPLES, len(part)))].mean(axis=1))
        low, high = np.exp(np.quantile(logs / len(runs), [0.025, 0.975]))
    return float(low), float(high)


def geometric(runs: Sequence[NDArray[np.float64]]) -> float:
    """Return the geometric mean over problems of the mean over runs; 0 if all runs of a problem failed."""
    means = np.array([part.sum() / len(part) for part in runs])
    with np.errstate(divide="ignore"):
        return float(np.exp(np.log(means).mean()))


def _sorted(means: dict[str, tuple[float, float, float]]) -> dict[str, tuple[float, float, float]]:
    return dict(sorted(means.items(), key=lambda item: -item[1][0]))


@dataclass(frozen=True)
class Group:
    """Strategies that are compared with each other: a column's text, and the words for one and for several."""

    short: str
    one: str
    several: str


BLACK_BOX = Group("costs\u00a0only", "black-box strategy", "black-box strategies")
COMPILES = Group("compilations", "strategy that sees what compiling tells", "strategies that see what compiling tells")
STRUCTURED = Group("structure", "strategy that uses the structure", "strategies that use the structure")
USES_PARTS = Group("parts", "strategy that sees costs of parts", "strategies that see costs of parts")
GROUPS = dict(zip(Level, (BLACK_BOX, COMPILES, STRUCTURED, USES_PARTS), strict=True))
"""The strategies of each level of knowledge are judged apart."""


@dataclass(frozen=True)
class Judgement:
    """All comparisons of a study.

    Attributes:
      scores: the compared runs.
      overall: over problems, or on the only problem; None if nothing was evaluated.
      problems: on each problem.
    """

    scores: Scores
    overall: Leaderboard | None
    problems: dict[str, Leaderboard]

    @property
    def all_failed(self) -> bool:
        """True if no run found a candidate that works."""
        return all(mean.mean <= 0 for mean in self.scores.means)

    def groups(self) -> Iterator[tuple[Group, list[str]]]:
        """Yield the strategies of each level of knowledge."""
        names = sorted(self.scores.table.columns) if self.problems else []
        for level, group in GROUPS.items():
            yield group, [name for name in names if self.scores.levels[name] is level]


def judge(runs: Sequence[RunResult], rng: np.random.Generator) -> Judgement:
    """Return all comparisons of the runs of a study.

    Args:
      rng: draws the bootstrap samples.
    """
    found = scores(runs)
    problems = {problem: on_problem(found, problem) for problem in found.cutoffs}
    overall = over_problems(found, rng) if len(problems) > 1 else next(iter(problems.values()), None)
    return Judgement(found, overall, problems)
