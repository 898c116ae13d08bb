"""The answer in plain sentences: who is best, by how much, at which budget, and whether that may be chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from . import formatting
from .leaderboard import Leaderboard
from .scores import Scores


@dataclass(frozen=True)
class Kind:
    """Strategies that are judged together: in one word, one of them, and all of them."""

    short: str
    one: str
    all: str


BLIND = Kind("costs\u00a0only", "strategy that sees only costs", "strategies that see only costs")
SEEING = Kind("structure", "strategy that sees the structure", "strategies that see the structure")


@dataclass(frozen=True)
class Judgement:
    """All contests of a study.

    Attributes:
      scores: what they are about.
      overall: the board over problems, or the only problem's; None if nothing was evaluated.
      problems: the board on each problem.
    """

    scores: Scores
    overall: Leaderboard | None
    problems: dict[str, Leaderboard]

    def groups(self) -> Iterator[tuple[Kind, list[str]]]:
        """Yield the strategies that see only costs, and those that see the structure."""
        names = sorted(self.scores.table.columns) if self.problems else []
        yield BLIND, [name for name in names if name not in self.scores.structured]
        yield SEEING, [name for name in names if name in self.scores.structured]


def sentences(judgement: Judgement) -> Iterator[str]:
    """Yield the answer, the most important first."""
    if judgement.overall is None:
        yield "Nothing was evaluated yet, so there is nothing to compare."
    elif all(mean.mean <= 0 for mean in judgement.scores.means):
        yield "Every candidate of every run failed, so no strategy is better than another."
    else:
        yield from _overall(judgement, judgement.overall)
        if len(judgement.problems) > 1:
            yield from _problem_by_problem(judgement)


def _overall(judgement: Judgement, board: Leaderboard) -> Iterator[str]:
    leaders = []
    for kind, names in judgement.groups():
        present = board.best(names)
        if present:
            leaders.append(present[0])
            yield _leader(judgement, board, kind, present)
            yield from _others(board, present)
            yield from _absent(names, present)
    if len(leaders) == 2:
        yield _structure(board, *leaders)
    yield from _sets(judgement, board)


def _leader(judgement: Judgement, board: Leaderboard, kind: Kind, names: Sequence[str]) -> str:
    mean, low, high = board.means[names[0]]
    what = "geometric mean speedup" if len(judgement.problems) > 1 else "mean speedup"
    bounds = "" if formatting.interval(low, high) == "–" else f" (95 % interval {formatting.interval(low, high)})"
    after = f"after {formatting.span(list(judgement.scores.cutoffs.values()))} evaluations"
    number = f"{what} {formatting.speedup(mean)}{bounds} {board.scope} {after}."
    tied = [name for name in names if board.tied(names[0], name)]
    if len(names) == 1:
        return f"{names[0]} is the only {kind.one} to judge: {number}"
    if len(tied) > 1:
        return f"{formatting.listed(tied)} tie as the best of {len(names)} {kind.all}, to the last digit: {number}"
    return f"{names[0]} is the best of {len(names)} {kind.all}: {number}"


def _absent(names: Sequence[str], present: Sequence[str]) -> Iterator[str]:
    left = [name for name in names if name not in present]
    if left:
        yield f"Not judged here, for want of runs on all of these problems: {formatting.listed(left)}."


def _others(board: Leaderboard, names: Sequence[str]) -> Iterator[str]:
    first, rest = names[0], [name for name in names[1:] if not board.tied(names[0], name)]
    beaten = [name for name in rest if board.significant(first, name)]
    contrary = [name for name in rest if board.contrary(first, name)]
    level = [name for name in rest if name not in beaten and name not in contrary]
    if beaten:
        yield f"{first} is significantly better than {_gaps(board, first, beaten)}."
    if wide := [name for name in beaten if board.pair(first, name).open]:
        yield (
            f"That is by rank: the interval of the mean gap to {formatting.listed(wide)} holds no difference, too, "
            f"since a few {board.samples} differ much from the rest."
        )
    if contrary:
        yield (
            f"{first} is ahead of {_gaps(board, first, contrary)} in the mean only, which rests on a few "
            f"{board.samples}: by rank it is significantly worse."
        )
    if level and board.testable:
        yield f"{first} is not told apart from {_gaps(board, first, level)}: read these as ties."
    elif level:
        yield f"{first} is ahead of {_gaps(board, first, level)}; there is too little data for a test of that."


def _gaps(board: Leaderboard, first: str, names: Sequence[str]) -> str:
    """Return each name with by how much the first is better, and the corrected p-value."""
    return formatting.listed(f"{name} (by {board.gap(first, name)}{_chance(board, first, name)})" for name in names)


def _chance(board: Leaderboard, first: str, second: str) -> str:
    return f"; {formatting.p_equals(board.pair(first, second).holm)}" if board.testable else ""


def _structure(board: Leaderboard, blind: str, seeing: str) -> str:
    who = f"{seeing} sees the declared structure, {blind} only costs"
    if board.tied(blind, seeing):
        return f"Structure: {seeing} and {blind} tie {board.scope}; {who}."
    first, second = board.best([blind, seeing])
    verdict = "which is significant" if board.significant(first, second) else "which may be chance"
    if not board.testable:
        verdict = "and there is too little data for a test of that"
    if board.contrary(first, second):
        verdict = "in the mean only: by rank it is significantly worse"
    return f"Structure: {first} is ahead of {_gaps(board, first, [second])} {board.scope}, {verdict}; {who}."


def _sets(judgement: Judgement, board: Leaderboard) -> Iterator[str]:
    """Say where pairs are judged on more problems than the means are about, so that they tell other gaps."""
    numbers = [pair.problems for pair in board.pairs if pair.first in board.means and pair.second in board.means]
    used = len(judgement.scores.complete)
    if max(numbers, default=0) > used:
        which = f"all problems that both ran, {formatting.span(numbers)}"
        yield f"Two strategies are compared on {which}; the means are over the {used} that all of these ran."


def _problem_by_problem(judgement: Judgement) -> Iterator[str]:
    for kind, names in judgement.groups():
        played = [(c, part) for c in judgement.problems.values() if len(part := c.best(names)) > 1]
        if not played:
            continue
        ahead = Counter(part[0] for board, part in played if not board.tied(part[0], part[1]))
        clear = sum(all(board.significant(part[0], other) for other in part[1:]) for board, part in played)
        ties = len(played) - ahead.total()
        wins = [f"{name} has the best mean on {number}" for name, number in ahead.most_common()]
        wins += [formatting.counted(ties, "tie")] if ties else []
        yield (
            f"Problem by problem ({len(played)} with several {kind.all}): {formatting.listed(wins)}. The best one is "
            f"significantly better than all others of its kind on {clear or 'none'}."
        )
