"""Is one strategy better than another: on one problem over its runs, and over all problems?"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..stats import adjusted, mean_interval, paired, probability_of_improvement
from .scores import Scores

if TYPE_CHECKING:
    import pandas as pd

_LARGEST = 1e300  # in the place of an infinite speedup, of which there is no difference
WITHIN = ["first", "second", "n", "m", "difference", "low", "high", "p", "holm"]
ACROSS = ["first", "second", "problems", "wins", "ties", "ratio", "low", "high", "improvement", "p", "holm"]


def within(scores: Scores, problem: str) -> pd.DataFrame:
    """Return every pair of strategies on one problem.

    Columns: first, second, n, m (runs), difference (of the mean speedups; Welch's 95 % interval is low to high), p
    (Mann-Whitney, two-sided), holm (the same, corrected for all pairs of the problem). Nan where one has single runs.
    """
    import pandas as pd

    runs = {strategy: part for (name, strategy), part in scores.speedups.items() if name == problem}
    rows = []
    for first, second in itertools.combinations(runs, 2):
        ours, theirs = runs[first], runs[second]
        apart = difference(ours, theirs)
        rows.append((first, second, len(ours), len(theirs), *apart, rank_sum(ours, theirs)))
    return _corrected(pd.DataFrame(rows, columns=WITHIN[:-1]))


def difference(ours: NDArray, theirs: NDArray) -> tuple[float, float, float]:
    """Return the difference of two means and its 95 % interval (Welch 1947); nan bounds for single runs."""
    from scipy.stats import t

    if not np.isfinite([*ours, *theirs]).all():
        return np.nan, np.nan, np.nan
    gap = float(ours.mean() - theirs.mean())
    n, m = len(ours), len(theirs)
    if min(n, m) < 2:
        return gap, np.nan, np.nan
    a, b = ours.var(ddof=1) / n, theirs.var(ddof=1) / m
    freedom = (a + b) ** 2 / (a**2 / (n - 1) + b**2 / (m - 1)) if a + b > 0 else 1.0
    half = float(t.ppf(0.975, freedom) * np.sqrt(a + b))
    return gap, gap - half, gap + half


def rank_sum(ours: NDArray, theirs: NDArray) -> float:
    """Return the p-value that two samples differ by chance (Mann and Whitney 1947, two-sided); nan for single runs."""
    from scipy.stats import mannwhitneyu

    if min(len(ours), len(theirs)) < 2:
        return np.nan
    together = np.concatenate([ours, theirs])
    return 1.0 if (together == together[0]).all() else float(mannwhitneyu(ours, theirs).pvalue)


def smallest_rank_sum(n: int, m: int) -> float:
    """Return the smallest p-value that `rank_sum` can give of n and m runs."""
    from scipy.special import comb

    return float(2 / comb(n + m, n)) if min(n, m) > 1 else 1.0


def across(scores: Scores) -> pd.DataFrame:
    """Return every pair of strategies over the problems on which both ran.

    Columns: first, second, problems, wins, ties (of the first, by mean), ratio (geometric mean of first's mean speedup
    over second's; Student's 95 % interval over problems is low to high), improvement (probability that a run of the
    first is better), p (Wilcoxon signed-rank over problems), holm (corrected for all pairs).
    """
    import pandas as pd

    rows = []
    for first, second in itertools.combinations(scores.table.columns, 2):
        both = scores.table[[first, second]].dropna()
        if len(both):
            rows.append((first, second, *_pair(scores, both[first], both[second])))
    return _corrected(pd.DataFrame(rows, columns=ACROSS[:-1]))


def _pair(scores: Scores, ours: pd.Series, theirs: pd.Series) -> tuple[float, ...]:
    a, b = (np.minimum(column.to_numpy(), _LARGEST) for column in (ours, theirs))
    logs = _logs(a, b)
    ratio = np.exp(mean_interval(logs)) if len(logs) else np.full(3, np.nan)
    runs = [[scores.speedups[problem, name] for problem in ours.index] for name in (ours.name, theirs.name)]
    p = paired(a, b) if len(a) > 1 else np.nan
    return len(a), int((a > b).sum()), int((a == b).sum()), *ratio, probability_of_improvement(*runs), p


def _logs(ours: NDArray, theirs: NDArray) -> NDArray[np.float64]:
    """Return the logarithms of the ratios, of the problems on which both found something."""
    some = (ours > 0) & (theirs > 0)
    return np.log(ours[some] / theirs[some])


def _corrected(pairs: pd.DataFrame) -> pd.DataFrame:
    tested = pairs["p"].notna()
    pairs["holm"] = np.nan
    pairs.loc[tested, "holm"] = adjusted(pairs.loc[tested, "p"].to_numpy())
    return pairs


def between(pairs: pd.DataFrame, first: str, second: str) -> pd.Series | None:
    """Return the row of two strategies, told from the first one's side; None if they were not compared."""
    for one, other, sign in ((first, second, 1), (second, first, -1)):
        rows = pairs[(pairs["first"] == one) & (pairs["second"] == other)]
        if len(rows):
            return rows.iloc[0] if sign == 1 else _turned(rows.iloc[0])
    return None


def _turned(pair: pd.Series) -> pd.Series:
    """Return a pair told from the other side."""
    other = pair.copy()
    other["first"], other["second"] = pair["second"], pair["first"]
    if "ratio" in pair:
        other["ratio"], other["low"], other["high"] = 1 / pair["ratio"], 1 / pair["high"], 1 / pair["low"]
        other["wins"], other["improvement"] = pair["problems"] - pair["wins"] - pair["ties"], 1 - pair["improvement"]
    else:
        other["difference"], other["low"], other["high"] = -pair["difference"], -pair["high"], -pair["low"]
        other["n"], other["m"] = pair["m"], pair["n"]
    return other


def names_in(pairs: pd.DataFrame) -> Sequence[str]:
    """Return the strategies that were compared."""
    return sorted({*pairs["first"], *pairs["second"]})
