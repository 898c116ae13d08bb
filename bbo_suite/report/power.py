"""What so few runs and problems cannot show."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from . import words
from .answer import Judgement
from .contest import LEVEL, smallest_rank_sum, smallest_signed_rank

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
        who = "Every strategy" if len(single) == len(scores.means) else words.listed(names)
        where = "" if len(problems) == 1 or len(single) == len(scores.means) else _on(mean.problem for mean in single)
        alone = "" if len(problems) == 1 else " on a single problem"
        yield f"{who}: one run only{where}, so there is no interval and no test{alone}; ask for more with --repeats."
    yield from _narrow(judgement)
    if len(problems) == 1:
        yield f"With one problem nothing can be said about others than {problems[0]}."
    left = [name for name in strategies if name not in scores.whole.columns]
    left += [name for name in problems if name not in scores.whole.index]
    if left:
        yield f"Not all ran everywhere: means over problems leave out {words.listed(left)}."


def _narrow(judgement: Judgement) -> Iterator[str]:
    """Say that bootstrapped intervals are too narrow; the shares are of simulated studies of 2 to 40 problems."""
    scores = judgement.scores
    whole = scores.whole if len(judgement.problems) > 1 else scores.whole[:0]
    repeats = [min((len(scores.speedups[p, name]) for p in whole.index), default=0) for name in whole.columns]
    few = [number for number in repeats if 1 < number < _FEW]
    if few:
        yield (
            f"Intervals over problems are bootstrapped from {words.span(few)} repeats, and too narrow: of 2 they hold "
            f"the true value in some 75 % of studies, of 3 in some 85 %, not in 95 %."
        )


def _on(problems: Iterable[str]) -> str:
    return f" on {words.listed(sorted(set(problems)), 5)}"


def tests(judgement: Judgement) -> Iterator[str]:
    """Yield where no test can be significant, whatever was found, and how much more would do."""
    overall, count = judgement.overall, len(judgement.problems)
    if overall is None:
        return
    if count > 1 and np.isfinite(overall.reachable) and not overall.testable:
        needed = _needed(lambda n: smallest_signed_rank(n) * overall.tested)
        yield (
            f"{count} problems are too few for a test over problems: {_floor(overall.tested, overall.reachable)}; "
            f"{needed} problems would do."
        )
    weak: dict[tuple[int, float], list[str]] = defaultdict(list)
    for problem, contest in judgement.problems.items():
        if np.isfinite(contest.reachable) and not contest.testable:
            weak[contest.tested, contest.reachable].append(problem)
    for (tested, reachable), problems in weak.items():
        needed = _repeats(tested)
        where = words.listed(problems, 5)
        yield f"On {where} no difference can be significant: {_floor(tested, reachable)}; {needed} repeats would do."


def _floor(tested: int, reachable: float) -> str:
    return f"corrected for {words.counted(tested, 'pair')}, p cannot fall below {min(1, reachable):.2g}"


def _repeats(tested: int) -> int:
    return _needed(lambda n: smallest_rank_sum(n, n) * tested)


def _needed(smallest: Callable[[int], float]) -> int:
    return next(n for n in range(2, _MOST) if smallest(n) <= LEVEL)
