"""Strategies held against each other in one way: on one problem, or over several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from ..stats import bootstrap_interval
from . import pairs, words
from .scores import Scores

if TYPE_CHECKING:
    import pandas as pd

LEVEL = 0.05
_SAMPLES = 1000


@dataclass(frozen=True)
class Contest:
    """Strategies, best first, and every pair of them.

    Attributes:
      means: a row a strategy: mean, low, high (95 %) of the speedup, the geometric mean where there are several problems.
      pairs: as `pairs.within` or `pairs.across` gives them.
      scope: in words.
      reachable: the smallest corrected p-value that so many runs or problems could give; nan without a test.
    """

    means: pd.DataFrame
    pairs: pd.DataFrame
    scope: str
    reachable: float

    @property
    def testable(self) -> bool:
        """Could any difference be significant?"""
        return bool(self.reachable <= LEVEL)

    def best(self, names: Iterable[str]) -> list[str]:
        """Return those of the named strategies that take part, the best first."""
        wanted = set(names)
        return [name for name in self.means.index if name in wanted]

    def significant(self, first: str, second: str) -> bool:
        """Is one better than the other beyond chance, corrected for all pairs?"""
        pair = pairs.between(self.pairs, first, second)
        return pair is not None and bool(pair["holm"] <= LEVEL)

    def tied(self, first: str, second: str) -> bool:
        """Have both the same mean, to the last digit?"""
        return bool(self.means.loc[first, "mean"] == self.means.loc[second, "mean"])

    def gap(self, first: str, second: str) -> str:
        """Return by how much the first is better, with its interval."""
        pair = pairs.between(self.pairs, first, second)
        if pair is None:
            return "not compared"
        if "ratio" in pair:
            low, high = (words.percent(pair[side]) for side in ("low", "high"))
            return words.percent(pair["ratio"]) + ("" if low == "–" else f", 95 % interval {low} to {high}")
        bounds = "" if np.isnan(pair["low"]) else f", 95 % interval {pair['low']:.4f} to {pair['high']:.4f}"
        return f"{pair['difference']:.4f}{bounds}" if np.isfinite(pair["difference"]) else "–"


def on_problem(scores: Scores, problem: str) -> Contest:
    """Return the contest on one problem; pairs are tested over their runs."""
    means = scores.means[scores.means["problem"] == problem].set_index("strategy")
    table = pairs.within(scores, problem)
    smallest = [pairs.smallest_rank_sum(n, m) for n, m in zip(table["n"], table["m"], strict=True) if min(n, m) > 1]
    reachable = min(smallest) * len(smallest) if smallest else np.nan
    return Contest(_sorted(means[["mean", "low", "high"]]), table, f"on {problem}", reachable)


def over_problems(scores: Scores, rng: Generator) -> Contest:
    """Return the contest over the problems that all its strategies share; pairs are tested over problems."""
    import pandas as pd

    rows = {}
    for name in scores.whole.columns:
        runs = [scores.speedups[problem, name] for problem in scores.whole.index]
        low, high = bootstrap_interval(runs, geometric, rng, samples=_SAMPLES) if _repeated(runs) else (np.nan, np.nan)
        rows[name] = (geometric(runs), low, high)
    means = pd.DataFrame.from_dict(rows, orient="index", columns=["mean", "low", "high"])
    table = pairs.across(scores)
    tested = table.loc[table["p"].notna(), "problems"]
    reachable = float(2.0 ** (1 - tested.max()) * len(tested)) if len(tested) else np.nan
    return Contest(_sorted(means), table, f"over {words.counted(len(scores.whole), 'problem')}", reachable)


def _repeated(runs: Sequence[ArrayLike]) -> bool:
    return all(len(np.asarray(part)) > 1 for part in runs)


def geometric(runs: Sequence[ArrayLike]) -> float:
    """Return the geometric mean over problems of the mean over runs; 0 if all runs of a problem failed."""
    means = np.array([np.sum(part) / len(part) for part in runs])  # type: ignore[arg-type]
    with np.errstate(divide="ignore"):
        return float(np.exp(np.log(means).mean()))


def _sorted(means: pd.DataFrame) -> pd.DataFrame:
    return means.sort_values("mean", ascending=False, kind="stable")
