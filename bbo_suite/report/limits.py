"""What cannot be concluded from a study, and what would help: statistical power among others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..core.quantities import with_noun
from ..scores import ALPHA, Scores
from ..stats import SMALLEST_GAIN, SMALLEST_GAIN_TEXT, smallest_rank_sum_p, smallest_signed_rank_p
from ..store.identity import NOISY
from ..store.plan import RunName, together
from ..store.remeasured import ROUNDS
from ..store.results import RunResult
from . import formatting
from .judgement import Judgement


@dataclass(frozen=True)
class Limit:
    """Something that a study does not support.

    Attributes:
      kind: of the limit, a key such as "noise".
      about: the strategies, problems or runs that it concerns.
      text: the sentence of the report.
    """

    kind: str
    about: tuple[str, ...]
    text: str


def not_started(waiting: Sequence[RunName], planned: int) -> Iterator[Limit]:
    """Yield the planned runs that have not started."""
    if waiting:
        names = tuple(together(waiting))
        of_all = f"{len(waiting):,} of {with_noun(planned, 'planned run')}"
        yield Limit("not started", names, f"Not started: {of_all}. {formatting.listed(names)}.")


def missing(runs: Sequence[RunResult]) -> Iterator[Limit]:
    """Yield the strategies that have fewer runs on a problem than others."""
    present = {(run.problem, run.strategy, run.seed) for run in runs}
    problems, strategies, seeds = (sorted({key[i] for key in present}) for i in range(3))
    gaps: dict[tuple[int, str], list[str]] = defaultdict(list)
    for strategy in map(str, strategies):
        where: dict[int, list[str]] = defaultdict(list)
        for problem in map(str, problems):
            where[sum((problem, strategy, seed) in present for seed in seeds)].append(problem)
        for number, names in where.items():
            if number < len(seeds):
                gaps[number, formatting.listed(names, 5)].append(strategy)
    for (number, place), who in gaps.items():
        has = "has" if len(who) == 1 else "have"
        count = f"{number} of {len(seeds)} runs" if number else "no run"
        yield Limit("missing", tuple(who), f"{formatting.listed(who)} {has} {count} on {place}.")


def unfinished(runs: Sequence[RunResult]) -> Iterator[Limit]:
    """Yield the runs that have not ended, those of a strategy on a problem in the same state together."""
    states: dict[str, list[RunName]] = defaultdict(list)
    for run in runs:
        if not run.ended:
            states[_state(run)].append(_name(run))
    if states:
        names = tuple(f"{name} ({state})" for state, some in states.items() for name in together(some))
        of_all = f"{sum(map(len, states.values())):,} of {with_noun(len(runs), 'run')}"
        text = f"Not finished: {of_all}. {formatting.listed(names)}. The same command resumes."
        yield Limit("unfinished", names, text)


def _name(run: RunResult) -> RunName:
    return RunName(run.problem, run.strategy, run.seed)


def _state(run: RunResult) -> str:
    done = with_noun(run.evaluations, "evaluation") if run.evaluations else "nothing evaluated yet"
    return f"{done}, stopped by {run.error}" if run.error else done


def budgets(scores: Scores) -> Iterator[Limit]:
    """Yield where runs have different lengths."""
    sizes = sorted({int(run.head["budget"]) for run in scores.runs})
    if len(sizes) > 1:
        text = f"Budgets differ ({formatting.listed(f'{size:,}' for size in sizes)} evaluations)"
        why = "a strategy that plans for its budget is at a disadvantage if its run is cut short"
        yield Limit("budgets differ", tuple(f"{size:,}" for size in sizes), f"{text}: {why}.")
    yield from _cut(scores)
    short = [run for run in scores.runs if 0 < run.reach < scores.cutoffs.get(run.problem, 0)]
    if short:
        names = tuple(together(map(_name, short)))
        yield Limit("too short", names, f"Too short for the comparison, and left out: {formatting.listed(names)}.")
    timed = [run for run in scores.runs if run.ended == "time"]
    if timed:
        text = "Some runs ended at their time limit: how far they got depends on the machine."
        yield Limit("time limit", tuple(together(map(_name, timed))), text)
    if enough := [run for run in scores.runs if run.ended == "price"]:
        text = (
            "Some runs ended because more was not expected to be worth its price: what their budget gains is unknown."
        )
        yield Limit("price", tuple(together(map(_name, enough))), text)


def _cut(scores: Scores) -> Iterator[Limit]:
    """Yield the problems that are compared after fewer evaluations than the largest budget."""
    cut: dict[tuple[int, int], list[str]] = defaultdict(list)
    for problem, cutoff in scores.cutoffs.items():
        budget = max(int(run.head["budget"]) for run in scores.runs if run.problem == problem)
        if cutoff < budget:
            cut[cutoff, budget].append(problem)
    for (cutoff, budget), names in cut.items():
        are, their = ("is", "its") if len(names) == 1 else ("are", "their")
        when = f"after {cutoff:,} of {budget:,} evaluations, where {their} shortest run ends"
        yield Limit("cut", tuple(names), f"{formatting.listed(names, 5)} {are} compared {when}.")


def hopeless(scores: Scores) -> Iterator[Limit]:
    """Yield the problems on which no run found anything better than the default."""
    best: dict[str, float] = defaultdict(float)
    for mean in scores.means:
        best[mean.problem] = max(best[mean.problem], mean.best)
    if failed := [problem for problem, top in best.items() if top == 0]:
        text = f"On {formatting.listed(failed)} every candidate failed, so nothing is compared there."
        yield Limit("all failed", tuple(failed), text)
    if level := [problem for problem, top in best.items() if 0 < top <= 1]:
        yield Limit("no gain", tuple(level), f"On {formatting.listed(level)} no run beats the default.")
    if tiny := [problem for problem, top in best.items() if 0 < top - 1 < SMALLEST_GAIN]:
        text = f"On {formatting.listed(tiny)} no run gains {SMALLEST_GAIN_TEXT}, so gain shares and targets omit it."
        yield Limit("tiny gain", tuple(tiny), text)


def noise(scores: Scores) -> Iterator[Limit]:
    """Yield the problems with noisy costs: those whose results were measured again, and the others."""
    differences: dict[str, float] = {}
    for run in scores.runs:
        if run.noise > 0 or run.head.get(NOISY):
            differences[run.problem] = np.fmax(run.noise, differences.get(run.problem, np.nan))
    if again := sorted(scores.remeasured & {run.problem for run in scores.runs if run.finalists}):
        text = (
            f"Costs are noisy on {formatting.listed(again)}. So after the search, the best candidate of each run was "
            f"measured again in {ROUNDS} pairs with the default: results are the medians. Curves show what the search "
            "measured, where the best of many noisy costs looks better than it is."
        )
        yield Limit("measured again", tuple(again), text)
    if others := {name: most for name, most in differences.items() if name not in scores.remeasured}:
        names = formatting.listed(f"{name}{_difference(most)}" for name, most in others.items())
        text = (
            f"Costs are noisy on {names}. The best of many noisy costs looks better than it is, and not every run was "
            "measured again. The same command does that, if the problem declares that it is noisy."
        )
        yield Limit("noise", tuple(others), text)


def _difference(most: float) -> str:
    if np.isnan(most):
        return ""
    if np.isinf(most):
        return " (the same candidate failed once and worked once)"
    return f" (costs of the same candidate differ by up to {formatting.percent(1 + most)})"


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
    return f"corrected for {with_noun(tested, 'pair')}, p is at least {min(1, smallest):.2g}"


def enough_repeats(tested: int) -> int:
    """Return with how many runs of each strategy a difference can be significant, corrected for `tested` pairs."""
    return _needed(lambda n: smallest_rank_sum_p(n, n) * tested)


def _needed(smallest: Callable[[int], float]) -> int:
    return next(n for n in range(2, _MOST) if smallest(n) <= ALPHA)
