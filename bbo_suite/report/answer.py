"""The answer in plain sentences: who is best, by how much, at which budget, and whether that may be chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from . import words
from .contest import Contest
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
      overall: the contest over problems, or the only problem's; None if nothing was evaluated.
      problems: the contest on each problem.
    """

    scores: Scores
    overall: Contest | None
    problems: dict[str, Contest]

    def groups(self) -> Iterator[tuple[Kind, list[str]]]:
        """Yield the strategies that see only costs, and those that see the structure."""
        names = sorted(self.scores.table.columns) if self.problems else []
        yield BLIND, [name for name in names if name not in self.scores.seeing]
        yield SEEING, [name for name in names if name in self.scores.seeing]


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


def _overall(judgement: Judgement, contest: Contest) -> Iterator[str]:
    leaders = []
    for kind, names in judgement.groups():
        present = contest.best(names)
        if present:
            leaders.append(present[0])
            yield _leader(judgement, contest, kind, present)
            yield from _others(contest, present)
            yield from _absent(names, present)
    if len(leaders) == 2:
        yield _structure(contest, *leaders)
    yield from _sets(judgement, contest)


def _leader(judgement: Judgement, contest: Contest, kind: Kind, names: Sequence[str]) -> str:
    mean, low, high = contest.means[names[0]]
    what = "geometric mean speedup" if len(judgement.problems) > 1 else "mean speedup"
    bounds = "" if words.interval(low, high) == "–" else f" (95 % interval {words.interval(low, high)})"
    after = f"after {words.span(list(judgement.scores.at.values()))} evaluations"
    number = f"{what} {words.speedup(mean)}{bounds} {contest.scope} {after}."
    tied = [name for name in names if contest.tied(names[0], name)]
    if len(names) == 1:
        return f"{names[0]} is the only {kind.one} to judge: {number}"
    if len(tied) > 1:
        return f"{words.listed(tied)} tie as the best of {len(names)} {kind.all}, to the last digit: {number}"
    return f"{names[0]} is the best of {len(names)} {kind.all}: {number}"


def _absent(names: Sequence[str], present: Sequence[str]) -> Iterator[str]:
    left = [name for name in names if name not in present]
    if left:
        yield f"Not judged here, for want of runs on all of these problems: {words.listed(left)}."


def _others(contest: Contest, names: Sequence[str]) -> Iterator[str]:
    first, rest = names[0], [name for name in names[1:] if not contest.tied(names[0], name)]
    beaten = [name for name in rest if contest.significant(first, name)]
    contrary = [name for name in rest if contest.contrary(first, name)]
    level = [name for name in rest if name not in beaten and name not in contrary]
    if beaten:
        yield f"{first} is significantly better than {_gaps(contest, first, beaten)}."
    if wide := [name for name in beaten if contest.pair(first, name).open]:
        yield (
            f"That is by rank: the interval of the mean gap to {words.listed(wide)} holds no difference, too, since a "
            f"few {contest.samples} differ much from the rest."
        )
    if contrary:
        yield (
            f"{first} is ahead of {_gaps(contest, first, contrary)} in the mean only, which rests on a few "
            f"{contest.samples}: by rank it is significantly worse."
        )
    if level and contest.testable:
        yield f"{first} is not told apart from {_gaps(contest, first, level)}: read these as ties."
    elif level:
        yield f"{first} is ahead of {_gaps(contest, first, level)}; there is too little data for a test of that."


def _gaps(contest: Contest, first: str, names: Sequence[str]) -> str:
    """Return each name with by how much the first is better, and the corrected p-value."""
    return words.listed(f"{name} (by {contest.gap(first, name)}{_chance(contest, first, name)})" for name in names)


def _chance(contest: Contest, first: str, second: str) -> str:
    return f"; {words.p_equals(contest.pair(first, second).holm)}" if contest.testable else ""


def _structure(contest: Contest, blind: str, seeing: str) -> str:
    who = f"{seeing} sees the declared structure, {blind} only costs"
    if contest.tied(blind, seeing):
        return f"Structure: {seeing} and {blind} tie {contest.scope}; {who}."
    first, second = contest.best([blind, seeing])
    verdict = "which is significant" if contest.significant(first, second) else "which may be chance"
    if not contest.testable:
        verdict = "and there is too little data for a test of that"
    if contest.contrary(first, second):
        verdict = "in the mean only: by rank it is significantly worse"
    return f"Structure: {first} is ahead of {_gaps(contest, first, [second])} {contest.scope}, {verdict}; {who}."


def _sets(judgement: Judgement, contest: Contest) -> Iterator[str]:
    """Say where pairs are judged on more problems than the means are about, so that they tell other gaps."""
    numbers = [pair.problems for pair in contest.pairs if pair.first in contest.means and pair.second in contest.means]
    used = len(judgement.scores.whole)
    if max(numbers, default=0) > used:
        which = f"all problems that both ran, {words.span(numbers)}"
        yield f"Two strategies are compared on {which}; the means are over the {used} that all of these ran."


def _problem_by_problem(judgement: Judgement) -> Iterator[str]:
    for kind, names in judgement.groups():
        played = [(c, part) for c in judgement.problems.values() if len(part := c.best(names)) > 1]
        if not played:
            continue
        ahead = Counter(part[0] for contest, part in played if not contest.tied(part[0], part[1]))
        clear = sum(all(contest.significant(part[0], other) for other in part[1:]) for contest, part in played)
        ties = len(played) - ahead.total()
        wins = [f"{name} has the best mean on {number}" for name, number in ahead.most_common()]
        wins += [words.counted(ties, "tie")] if ties else []
        yield (
            f"Problem by problem ({len(played)} with several {kind.all}): {words.listed(wins)}. The best one is "
            f"significantly better than all others of its kind on {clear or 'none'}."
        )
