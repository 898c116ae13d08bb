"""What was found on each problem."""

from __future__ import annotations

import math

import numpy as np

from ..stats import SMALLEST_GAIN, SMALLEST_GAIN_TEXT
from . import formatting, table
from .answer import Judgement
from .leaderboard import Leaderboard
from .scores import Scores
from .table import Cell, Table


def marked(scores: Scores, strategy: str) -> Cell:
    """Return a strategy's name, with a star if it sees the structure."""
    return table.text(f"{strategy} *" if strategy in scores.structured else strategy)


def speedups(scores: Scores) -> Table:
    """Return the mean speedup with its interval, a row a problem and strategy."""
    rows = []
    for mean in scores.means:
        share = gain_share(mean.mean, scores.best_mean(mean.problem))
        named = [table.text(mean.problem), marked(scores, mean.strategy)]
        counts = [table.count(mean.runs), table.count(scores.cutoffs[mean.problem])]
        bounds = table.number(mean.low, formatting.interval(mean.low, mean.high))
        percent = table.number(share, "–" if math.isnan(share) else f"{100 * share:.0f} %")
        rows.append([*named, *counts, table.speedup(mean.mean), bounds, table.speedup(mean.best), percent])
    columns = ["problem", "strategy", "runs", "evaluations", "mean speedup", "95 % interval", "best run"]
    return Table("speedups", "Mean speedup by problem and strategy", _SPEEDUPS, [*columns, "of the best gain"], rows)


_SPEEDUPS = f"""Speedup: cost of the compiler's default over the best cost found. Higher is better; 1 is the default, 0
says that all failed. Student's interval of the mean over runs. Of the best gain: mean gain over the default, in
percent of the best strategy's; a dash: that is below {SMALLEST_GAIN_TEXT}, or infinite. * sees the structure."""


def gain_share(speedup: float, best: float) -> float:
    """Return the gain over the default as a part of the best one; nan where that is none, or infinite."""
    return (speedup - 1) / (best - 1) if SMALLEST_GAIN <= best - 1 < np.inf else np.nan


def winners(judgement: Judgement) -> Table:
    """Return who wins each problem, with and without structure."""
    rows = []
    for problem, board in judgement.problems.items():
        for kind, names in judgement.groups():
            present = board.best(names)
            if present:
                winner = _winner(judgement.scores, board, present)
                rows.append([table.text(problem), table.text(kind.short), *winner])
    columns = [
        "problem",
        "seeing",
        "best",
        "mean speedup (95 %)",
        "ahead of the next by (95 %)",
        "verdict",
    ]
    return Table("winners", "Who wins each problem", _WINNERS, columns, rows)


_WINNERS = """Welch's interval of the difference. Verdicts are by a two-sided Mann-Whitney test over runs, with p
corrected by Holm's method for all pairs of strategies of a problem, at 5 %. * sees the structure."""


def _winner(scores: Scores, board: Leaderboard, names: list[str]) -> list[Cell]:
    first = names[0]
    lead = board.pair(first, names[1]) if len(names) > 1 else None
    gap = table.number(lead.gap, formatting.gap(lead)) if lead else table.number(math.nan, "–")
    return [marked(scores, first), table.speedup(*board.means[first]), gap, table.text(verdict(board, names))]


def verdict(board: Leaderboard, names: list[str]) -> str:
    """Return in words whether the first is better than the others."""
    first, rest = names[0], names[1:]
    tied = [name for name in rest if board.tied(first, name)]
    beaten = [name for name in rest if board.significant(first, name)]
    if board.means[first][0] == 0:
        return "all failed"
    if not rest:
        return "alone"
    if tied:
        return f"a tie with {formatting.listed(tied)}"
    if len(beaten) == len(rest):
        return "significantly better than all others"
    if contrary := [name for name in rest if board.contrary(first, name)]:
        return f"by the mean only: by rank significantly worse than {formatting.listed(contrary)}"
    if not board.testable:
        return "too few runs for a test"
    others = formatting.listed(name for name in rest if name not in beaten)
    more = f"the other {len(beaten)}" if len(beaten) > 3 else formatting.listed(beaten)
    return f"not told apart from {others}" + (f"; better than {more}" if beaten else "")
