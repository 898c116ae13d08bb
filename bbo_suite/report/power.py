"""What so few runs and problems cannot show."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from ..stats import smallest_rank_sum_p, smallest_signed_rank_p
from . import formatting
from .answer import Judgement
from .leaderboard import LEVEL

_MOST = 200
_FEW = 5
"""Repeats below which a percentile bootstrap over runs is said to be too narrow: of 5 it covers some 88 %."""


def sizes(judgement: Judgement) -> Iterator[str]:
    """Yield what a lone run, strategy, repeat or problem leaves open."""
    scores = judgement.scores
    if len(scores.used) < 2:
        yield "There is one run to judge: it shows what one strategy found on one problem, and compares nothing."
        return
    strategies, problems = list(scores.table.columns), list(scores.table.index)
    if len(strategies) == 1:
        yield f"Only {strategies[0]} ran, so it is compared with the default alone; random search is the least."
    single = [mean for mean in scores.means if mean.runs == 1]
    if single:
        names = sorted({mean.strategy for mean in single})
        who = "Every strategy" if len(single) == len(scores.means) else formatting.listed(names)
        where = "" if len(problems) == 1 or len(single) == len(scores.means) else _on(mean.problem for mean in single)
        alone = "" if len(problems) == 1 else " on a single problem"
        yield f"{who}: one run only{where}, so there is no interval and no test{alone}; ask for more with --repeats."
    yield from _narrow(judgement)
    if len(problems) == 1:
        yield f"With one problem nothing can be said about others than {problems[0]}."
    left = [name for name in strategies if name not in scores.complete.columns]
    left += [name for name in problems if name not in scores.complete.index]
    if left:
        yield f"Not all ran everywhere: means over problems leave out {formatting.listed(left)}."


def _narrow(judgement: Judgement) -> Iterator[str]:
    """Say that bootstrapped intervals are too narrow; the shares are of simulated studies of 2 to 40 problems."""
    scores = judgement.scores
    whole = scores.complete if len(judgement.problems) > 1 else scores.complete[:0]
    repeats = [min((len(scores.speedups[p, name]) for p in whole.index), default=0) for name in whole.columns]
    few = [number for number in repeats if 1 < number < _FEW]
    if few:
        yield (
            f"Intervals over problems are bootstrapped from {formatting.span(few)} repeats, and too narrow: of 2 they "
            f"hold the true value in some 75 % of studies, of 3 in some 85 %, not in 95 %."
        )


def _on(problems: Iterable[str]) -> str:
    return f" on {formatting.listed(sorted(set(problems)), 5)}"


def tests(judgement: Judgement) -> Iterator[str]:
    """Yield where no test can be significant, whatever was found, and how much more would do."""
    overall, count = judgement.overall, len(judgement.problems)
    if overall is None:
        return
    if count > 1 and np.isfinite(overall.reachable) and not overall.testable:
        needed = _needed(lambda n: smallest_signed_rank_p(n) * overall.tested)
        yield (
            f"{count} problems are too few for a test over problems: {_floor(overall.tested, overall.reachable)}; "
            f"{needed} problems would do."
        )
    weak: dict[tuple[int, float], list[str]] = defaultdict(list)
    for problem, board in judgement.problems.items():
        if np.isfinite(board.reachable) and not board.testable:
            weak[board.tested, board.reachable].append(problem)
    for (tested, reachable), problems in weak.items():
        needed = _repeats(tested)
        where = formatting.listed(problems, 5)
        yield f"On {where} no difference can be significant: {_floor(tested, reachable)}; {needed} repeats would do."


def _floor(tested: int, reachable: float) -> str:
    return f"corrected for {formatting.counted(tested, 'pair')}, p cannot fall below {min(1, reachable):.2g}"


def _repeats(tested: int) -> int:
    return _needed(lambda n: smallest_rank_sum_p(n, n) * tested)


def _needed(smallest: Callable[[int], float]) -> int:
    return next(n for n in range(2, _MOST) if smallest(n) <= LEVEL)
