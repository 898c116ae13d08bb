"""What cannot be concluded from a study, and what would help."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..stats import SMALLEST_GAIN, SMALLEST_GAIN_TEXT
from ..store.identity import NOISY
from ..store.plan import RunName, together
from ..store.remeasured import ROUNDS
from ..store.results import RunResult
from . import formatting
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
        of_all = f"{sum(map(len, states.values())):,} of {formatting.counted(len(runs), 'run')}"
        text = f"Not finished: {of_all}. {formatting.listed(names)}. The same command resumes."
        yield Limit("unfinished", names, text)


def _name(run: RunResult) -> RunName:
    return RunName(run.problem, run.strategy, run.seed)


def _state(run: RunResult) -> str:
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


def noise(scores: Scores) -> Iterator[Limit]:
    """Yield the problems with noisy costs: those whose results were measured again, and the others."""
    differences: dict[str, float] = {}
    for run in scores.runs:
        if run.noise > 0 or run.head.get(NOISY):
            differences[run.problem] = np.fmax(run.noise, differences.get(run.problem, np.nan))
    if again := sorted(scores.remeasured & {run.problem for run in scores.runs if run.finalists}):
        text = (
            f"Costs are noisy on {formatting.listed(again)}. So after the search, the best candidate of each run was "
            f"measured again in {ROUNDS} pairs with the default: speedups are the medians. Curves show what the search "
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
