"""Tables of what was found on each problem."""

from __future__ import annotations

import math

import numpy as np

from ..stats import SMALLEST_GAIN, SMALLEST_GAIN_TEXT
from . import formatting, table
from .judgement import Judgement
from .leaderboard import Leaderboard
from .scores import Scores
from .table import Cell, Table


def marked(scores: Scores, strategy: str) -> Cell:
    """Return a cell with a strategy, marked by what it knows."""
    return table.strategy(strategy, scores.knowledge[strategy])


def speedups(scores: Scores) -> Table:
    """Return the mean speedup with its interval, one row per problem and strategy."""
    rows = []
    for mean in scores.means:
        share = gain_share(mean.mean, scores.best_mean(mean.problem, mean.strategy))
        named = [table.text(mean.problem), marked(scores, mean.strategy)]
        counts = [table.count(mean.runs), table.count(scores.cutoffs[mean.problem])]
        bounds = table.number(mean.low, formatting.interval(mean.low, mean.high))
        percent = table.number(share, "–" if math.isnan(share) else f"{100 * share:.0f} %")
        rows.append([*named, *counts, table.speedup(mean.mean), bounds, table.speedup(mean.best), percent])
    columns = ["problem", "strategy", "runs", "evaluations", "mean speedup", "95 % interval", "best run"]
    return Table("speedups", "Mean speedup by problem and strategy", _SPEEDUPS, [*columns, "of the best gain"], rows)


_SPEEDUPS = f"""Speedup: cost of the compiler's default / best cost found. Higher is better; 1 is the default, 0 means
that every candidate failed. Student's t interval of the mean over runs. Of the best gain: mean gain over the default in
percent of the best strategy's gain, where strategies that see costs of parts are a kind of their own; a dash: that
gain is below {SMALLEST_GAIN_TEXT}, or infinite."""


def gain_share(speedup: float, best: float) -> float:
    """Return the gain over the default as a fraction of the best gain; nan if that is too small or infinite."""
    return (speedup - 1) / (best - 1) if SMALLEST_GAIN <= best - 1 < np.inf else np.nan


def winners(judgement: Judgement) -> Table:
    """Return the highest mean of each problem, and what the tests say of it, for each group of strategies."""
    rows = []
    for problem, board in judgement.problems.items():
        for group, names in judgement.groups():
            ranked = board.ranked(names)
            if ranked:
                winner = _winner(judgement.scores, board, ranked)
                rows.append([table.text(problem), table.text(group.short), *winner])
    columns = ["problem", "uses", "highest mean", "mean speedup (95 %)", "ahead of the next by (95 %)", "verdict"]
    return Table("winners", "Highest mean by problem", _WINNERS, columns, rows)


_WINNERS = """Welch's interval of the difference. Verdicts are those of a two-sided Mann-Whitney test over runs at 5 %,
with p corrected for all pairs of strategies of a problem (Holm)."""


def _winner(scores: Scores, board: Leaderboard, ranked: list[str]) -> list[Cell]:
    first = ranked[0]
    lead = board.pair(first, ranked[1]) if len(ranked) > 1 else None
    gap = table.number(lead.gap, formatting.gap(lead)) if lead else table.number(math.nan, "–")
    return [marked(scores, first), table.speedup(*board.means[first]), gap, table.text(_verdict(board, ranked))]


def _verdict(board: Leaderboard, ranked: list[str]) -> str:
    """Return in words how the first compares with the others."""
    found = board.verdict(ranked)
    if board.means[found.best][0] == 0:
        return "all failed"
    if len(ranked) == 1:
        return "no other"
    if found.tied:
        return f"tied with {formatting.listed(found.tied)}"
    if found.clear:
        return "significantly better than all others"
    if found.contrary:
        return f"only by the mean: significantly worse by rank than {formatting.listed(found.contrary)}"
    if not board.testable:
        return "too few runs for a test"
    more = f"{len(found.beaten)} others" if len(found.beaten) > 3 else formatting.listed(found.beaten)
    better = f"; significantly better than {more}" if found.beaten else ""
    return f"no significant difference to {formatting.listed(found.undecided)}{better}"
