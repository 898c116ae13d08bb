"""The tables of what was found."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.random import Generator

from ..stats import bootstrap_interval, interquartile_mean, ranking
from . import table, words
from .answer import BLIND, SEEING, Judgement
from .contest import Contest
from .scores import Scores
from .table import Cell, Table

_SAMPLES = 1000
HOLM = "p is corrected by Holm's method for all pairs shown"


def marked(scores: Scores, strategy: str) -> Cell:
    """Return a strategy's name, with a star if it sees the structure."""
    return table.text(f"{strategy} *" if strategy in scores.seeing else strategy)


def speedups(scores: Scores) -> Table:
    """Return the mean speedup with its interval, a row a problem and strategy."""
    best = scores.means.groupby("problem", sort=True)["mean"].max()
    rows = []
    for row in scores.means.itertuples():
        share = _share(row.mean, best[row.problem])
        named = [table.text(row.problem), marked(scores, row.strategy), table.count(row.runs), table.count(row.at)]
        found = [table.number(row.mean, words.speedup(row.mean)), table.number(row.low, words.interval(row.low, row.high))]
        rows.append([*named, *found, table.speedup(row.best), table.number(share, _percent(share))])
    columns = ["problem", "strategy", "runs", "evaluations", "mean speedup", "95 % interval", "best run", "of the best gain"]
    note = (
        "Speedup: cost of the compiler's default over the best cost found; higher is better, 1 is the default, 0: all "
        "failed. Student's interval of the mean over runs. Of the best gain: mean gain over the default in percent of the "
        "best strategy's."
    )
    return Table("speedups", "Mean speedup by problem and strategy", note, columns, rows)


def _share(mean: float, best: float) -> float:
    """Return the gain over the default as a part of the best strategy's; nan where that has none."""
    return (mean - 1) / (best - 1) if np.isfinite(best) and best > 1 else np.nan


def _percent(share: float) -> str:
    return "–" if np.isnan(share) else f"{100 * share:.0f} %"


def winners(judgement: Judgement) -> Table:
    """Return who wins each problem, with and without structure."""
    rows = []
    for problem, contest in judgement.problems.items():
        for kind, names in judgement.groups():
            part = contest.best(names)
            if part:
                rows.append([table.text(problem), table.text(kind), *_winner(judgement.scores, contest, part)])
    columns = ["problem", "among", "best", "mean speedup", "ahead of the next by", "verdict"]
    note = f"Mann-Whitney test over runs, two-sided; {HOLM.replace('shown', 'of a problem')}. * sees the structure."
    return Table("winners", "Who wins each problem", note, columns, rows)


def _winner(scores: Scores, contest: Contest, part: list[str]) -> list[Cell]:
    mean, low, high = contest.means.loc[part[0], ["mean", "low", "high"]]
    gap = contest.gap(part[0], part[1]) if len(part) > 1 else "–"
    lead = mean - contest.means.loc[part[1], "mean"] if len(part) > 1 and np.isfinite(mean) else np.nan
    cells = [marked(scores, part[0]), table.speedup(mean, low, high), table.number(lead, gap)]
    return [*cells, table.text(verdict(contest, part))]


def verdict(contest: Contest, part: list[str]) -> str:
    """Return in words whether the first is better than the others."""
    first, rest = part[0], part[1:]
    tied = [name for name in rest if contest.tied(first, name)]
    beaten = [name for name in rest if contest.significant(first, name)]
    if contest.means.loc[first, "mean"] == 0:
        return "all failed"
    if not rest:
        return "alone"
    if tied:
        return f"a tie with {words.listed(tied)}"
    if len(beaten) == len(rest):
        return "significantly better than all others"
    if not contest.testable:
        return "too few runs for a test"
    others = words.listed(name for name in rest if name not in beaten)
    return f"not told apart from {others}" + (f"; better than {words.listed(beaten)}" if beaten else "")


def overall(judgement: Judgement, rng: Generator) -> Table | None:
    """Return the strategies over the problems that they share; None for fewer than two problems."""
    scores = judgement.scores
    whole = scores.whole
    if judgement.overall is None or len(whole) < 2:
        return None
    found = ranking(np.nan_to_num(whole.to_numpy(), posinf=1e300))
    ranks = dict(zip(whole.columns, found.ranks, strict=True))
    rows = []
    for name, (mean, low, high) in judgement.overall.means.iterrows():
        wins = int((whole[name] == whole.max(axis=1)).sum())
        middle = _middle(scores, str(name), rng)
        cells = [table.speedup(mean, low, high), middle, table.number(-ranks[name], f"{ranks[name]:.2f}")]
        rows.append([marked(scores, str(name)), *cells, table.count(wins)])
    columns = ["strategy", "geometric mean speedup (95 %)", "interquartile mean of gain shares (95 %)", "mean rank", "best on"]
    return Table("overall", f"Over {words.counted(len(whole), 'problem')}", _overall_note(found, whole.shape[1]), columns, rows)


def _overall_note(found: object, strategies: int) -> str:
    p, difference = getattr(found, "p", np.nan), getattr(found, "difference", np.nan)
    test = (
        f" That all {strategies} are alike has p {words.p_value(p) if p < 0.001 else f'= {words.p_value(p)}'} (Friedman); mean "
        f"ranks closer than {difference:.2f} are not told apart (Nemenyi, 5 %)."
        if np.isfinite(p)
        else ""
    )
    return (
        "Problems on which all of these ran. Intervals: percentile bootstrap, runs drawn again within each problem. A gain "
        "share is a run's gain over the default as a part of the best strategy's mean gain on that problem: 1 is as good, 0 "
        "is the default; their interquartile mean leaves out the lowest and the highest quarter of all runs. Rank 1 is "
        f"best.{test} * sees the structure."
    )


def _middle(scores: Scores, name: str, rng: Generator) -> Cell:
    tops = scores.table.max(axis=1)
    pairs = [(scores.speedups[problem, name], tops[problem]) for problem in scores.whole.index]
    shares = [(runs - 1) / (top - 1) for runs, top in pairs if np.isfinite(top) and top > 1]
    if not shares:
        return table.number(np.nan, "–")
    value = interquartile_mean(shares)
    if min(map(len, shares)) < 2:
        return table.number(value, f"{value:.2f}")
    low, high = bootstrap_interval(shares, interquartile_mean, rng, samples=_SAMPLES)
    return table.number(value, f"{value:.2f} ({low:.2f} to {high:.2f})")


def duels(judgement: Judgement) -> Iterator[Table]:
    """Yield every pair of strategies: over problems where there are several, else on the one."""
    contest, scores = judgement.overall, judgement.scores
    if contest is None or not len(contest.pairs):
        return
    if "ratio" not in contest.pairs:
        yield _duels_on_one(contest, scores)
        return
    rows = []
    for pair in contest.pairs.sort_values("p", kind="stable").itertuples():
        first, second = marked(scores, pair.first), marked(scores, pair.second)
        record = f"{pair.wins}–{pair.ties}–{pair.problems - pair.wins - pair.ties}"
        apart = table.number(pair.ratio, f"{words.percent(pair.ratio)} ({words.percent(pair.low)} to {words.percent(pair.high)})")
        chance = table.number(pair.improvement, f"{pair.improvement:.2f}")
        rows.append([first, second, table.number(pair.wins, record), apart, chance, table.p_value(pair.p), table.p_value(pair.holm)])
    columns = ["first", "second", "won–tied–lost", "first faster by (95 %)", "probability of improvement", "p", "p (Holm)"]
    note = (
        "By mean speedup on each problem. First faster by: geometric mean over problems, Student's interval over problems. "
        "Probability of improvement: that a run of the first is better than one of the second on a problem drawn at random, "
        f"ties counting half. Wilcoxon signed-rank test over problems, two-sided; {HOLM}. * sees the structure."
    )
    yield Table("pairs", "Pair by pair", note, columns, rows)


def _duels_on_one(contest: Contest, scores: Scores) -> Table:
    rows = []
    for pair in contest.pairs.sort_values("p", kind="stable").itertuples():
        first, second = marked(scores, pair.first), marked(scores, pair.second)
        bounds = "" if np.isnan(pair.low) else f" ({pair.low:.4f} to {pair.high:.4f})"
        apart = table.number(pair.difference, f"{pair.difference:.4f}{bounds}")
        rows.append([first, second, apart, table.p_value(pair.p), table.p_value(pair.holm)])
    columns = ["first", "second", "first's mean speedup minus second's (95 %)", "p", "p (Holm)"]
    note = f"Welch's interval. Mann-Whitney (Wilcoxon rank-sum) test over runs, two-sided; {HOLM}. * sees the structure."
    return Table("pairs", "Pair by pair", note, columns, rows)


__all__ = ["BLIND", "SEEING", "duels", "marked", "overall", "speedups", "verdict", "winners"]
