"""Who is best, as objects: everything that the answer and the tables put into words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..core.level import Level
from ..store.results import RunResult
from . import leaderboard
from .leaderboard import Leaderboard
from .scores import Scores, scores


@dataclass(frozen=True)
class Group:
    """Strategies that are compared with each other: a column's text, and the words for one and for several."""

    short: str
    one: str
    several: str


BLACK_BOX = Group("costs\u00a0only", "black-box strategy", "black-box strategies")
STRUCTURED = Group("structure", "strategy that uses the structure", "strategies that use the structure")
HEARING = Group("parts", "strategy that sees costs of parts", "strategies that see costs of parts")
GROUPS = dict(zip(Level, (BLACK_BOX, STRUCTURED, HEARING), strict=True))
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
            yield group, [name for name in names if self.scores.knowledge[name] is level]


def judge(runs: Sequence[RunResult], rng: np.random.Generator) -> Judgement:
    """Return all comparisons of the runs of a study.

    Args:
      rng: draws the bootstrap samples.
    """
    found = scores(runs)
    problems = {problem: leaderboard.on_problem(found, problem) for problem in found.cutoffs}
    overall = leaderboard.over_problems(found, rng) if len(problems) > 1 else next(iter(problems.values()), None)
    return Judgement(found, overall, problems)
