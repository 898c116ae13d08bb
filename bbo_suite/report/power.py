"""Statistical power: what so few runs and problems cannot show, and how many would be enough."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

import numpy as np

from ..stats import smallest_rank_sum_p, smallest_signed_rank_p
from . import formatting
from .judgement import Judgement
from .limits import Limit
from .pairs import LEVEL

_MOST = 200
_FEW = 5
"""With fewer repeats a percentile bootstrap over runs is too narrow: with 5 it covers about 88 %."""


def sizes(judgement: Judgement) -> Iterator[Limit]:
    """Yield what a single run, strategy, repeat or problem leaves open."""
    scores = judgement.scores
    strategies, problems = tuple(scores.table.columns), tuple(scores.table.index)
    if len(scores.compared) < 2:
        text = "There is only one run: it shows what one strategy found on one problem, and compares nothing."
        yield Limit("one run", strategies, text)
        return
    if len(strategies) == 1:
        text = f"Only {strategies[0]} ran, so it is compared with the default only; run random search, too."
        yield Limit("one strategy", strategies, text)
    yield from _single_runs(judgement)
    yield from _narrow(judgement)
    if len(problems) == 1:
        yield Limit("one problem", problems, f"One problem says nothing about problems other than {problems[0]}.")
    absent = tuple(str(name) for name in strategies if name not in scores.complete.columns)
    absent += tuple(str(name) for name in problems if name not in scores.complete.index)
    if absent:
        text = f"Not every strategy ran on every problem: means over problems leave out {formatting.listed(absent)}."
        yield Limit("left out", absent, text)


def _single_runs(judgement: Judgement) -> Iterator[Limit]:
    means, several = judgement.scores.means, len(judgement.problems) > 1
    single = [mean for mean in means if mean.runs == 1]
    if single:
        names = tuple(sorted({mean.strategy for mean in single}))
        every = len(single) == len(means)
        who = "Every strategy" if every else formatting.listed(names)
        on = formatting.listed(sorted({mean.problem for mean in single}), 5)
        where = f" on {on}" if several and not every else ""
        alone = " on a single problem" if several else ""
        text = f"{who}: only one run{where}, so there is no interval and no test{alone}; add runs with --repeats."
        yield Limit("single runs", names, text)


def _narrow(judgement: Judgement) -> Iterator[Limit]:
    """Yield bootstrap intervals that are too narrow; the coverage is that of simulated studies of 2 to 40 problems."""
    scores = judgement.scores
    block = scores.complete if len(judgement.problems) > 1 else scores.complete[:0]
    repeats = [min((len(scores.speedups[p, name]) for p in block.index), default=0) for name in block.columns]
    few = [number for number in repeats if 1 < number < _FEW]
    if few:
        text = (
            f"Intervals over problems are bootstrapped from {formatting.span(few)} repeats and are too narrow: with 2 "
            "repeats they contain the true value in about 75 % of studies, with 3 in about 85 %, instead of 95 %."
        )
        yield Limit("narrow intervals", tuple(str(name) for name in block.columns), text)


def tests(judgement: Judgement) -> Iterator[Limit]:
    """Yield where no test can be significant, whatever was found, and how many runs or problems would be enough."""
    overall, count = judgement.overall, len(judgement.problems)
    if overall is None:
        return
    if count > 1 and np.isfinite(overall.smallest_p) and not overall.testable:
        needed = _needed(lambda n: smallest_signed_rank_p(n) * overall.tested)
        text = f"{count} problems are too few for a test over problems: {_floor(overall.tested, overall.smallest_p)}"
        yield Limit("few problems", tuple(judgement.problems), f"{text}; {needed} problems would be enough.")
    weak: dict[tuple[int, float], list[str]] = defaultdict(list)
    for problem, board in judgement.problems.items():
        if np.isfinite(board.smallest_p) and not board.testable:
            weak[board.tested, board.smallest_p].append(problem)
    for (tested, smallest), problems in weak.items():
        text = f"On {formatting.listed(problems, 5)} no difference can be significant: {_floor(tested, smallest)}"
        yield Limit("few repeats", tuple(problems), f"{text}; {enough_repeats(tested)} repeats would be enough.")


def _floor(tested: int, smallest: float) -> str:
    return f"corrected for {formatting.counted(tested, 'pair')}, p is at least {min(1, smallest):.2g}"


def enough_repeats(tested: int) -> int:
    """Return with how many runs of each strategy a difference can be significant, corrected for `tested` pairs."""
    return _needed(lambda n: smallest_rank_sum_p(n, n) * tested)


def _needed(smallest: Callable[[int], float]) -> int:
    return next(n for n in range(2, _MOST) if smallest(n) <= LEVEL)
