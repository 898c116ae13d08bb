"""The first sentence of the answer: it calls a strategy the best only if the tests tell it from all others."""

from __future__ import annotations

from collections.abc import Sequence

from . import formatting
from .judgement import Group, Judgement
from .leaderboard import Leaderboard


def headline(judgement: Judgement, board: Leaderboard, group: Group, ranked: Sequence[str]) -> str:
    """Return which of a group's strategies are best.

    Args:
      board: over problems, or of one problem.
      ranked: the compared strategies of the group, the highest mean first.
    """
    verdict, several = board.verdict(ranked), f"{len(ranked)} {group.several}"
    names, mean = formatting.listed(verdict.leaders), _means(judgement, board, ranked[:1])
    if len(ranked) == 1:
        return f"{names} is the only {group.one}: {mean}."
    if verdict.clear:
        return f"{names} is the best of {several}: {mean}."
    if len(verdict.tied) == len(ranked) - 1:
        return f"{names}, all {several}, tie exactly: {mean}."
    if not board.testable:
        are, highest = "are those of" if verdict.tied else "is that of", [verdict.best, *verdict.tied]
        start = f"There are too few {board.samples} to say which of {several} is best"
        return f"{start}. Highest {are} {formatting.listed(highest)}: {mean}."
    if verdict.contrary:
        by_rank = f"by rank it is significantly worse than {formatting.listed(verdict.contrary)}"
        return f"None of {several} is the best. {verdict.best} has the highest mean, but {by_rank}: {mean}."
    behind = f"; {_both(verdict.leaders)} ahead of {formatting.listed(verdict.trailing)}" if verdict.trailing else ""
    return f"{names} cannot be told apart by a test{behind}: {_means(judgement, board, board.ranked(verdict.leaders))}."


def _both(names: Sequence[str]) -> str:
    return "both are" if len(names) == 2 else f"all {len(names)} are"


def _means(judgement: Judgement, board: Leaderboard, names: Sequence[str]) -> str:
    """Return the mean speedup of one strategy with its interval, or those of several, and what they cover."""
    kind = "geometric mean speedup" if len(judgement.problems) > 1 else "mean speedup"
    covers = f"{board.scope} after {formatting.span(list(judgement.scores.cutoffs.values()))} evaluations"
    covers += ", measured again" if judgement.scores.remeasured >= {*judgement.problems} else ""
    if len(names) == 1:
        mean, low, high = board.means[names[0]]
        bounds = "" if formatting.interval(low, high) == "–" else f" (95 % interval {formatting.interval(low, high)})"
        return f"{kind} {formatting.speedup(mean)}{bounds} {covers}"
    shown = [f"{formatting.speedup(board.means[name][0])} ({name})" for name in names]
    return f"{kind} {formatting.listed(shown) if len(shown) < 4 else f'{shown[0]} to {shown[-1]}'} {covers}"
