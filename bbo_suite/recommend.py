"""Which strategy for a problem and a number of evaluations, by what each reached in the published study.

A share is the gain of a run as a share of the best gain that any run of the study reached on its task. Between two
budgets it is read off a straight line in the logarithm of evaluations; beyond its longest runs a strategy counts as
having what they had. Not every strategy ran on every task, so what counts is its lead over annealing, which did.
"""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .core.evaluation import told
from .core.level import LEVEL, Level
from .core.problem import Problem, family_of
from .core.task import Structure
from .errors import UserError
from .registry import AUTO, Registry
from .stats import signed_rank_p

if TYPE_CHECKING:
    import pandas as pd

EVIDENCE = Path(__file__).with_name("evidence.csv.gz")
"""A row for each family, task, strategy and budget of the study: level, mean share and gain, seconds a candidate."""
REFERENCE = "annealing"
EXHAUSTIVE = "exhaustive"
"""Finds the optimum where the budget covers the whole space."""
_NO_LEAD = 3
"""A lead counts as if so many further families had shown none."""
_OTHERS = 2
"""What other families say counts as much as so many tasks of the problem's own."""
_FEWEST = 0.5
"""The share of the families on which a strategy ran before it is recommended to another one."""


@dataclass(frozen=True)
class Choice:
    """A strategy, and what it is expected to reach on a problem.

    Attributes:
      level: what it sees.
      evaluations: how many it makes; fewer than the budget if the time is short.
      share: of the best known gain.
      gains: quartiles of its mean gains in percent, on the tasks of the problem's family, or on all if the study has
        none of it; nan if it did not run there.
    """

    strategy: str
    level: Level
    evaluations: int
    share: float
    gains: tuple[float, float, float]


@dataclass(frozen=True)
class Lead:
    """A strategy against another one: the families of the study on which it is ahead and behind, and Wilcoxon's p."""

    over: str
    ahead: int
    behind: int
    families: int
    p: float


class Evidence:
    """What strategies reached on the tasks of a study.

    Args:
      table: see `EVIDENCE`.
    """

    def __init__(self, table: pd.DataFrame) -> None:
        self.table = table

    @property
    def shortest(self) -> int:
        """The evaluations of the shortest runs; after fewer, strategies count as having what they had then."""
        return int(self.table["budget"].min())

    @property
    def longest(self) -> int:
        """The evaluations of the longest runs; after more, strategies count as having what they had then."""
        return int(self.table["budget"].max())

    def choices(
        self, family: str, level: Level, budget: int, seconds: float = math.inf, evaluation: float = 0.0
    ) -> list[Choice]:
        """Return the strategies that see no more than a level allows, the most promising first.

        Args:
          family: of the problem; the study may have nothing of it.
          seconds: the time of a run.
          evaluation: the seconds of an evaluation.
        """
        made = {n: self._made(n, budget, seconds, evaluation) for n, sees in self._levels.items() if sees <= level}
        shares, gains = self.after(made, "share"), self.after(made, "gain")
        near = gains.loc[[family]] if family in gains.index else gains
        found, fewest = [], _FEWEST * gains.index.unique("family").size
        for name, share in _expected(shares, family).items():
            ran_on = shares[name].dropna().index.unique("family")
            if family in ran_on or len(ran_on) >= fewest:
                low, middle, high = near[name].quantile([0.25, 0.5, 0.75]).tolist()
                found.append(Choice(name, self._levels[name], made[name], share, (low, middle, high)))
        return sorted(found, key=lambda choice: (-choice.share, choice.level, choice.strategy))

    def lead(self, first: Choice, second: Choice) -> Lead:
        """Return how a choice did against another one, on the families where both ran."""
        both = self.after({each.strategy: each.evaluations for each in (first, second)}, "share").dropna()
        ours, theirs = both.groupby("family").mean().to_numpy().T
        ahead, behind = (int((sign * (ours - theirs) > 1e-9).sum()) for sign in (1, -1))
        return Lead(second.strategy, ahead, behind, len(ours), signed_rank_p(ours, theirs))

    def after(self, evaluations: Mapping[str, int], what: str) -> pd.DataFrame:
        """Return a column of the table by task, for each strategy after some evaluations; nan where it did not run."""
        import pandas as pd

        columns = {name: self._after(name, n, what) for name, n in evaluations.items()}
        return pd.DataFrame(columns).rename_axis(["family", "task"])

    def _after(self, strategy: str, evaluations: int, what: str) -> dict[tuple[str, str], float]:
        at = math.log(max(evaluations, self.shortest))
        return {task: float(np.interp(at, *curve[what], left=np.nan)) for task, curve in self._curves[strategy].items()}

    def _made(self, strategy: str, budget: int, seconds: float, evaluation: float) -> int:
        """Return how many evaluations a strategy makes within a time."""
        own = self.table.loc[self.table["strategy"] == strategy, "own"].median()
        return int(max(1, min(budget, seconds / max(evaluation + own, 1e-9))))

    @cached_property
    def _curves(self) -> dict[str, dict[tuple[str, str], _Curves]]:
        """By strategy and task."""
        found: dict[str, dict[tuple[str, str], _Curves]] = {}
        for key, own in self.table.sort_values("budget").groupby(["strategy", "family", "task"]):
            strategy, family, task = map(str, key)
            logs = np.log(own["budget"].to_numpy(np.float64))
            curves = {what: (logs, own[what].to_numpy(np.float64)) for what in ("share", "gain")}
            found.setdefault(strategy, {})[family, task] = curves
        return found

    @cached_property
    def _levels(self) -> dict[str, Level]:
        rows = self.table.drop_duplicates("strategy")
        return {name: Level.named(word) for name, word in zip(rows["strategy"], rows[LEVEL], strict=True)}


_Curves = dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]
"""By column: the logarithms of budgets, and the values there."""


def _expected(shares: pd.DataFrame, family: str) -> dict[str, float]:
    """Return the share that each strategy is expected to have on a problem, by those on the tasks of the study."""
    leads = shares.sub(shares[REFERENCE], axis=0)
    usual = _mixed(shares[[REFERENCE]], family, 0)[REFERENCE]
    return {name: usual + lead for name, lead in _mixed(leads, family, _NO_LEAD).items()}


def _mixed(table: pd.DataFrame, family: str, none: int) -> dict[str, float]:
    """Return the means over families, each of which counts once, and over the tasks of the problem's own.

    Args:
      none: the number of further families that count as 0.
    """
    is_own = table.index.get_level_values("family") == family
    own, others = table[is_own], table[~is_own].groupby("family").mean()
    elsewhere = others.sum() / (others.count() + none).clip(lower=1)
    means = (own.sum() + _OTHERS * elsewhere) / (own.count() + _OTHERS)
    return {str(name): float(mean) for name, mean in means.items()}


@cache
def published() -> Evidence:
    """Return the evidence of the published study."""
    import pandas as pd

    return Evidence(pd.read_csv(EVIDENCE))


def sees(problem: Problem) -> Level:
    """Return the most that a strategy can know of a problem.

    Costs of parts count only where the problem says which parts a candidate has: a search needs that to use them.

    Raises:
      UserError: it declares a structure that does not fit.
    """
    structure = told(problem, "structure", Structure | None)
    if structure is not None:
        structure.check(problem.id, len(problem.space))
    if structure is None:
        return Level.COMPILATION if problem.statistics else Level.COSTS
    return Level.PARTS if problem.tells_parts and structure.parts is not None else Level.STRUCTURE


def check_budget(budget: int) -> None:
    """Raise `UserError` for a budget of no evaluation."""
    if budget < 1:
        raise UserError(f"budget must be 1 or more, not {budget}")


def choices(problem: Problem, budget: int, seconds: float = math.inf, evaluation: float = 0.0) -> list[Choice]:
    """Return the strategies for a problem, the most promising first; arguments as for `Evidence.choices`.

    Raises:
      UserError: the budget or the time is not enough for one evaluation.
    """
    check_budget(budget)
    if (most := min(budget, seconds / max(evaluation, 1e-9))) < 1:
        raise UserError(f"an evaluation takes {evaluation:.2g} s, and the limit is {seconds:g} s; give more seconds")
    found = published().choices(family_of(problem.id), sees(problem), budget, seconds, evaluation)
    whole = problem.space.cardinality
    nothing = (math.nan, math.nan, math.nan)
    return found if whole > most else [Choice(EXHAUSTIVE, Level.COSTS, int(whole), 1.0, nothing), *found]


def with_choices(
    strategies: Sequence[str],
    problems: Sequence[str],
    budget: int,
    registry: Registry,
    max_seconds: float | None = None,
) -> dict[str, tuple[str, ...]]:
    """Return the strategies that run on each problem: those given, with the recommended one in place of `auto`.

    A time limit has no influence, as the same command must find the same strategy when it resumes; the user is told so.

    Raises:
      UserError: a problem cannot be loaded.
    """
    if AUTO not in strategies or AUTO in registry.strategies():
        return dict.fromkeys(problems, tuple(strategies))
    best = {name: choices(registry.problem(name), budget)[0].strategy for name in problems}
    problem = problems[0] if len(problems) == 1 else "ID"
    plugins = [word for path in registry.plugins for word in ("--plugin", str(path))]
    why = shlex.join(["recommend", "--problem", problem, "--budget", str(budget), *plugins])
    untimed = "" if max_seconds is None else f"; {AUTO} ignores the time limit, `recommend --seconds` counts it"
    print(f"{AUTO}: {_listed(best)} (why: `python -m bbo_suite {why}`{untimed})", file=sys.stderr)
    return {
        problem: tuple(dict.fromkeys(taken if name == AUTO else name for name in strategies))
        for problem, taken in best.items()
    }


def _listed(best: Mapping[str, str]) -> str:
    """Return each recommended strategy and its problems; of a single one, the problems go without saying."""
    taken = {name: [problem for problem in best if best[problem] == name] for name in best.values()}
    if len(taken) == 1:
        return next(iter(taken))
    return "; ".join(f"{name} on {', '.join(problems)}" for name, problems in taken.items())
