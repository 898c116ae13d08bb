"""The answer in plain sentences: who is best, by how much, at which budget, and whether that may be chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from . import words
from .contest import LEVEL, Contest
from .pairs import between
from .scores import Scores

BLIND, SEEING = "black box", "strategy that sees the structure"


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

    def groups(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the strategies that see only costs, and those that see the structure, under their names."""
        names = sorted(self.scores.table.columns) if self.problems else []
        yield BLIND, [name for name in names if name not in self.scores.seeing]
        yield SEEING, [name for name in names if name in self.scores.seeing]


def sentences(judgement: Judgement) -> Iterator[str]:
    """Yield the answer, the most important first."""
    if judgement.overall is None:
        yield "Nothing was evaluated yet, so there is nothing to compare."
        return
    if all(mean <= 0 for mean in judgement.scores.means["mean"]):
        yield "Every candidate of every run failed, so no strategy is better than another."
        return
    leaders = []
    for kind, names in judgement.groups():
        taking_part = judgement.overall.best(names)
        if taking_part:
            leaders.append(taking_part[0])
            yield _leader(judgement, taking_part, kind)
            yield from _others(judgement.overall, taking_part)
    if len(leaders) == 2:
        yield _structure(judgement.overall, *leaders)
    if len(judgement.problems) > 1:
        yield from _problem_by_problem(judgement)


def _leader(judgement: Judgement, names: Sequence[str], kind: str) -> str:
    contest = judgement.overall
    assert contest is not None
    mean, low, high = contest.means.loc[names[0], ["mean", "low", "high"]]
    what = "geometric mean speedup" if len(judgement.problems) > 1 else "mean speedup"
    bounds = "" if words.interval(low, high) == "–" else f" (95 % interval {words.interval(low, high)})"
    number = f"{what} {words.speedup(mean)}{bounds} {contest.scope} after {_budget(judgement)}"
    tied = [name for name in names if contest.tied(names[0], name)]
    if len(names) == 1:
        return f"{names[0]} is the only {kind} here: {number}."
    if len(tied) > 1:
        who = "All of them" if len(tied) == len(names) else words.listed(tied)
        return f"Of {words.counted(len(names), kind)}, {who} tie: {number}.".replace("ys that", "ies that")
    return f"{names[0]} is the best of {_number(len(names), kind)}: {number}."


def _number(count: int, kind: str) -> str:
    plurals = {BLIND: "black boxes", SEEING: "strategies that see the structure"}
    return f"{count} {plurals[kind]}"


def _budget(judgement: Judgement) -> str:
    return f"{words.span(list(judgement.scores.at.values()))} evaluations"


def _others(contest: Contest, names: Sequence[str]) -> Iterator[str]:
    first, rest = names[0], [name for name in names[1:] if not contest.tied(names[0], name)]
    beaten = [name for name in rest if contest.significant(first, name)]
    open_ = [name for name in rest if name not in beaten]
    if beaten:
        yield f"{first} is significantly better than {words.listed(_gaps(contest, first, beaten))}."
    if open_ and contest.testable:
        yield f"{first} is not told apart from {words.listed(_gaps(contest, first, open_))}: read these as ties."
    elif open_:
        yield (
            f"{first} is ahead of {words.listed(_gaps(contest, first, open_))}, but nothing here can be significant: "
            "see what cannot be concluded."
        )


def _gaps(contest: Contest, first: str, names: Sequence[str]) -> Iterator[str]:
    for name in names:
        pair = between(contest.pairs, first, name)
        p = "" if pair is None or words.p_value(pair["holm"]) == "–" else f"; p {_equals(pair['holm'])}"
        yield f"{name} (by {contest.gap(first, name)}{p})"


def _equals(p: float) -> str:
    text = words.p_value(p)
    return text if text.startswith("<") else f"= {text}"


def _structure(contest: Contest, blind: str, seeing: str) -> str:
    if contest.tied(blind, seeing):
        return f"{seeing}, which sees the structure, and {blind}, which does not, tie {contest.scope}."
    ahead, behind = (seeing, blind) if contest.best([blind, seeing])[0] == seeing else (blind, seeing)
    verdict = "significant" if contest.significant(ahead, behind) else "not significant"
    return (
        f"Structure: {_gaps_text(contest, ahead, behind)} {contest.scope}, which is {verdict}; "
        f"{seeing} sees the declared structure, {blind} only costs."
    )


def _gaps_text(contest: Contest, ahead: str, behind: str) -> str:
    return f"{ahead} is better than {next(_gaps(contest, ahead, [behind]))}"


def _problem_by_problem(judgement: Judgement) -> Iterator[str]:
    for kind, names in judgement.groups():
        leaders: Counter[str] = Counter()
        clear = 0
        for contest in judgement.problems.values():
            part = contest.best(names)
            if len(part) < 2 or contest.tied(part[0], part[1]):
                continue
            leaders[part[0]] += 1
            clear += all(contest.significant(part[0], other) for other in part[1:])
        if leaders:
            counts = words.listed(f"{name} on {number}" for name, number in leaders.most_common())
            yield (
                f"Problem by problem, the best mean of the {_number(len(names), kind)} is that of {counts} of "
                f"{len(judgement.problems)}; on {clear} the winner is significantly better than all others of its kind."
            )


__all__ = ["BLIND", "LEVEL", "SEEING", "Judgement", "sentences"]
