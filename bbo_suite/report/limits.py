"""What cannot be concluded from a study, and what would help."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..stats import SMALLEST_GAIN, SMALLEST_GAIN_TEXT
from ..store.plan import RunName, together
from . import formatting
from .run_summary import RunSummary
from .scores import Scores


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
        of_all = f"{len(waiting):,} of {formatting.counted(planned, 'planned run')}"
        yield Limit("not started", names, f"Not started: {of_all}. {formatting.listed(names)}.")


def missing(runs: Sequence[RunSummary]) -> Iterator[Limit]:
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


def unfinished(runs: Sequence[RunSummary]) -> Iterator[Limit]:
    """Yield the runs that have not ended, those of a strategy on a problem in the same state together."""
    states: dict[str, list[RunName]] = defaultdict(list)
    for run in runs:
        if not run.ended:
            states[_state(run)].append(_name(run))
    if states:
        names = tuple(f"{name} ({state})" for state, some in states.items() for name in together(some))
        of_all = f"{sum(map(len, states.values())):,} of {formatting.counted(len(runs), 'run')}"
        text = f"Not finished: {of_all}. {formatting.listed(names)}. The same command resumes."
        yield Limit("unfinished", names, text)


def _name(run: RunSummary) -> RunName:
    return RunName(run.problem, run.strategy, run.seed)


def _state(run: RunSummary) -> str:
    done = formatting.counted(run.evaluations, "evaluation") if run.evaluations else "nothing evaluated yet"
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


def noise(runs: Iterable[RunSummary]) -> Iterator[Limit]:
    """Yield the problems on which the same candidate has different costs."""
    noisy: dict[str, float] = defaultdict(float)
    for run in runs:
        if run.noise > 0:
            noisy[run.problem] = max(noisy[run.problem], run.noise)
    if noisy:
        names = formatting.listed(f"{name} ({_difference(most)})" for name, most in noisy.items())
        text = (
            f"Costs are noisy on {names}. The best of many noisy costs looks better than it is: measure the best "
            "candidates again before you rely on them."
        )
        yield Limit("noise", tuple(noisy), text)


def _difference(most: float) -> str:
    if np.isinf(most):
        return "the same candidate failed once and worked once"
    return f"costs of the same candidate differ by up to {formatting.percent(1 + most)}"
