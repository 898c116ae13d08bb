"""What cannot be concluded from a study, and what would help."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from ..stats import SMALLEST_GAIN, SMALLEST_GAIN_TEXT
from ..store.plan import RunName, together
from . import formatting, power
from .answer import Judgement
from .run_summary import RunSummary
from .scores import Scores
from .study_data import StudyData


def limits(study: StudyData, judgement: Judgement) -> Iterator[str]:
    """Yield a sentence for each thing that the study does not support."""
    yield from (f"A run is left out: {sentence}." for sentence in study.damaged)
    if not judgement.problems:
        return
    if study.waiting:
        names = formatting.listed(together(study.waiting))
        yield f"Not begun: {len(study.waiting):,} of {formatting.counted(study.planned, 'planned run')}. {names}."
    yield from _missing(study.records)
    yield from _unfinished(study.records)
    if any(mean.mean > 0 for mean in judgement.scores.means):
        yield from power.sizes(judgement)
        yield from power.tests(judgement)
    yield from _budgets(judgement.scores)
    yield from _hopeless(judgement.scores)
    yield from _noise(study.records)


def _missing(records: Sequence[RunSummary]) -> Iterator[str]:
    there = {(r.problem, r.strategy, r.seed) for r in records}
    problems, strategies, seeds = (sorted({key[i] for key in there}) for i in range(3))
    gaps: dict[tuple[str, str], list[str]] = defaultdict(list)
    for strategy in map(str, strategies):
        where: dict[int, list[str]] = defaultdict(list)
        for problem in map(str, problems):
            where[sum((problem, strategy, seed) in there for seed in seeds)].append(problem)
        for got, names in where.items():
            if got < len(seeds):
                gaps[f"{got} of {len(seeds)} runs" if got else "no run", formatting.listed(names, 5)].append(strategy)
    for (what, where_), who in gaps.items():
        yield f"{formatting.listed(who)} {'has' if len(who) == 1 else 'have'} {what} on {where_}."


def _unfinished(records: Sequence[RunSummary]) -> Iterator[str]:
    some = [record for record in records if not record.ended]
    if some:
        names = formatting.listed(_unfinished_names(some))
        yield (
            f"Not finished: {len(some):,} of {formatting.counted(len(records), 'run')}. {names}. "
            "The same command resumes."
        )


def _unfinished_names(some: Sequence[RunSummary]) -> Iterator[str]:
    """Yield runs in words, those of a strategy on a problem that are in the same state in one."""
    groups: dict[str, list[RunName]] = defaultdict(list)
    for record in some:
        groups[_state(record)].append(_name(record))
    yield from (f"{name} ({state})" for state, runs in groups.items() for name in together(runs))


def _name(record: RunSummary) -> RunName:
    return RunName(record.problem, record.strategy, record.seed)


def _state(record: RunSummary) -> str:
    done = formatting.counted(record.evaluations, "evaluation") if record.evaluations else "nothing evaluated yet"
    return f"{done}, stopped by {record.error}" if record.error else done


def _budgets(scores: Scores) -> Iterator[str]:
    budgets = sorted({int(record.head["budget"]) for record in scores.records})
    if len(budgets) > 1:
        sizes = formatting.listed(f"{budget:,}" for budget in budgets)
        planning = "a strategy that plans by its budget is at a disadvantage where a longer run is cut"
        yield f"Budgets are unequal ({sizes} evaluations): {planning}."
    cut: dict[tuple[int, int], list[str]] = defaultdict(list)
    for problem, at in scores.cutoffs.items():
        budget = max(int(record.head["budget"]) for record in scores.records if record.problem == problem)
        if at < budget:
            cut[at, budget].append(problem)
    for (at, budget), names in cut.items():
        where = f"{formatting.listed(names, 5)} {'is' if len(names) == 1 else 'are'} compared after {at:,} evaluations"
        yield f"{where} of {budget:,}, where the shortest of {'its' if len(names) == 1 else 'their'} runs ends."
    short = [record for record in scores.records if 0 < record.reach < scores.cutoffs.get(record.problem, 0)]
    if short:
        names_ = formatting.listed(together(map(_name, short)))
        yield f"Too short to be compared with the others, and left out: {names_}."
    if any(record.ended == "time" for record in scores.records):
        yield "Some runs ended because their time was up: how far they came depends on the machine."


def _hopeless(scores: Scores) -> Iterator[str]:
    best: dict[str, float] = defaultdict(float)
    for mean in scores.means:
        best[mean.problem] = max(best[mean.problem], mean.best)
    failed = [problem for problem, top in best.items() if top == 0]
    if failed:
        yield f"On {formatting.listed(failed)} every candidate failed, so nothing is compared there."
    level = [problem for problem, top in best.items() if 0 < top <= 1]
    if level:
        yield f"On {formatting.listed(level)} no run beats the default."
    tiny = [problem for problem, top in best.items() if 0 < top - 1 < SMALLEST_GAIN]
    if tiny:
        yield f"On {formatting.listed(tiny)} no run gains {SMALLEST_GAIN_TEXT}: gain shares and targets leave that out."


def _noise(records: Sequence[RunSummary]) -> Iterator[str]:
    noisy: dict[str, float] = defaultdict(float)
    for record in records:
        if record.noise > 0:
            noisy[record.problem] = max(noisy[record.problem], record.noise)
    if noisy:
        names = formatting.listed(f"{name} ({_apart(most)})" for name, most in noisy.items())
        yield (
            f"Costs are noisy on {names}. The best of many noisy costs looks better than it is: measure the best "
            "candidates again before you rely on them."
        )


def _apart(most: float) -> str:
    if np.isinf(most):
        return "the same candidate failed once and worked once"
    return f"the same candidate differed by up to {formatting.percent(1 + most)}"
