"""The answer in sentences: who is best, by how much, at which budget, and whether that may be chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ..core.level import Level
from ..core.problem import family_of
from ..core.quantities import effect, is_time, with_noun
from ..store.results import RunResult
from . import formatting
from .judgement import BLACK_BOX, STRUCTURED, Group, Judgement, Leaderboard, geometric

_KINDS = {
    Level.COSTS: "Black-box strategies, which see only costs",
    Level.COMPILATION: "Strategies that compile candidates without measuring them",
    Level.STRUCTURE: "Strategies that use the declared structure",
    Level.PARTS: "Strategies that see costs of parts",
}


def summary(runs: Sequence[RunResult]) -> str:
    """Return which strategies ran on which problems."""
    if not runs:
        return "No run can be read."
    problems = sorted({run.problem for run in runs})
    families = Counter(map(family_of, problems))
    shown = problems if len(problems) < 4 else [f"{number} of {family}" for family, number in families.items()]
    level_of = {run.strategy: Level.of(run.head) for run in runs}
    size = with_noun(len(level_of), "strategy")
    tasks = f"{with_noun(len(problems), 'problem')} ({formatting.listed(shown)})"
    budgets = formatting.span([int(run.head["budget"]) for run in runs], "evaluation")
    levels = {level: sorted(name for name, own in level_of.items() if own is level) for level in _KINDS}
    named = " ".join(f"{_KINDS[level]}: {formatting.listed(names)}." for level, names in levels.items() if names)
    return f"{size} on {tasks}, {with_noun(len(runs), 'run')} of {budgets}. {named}"


def sentences(judgement: Judgement) -> Iterator[str]:
    """Yield the answer, the most important sentence first."""
    if judgement.overall is None:
        yield "Nothing has been evaluated yet, so there is nothing to compare."
    elif judgement.all_failed:
        yield "Every candidate of every run failed, so no strategy is better than another."
    elif alone := _alone(judgement):
        yield alone
    else:
        yield from _overall(judgement, judgement.overall)
        if len(judgement.problems) > 1:
            yield from _by_problem(judgement)


def headlines(judgement: Judgement) -> list[str]:
    """Return the sentences that say who is best: one for each kind of strategy."""
    if judgement.overall is None or judgement.all_failed or _alone(judgement):
        return list(sentences(judgement))
    ranked = ((group, judgement.overall.ranked(names)) for group, names in judgement.groups())
    return [headline(judgement, judgement.overall, group, names) for group, names in ranked if names]


def _alone(judgement: Judgement) -> str:
    """Return what the only strategy of each problem found, if it is not the same everywhere; else empty."""
    scores = judgement.scores
    if len(scores.table.columns) == 1 or len(scores.speedups) > len(judgement.problems):
        return ""
    mean = formatting.speedup(geometric(list(scores.speedups.values())))
    found = [f"{each.strategy} on {each.problem} ({formatting.speedup(each.mean)})" for each in scores.means]
    over = with_noun(len(found), "problem")
    return (
        f"One strategy ran on each problem, so none are compared: geometric mean {scores.ratio} {mean} over {over}, by "
        f"{formatting.listed(found, 5)}."
    )


def _overall(judgement: Judgement, board: Leaderboard) -> Iterator[str]:
    leaders = {}
    for group, names in judgement.groups():
        ranked = board.ranked(names)
        if ranked:
            leaders[group] = ranked[0]
            yield headline(judgement, board, group, ranked)
            yield from _others(board, ranked)
            yield from _absent(names, ranked)
    if {BLACK_BOX, STRUCTURED} <= set(leaders):
        yield _structure(board, leaders[BLACK_BOX], leaders[STRUCTURED])
    yield from _different_problems(judgement, board)


def _absent(names: Sequence[str], ranked: Sequence[str]) -> Iterator[str]:
    absent = [name for name in names if name not in ranked]
    if absent:
        yield f"Not compared here, because they did not run on all of these problems: {formatting.listed(absent)}."


def _others(board: Leaderboard, ranked: Sequence[str]) -> Iterator[str]:
    found = board.verdict(ranked)
    best = found.best
    if found.beaten:
        yield f"{best} is significantly better than {_gaps(board, best, found.beaten)}."
    if wide := [name for name in found.beaten if board.pair(best, name).interval_includes_equality]:
        yield (
            f"That test compares ranks; the interval of the mean gap to {formatting.listed(wide)} includes zero, "
            f"because a few {board.samples} differ much from the others."
        )
    if found.contrary:
        yield (
            f"{best} has a better mean than {_gaps(board, best, found.contrary)}, but only because of a few "
            f"{board.samples}: by rank it is significantly worse."
        )
    if found.undecided and board.testable:
        yield f"{best} has a higher mean than {_gaps(board, best, found.undecided)}, which may be chance."
    elif found.undecided:
        gaps = _gaps(board, best, found.undecided)
        yield f"{best} has a higher mean than {gaps}, but there is too little data for a test."


def _gaps(board: Leaderboard, first: str, names: Sequence[str]) -> str:
    """Return each name with the gap to the first, its interval and the corrected p-value."""
    return formatting.listed(f"{name} (by {_gap(board, first, name)})" for name in names)


def _gap(board: Leaderboard, first: str, second: str) -> str:
    pair = board.pair(first, second)
    gap = formatting.gap(pair, ", 95 % interval {} to {}")
    return f"{gap}; {formatting.p_equals(pair.holm)}" if board.testable else gap


def _structure(board: Leaderboard, black_box: str, structured: str) -> str:
    who = f"{structured} uses the declared structure, {black_box} only costs"
    if board.tied(black_box, structured):
        return f"Structure: {structured} and {black_box} tie {board.scope}; {who}."
    first, second = board.ranked([black_box, structured])
    pair = board.pair(first, second)
    if pair.significant:
        gap = _gaps(board, first, [second])
        return f"Structure: {first} is ahead of {gap} {board.scope}, which is significant; {who}."
    verdict = "which may be chance" if board.testable else "but there is too little data for a test"
    if pair.reversed().significant:
        verdict = "but only in the mean: by rank it is significantly worse"
    return f"Structure: {first} has a higher mean than {_gaps(board, first, [second])} {board.scope}, {verdict}; {who}."


def _different_problems(judgement: Judgement, board: Leaderboard) -> Iterator[str]:
    """Say if pairs are compared on more problems than the means cover, so that their gaps differ."""
    numbers = [pair.problems for pair in board.pairs if pair.first in board.means and pair.second in board.means]
    used = len(judgement.scores.complete)
    if max(numbers, default=0) > used:
        yield (
            f"A pair is compared on all problems that both ran, {formatting.span(numbers)}; the means cover the {used} "
            "problems that all of these strategies ran."
        )


def _by_problem(judgement: Judgement) -> Iterator[str]:
    for group, names in judgement.groups():
        ranked = [(board, board.ranked(names)) for board in judgement.problems.values()]
        verdicts = [(board.testable, board.verdict(part)) for board, part in ranked if len(part) > 1]
        if not verdicts:
            continue
        clear = Counter(verdict.best for _, verdict in verdicts if verdict.clear)
        wins = [f"{name} on {number}" for name, number in clear.most_common()]
        wins += [f"none on {len(verdicts) - clear.total()}"] if len(verdicts) > clear.total() else []
        yield (
            f"By problem ({len(verdicts)} with several {group.several}), significantly better than all others of its "
            f"kind: {formatting.listed(wins)}."
        )
        leaders = Counter(name for testable, verdict in verdicts if testable for name in verdict.leaders)
        if clear.total() < len(verdicts) and leaders:
            shares = formatting.listed(f"{name} on {number}" for name, number in leaders.most_common())
            tested = sum(testable for testable, _ in verdicts)
            yield f"Not significantly worse than the highest mean, of {tested} problems: {shares}."


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
    """Return the mean speedup of one strategy with its interval, or those of several, and what they cover.

    Of costs in one unit that is no time, it also says how much less that is.
    """
    kind = f"{'geometric ' if len(judgement.problems) > 1 else ''}mean {judgement.scores.ratio}"
    covers = f"{board.scope} after {formatting.span(list(judgement.scores.cutoffs.values()), 'evaluation')}"
    covers += ", measured again" if judgement.scores.remeasured >= {*judgement.problems} else ""
    if len(names) == 1:
        mean, low, high = board.means[names[0]]
        bounds = "" if formatting.interval(low, high) == "–" else f" (95 % interval {formatting.interval(low, high)})"
        units = {str(run.head["unit"]) for run in judgement.scores.runs}
        less = f", {effect(mean, *units)}," if len(units) == 1 and "" not in units and not is_time(*units) else ""
        return f"{kind} {formatting.speedup(mean)}{bounds}{less} {covers}"
    shown = [f"{formatting.speedup(board.means[name][0])} ({name})" for name in names]
    return f"{kind} {formatting.listed(shown) if len(shown) < 4 else f'{shown[0]} to {shown[-1]}'} {covers}"
