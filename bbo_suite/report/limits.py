"""What cannot be concluded from a study, and what would help."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from ..stats import LEAST_GAIN, LEAST_WORDS
from ..store.plan import RunName, together
from . import power, words
from .answer import Judgement
from .evidence import Evidence
from .record import Record
from .scores import Scores


def limits(evidence: Evidence, judgement: Judgement) -> Iterator[str]:
    """Yield a sentence for each thing that the study does not support."""
    yield from (f"A run is left out: {sentence}." for sentence in evidence.damaged)
    if not judgement.problems:
        return
    if evidence.waiting:
        names = words.listed(together(evidence.waiting))
        yield f"Not begun: {len(evidence.waiting):,} of {words.counted(evidence.planned, 'planned run')}. {names}."
    yield from _missing(evidence.records)
    yield from _unfinished(evidence.records)
    if any(mean.mean > 0 for mean in judgement.scores.means):
        yield from power.sizes(judgement)
        yield from power.tests(judgement)
    yield from _budgets(judgement.scores)
    yield from _hopeless(judgement.scores)
    yield from _noise(evidence.records)


def _missing(records: Sequence[Record]) -> Iterator[str]:
    there = {(r.problem, r.strategy, r.seed) for r in records}
    problems, strategies, seeds = (sorted({key[i] for key in there}) for i in range(3))
    gaps: dict[tuple[str, str], list[str]] = defaultdict(list)
    for strategy in map(str, strategies):
        where: dict[int, list[str]] = defaultdict(list)
        for problem in map(str, problems):
            where[sum((problem, strategy, seed) in there for seed in seeds)].append(problem)
        for got, names in where.items():
            if got < len(seeds):
                gaps[f"{got} of {len(seeds)} runs" if got else "no run", words.listed(names, 5)].append(strategy)
    for (what, where_), who in gaps.items():
        yield f"{words.listed(who)} {'has' if len(who) == 1 else 'have'} {what} on {where_}."


def _unfinished(records: Sequence[Record]) -> Iterator[str]:
    some = [record for record in records if not record.ended]
    if some:
        names = words.listed(_unfinished_names(some))
        yield f"Not finished: {len(some):,} of {words.counted(len(records), 'run')}. {names}. The same command resumes."


def _unfinished_names(some: Sequence[Record]) -> Iterator[str]:
    """Yield runs in words, those of a strategy on a problem that are in the same state in one."""
    groups: dict[str, list[RunName]] = defaultdict(list)
    for record in some:
        groups[_state(record)].append(_name(record))
    yield from (f"{name} ({state})" for state, runs in groups.items() for name in together(runs))


def _name(record: Record) -> RunName:
    return RunName(record.problem, record.strategy, record.seed)


def _state(record: Record) -> str:
    done = words.counted(record.evaluations, "evaluation") if record.evaluations else "nothing evaluated yet"
    return f"{done}, stopped by {record.error}" if record.error else done


def _budgets(scores: Scores) -> Iterator[str]:
    budgets = sorted({int(record.head["budget"]) for record in scores.records})
    if len(budgets) > 1:
        sizes = words.listed(f"{budget:,}" for budget in budgets)
        planning = "a strategy that plans by its budget is at a disadvantage where a longer run is cut"
        yield f"Budgets are unequal ({sizes} evaluations): {planning}."
    cut: dict[tuple[int, int], list[str]] = defaultdict(list)
    for problem, at in scores.at.items():
        budget = max(int(record.head["budget"]) for record in scores.records if record.problem == problem)
        if at < budget:
            cut[at, budget].append(problem)
    for (at, budget), names in cut.items():
        where = f"{words.listed(names, 5)} {'is' if len(names) == 1 else 'are'} compared after {at:,} evaluations"
        yield f"{where} of {budget:,}, where the shortest of {'its' if len(names) == 1 else 'their'} runs ends."
    short = [record for record in scores.records if 0 < record.reach < scores.at.get(record.problem, 0)]
    if short:
        yield f"Too short to be compared with the others, and left out: {words.listed(together(map(_name, short)))}."
    if any(record.ended == "time" for record in scores.records):
        yield "Some runs ended because their time was up: how far they came depends on the machine."


def _hopeless(scores: Scores) -> Iterator[str]:
    best: dict[str, float] = defaultdict(float)
    for mean in scores.means:
        best[mean.problem] = max(best[mean.problem], mean.best)
    failed = [problem for problem, top in best.items() if top == 0]
    if failed:
        yield f"On {words.listed(failed)} every candidate failed, so nothing is compared there."
    level = [problem for problem, top in best.items() if 0 < top <= 1]
    if level:
        yield f"On {words.listed(level)} no run beats the default."
    tiny = [problem for problem, top in best.items() if 0 < top - 1 < LEAST_GAIN]
    if tiny:
        yield f"On {words.listed(tiny)} no run gains {LEAST_WORDS}: gain shares and targets leave that out."


def _noise(records: Sequence[Record]) -> Iterator[str]:
    noisy: dict[str, float] = defaultdict(float)
    for record in records:
        if record.noise > 0:
            noisy[record.problem] = max(noisy[record.problem], record.noise)
    if noisy:
        names = words.listed(f"{name} ({_apart(most)})" for name, most in noisy.items())
        yield (
            f"Costs are noisy on {names}. The best of many noisy costs looks better than it is: measure the best "
            "candidates again before you rely on them."
        )


def _apart(most: float) -> str:
    if np.isinf(most):
        return "the same candidate failed once and worked once"
    return f"the same candidate differed by up to {words.percent(1 + most)}"
