"""What cannot be concluded from a study, and what would help."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

import numpy as np
from scipy.special import comb

from . import words
from .answer import Judgement
from .contest import LEVEL
from .evidence import Evidence
from .record import Record

_MOST = 200


def limits(evidence: Evidence, judgement: Judgement) -> Iterator[str]:
    """Yield a sentence for each thing that the study does not support."""
    if evidence.records:
        yield from _missing(evidence)
        yield from _sizes(judgement)
        yield from _power(judgement)
        yield from _budgets(evidence.records, judgement)
        yield from _values(evidence.records, judgement)
    yield from (f"A run is left out: {sentence}." for sentence in evidence.damaged)


def _missing(evidence: Evidence) -> Iterator[str]:
    records = evidence.records
    there = {(r.problem, r.strategy, r.seed) for r in records}
    problems, strategies, seeds = (sorted({key[i] for key in there}) for i in range(3))
    gaps: dict[str, list[str]] = defaultdict(list)
    for strategy in strategies:
        for problem in problems:
            got = sum((problem, strategy, seed) in there for seed in seeds)
            if got < len(seeds):
                gaps[f"{got} of {len(seeds)} runs of {strategy}"].append(problem)
    for what, where in gaps.items():
        yield f"There are only {what} on {words.listed(where)}; their means are less sure, or missing."
    unfinished = [r for r in records if not r.ended]
    if unfinished:
        names = words.listed(f"{r.strategy} on {r.problem}, seed {r.seed} ({_state(r)})" for r in unfinished)
        yield f"{words.counted(len(unfinished), 'run')} of {len(records)} not finished: {names}. The same command resumes."


def _state(record: Record) -> str:
    done = words.counted(record.evaluations, "evaluation") if record.evaluations else "nothing evaluated yet"
    return f"{done}, stopped by {record.error}" if record.error else done


def _sizes(judgement: Judgement) -> Iterator[str]:
    scores = judgement.scores
    if not scores.used:
        return
    strategies, problems = scores.table.columns, scores.table.index
    if len(scores.used) == 1:
        yield "This is one run: it shows what one strategy found on one problem with one seed, and compares nothing."
        return
    if len(strategies) == 1:
        yield f"Only {strategies[0]} ran, so there is no strategy to compare it with; random search is the least."
    single = scores.means[scores.means["runs"] == 1]
    if len(single):
        names = "Every strategy" if len(single) == len(scores.means) else words.listed(sorted(set(single["strategy"])))
        verb = "has" if len(set(single["strategy"])) == 1 or names == "Every strategy" else "have"
        yield f"{names} {verb} one run only on {_where(single['problem'], problems)}: no interval, no test; use --repeats."
    if len(problems) == 1:
        yield f"With one problem nothing can be said about others than {problems[0]}."
    left = sorted(set(strategies) - set(scores.whole.columns)), sorted(set(problems) - set(scores.whole.index))
    for names, noun in zip(left, ("strategy", "problem"), strict=True):
        if names:
            yield f"Not every strategy ran on every problem: means over problems leave out the {noun} {words.listed(names)}."


def _where(some: Iterable[str], every: Iterable[str]) -> str:
    names = sorted(set(some))
    return "any problem" if len(names) == len(set(every)) > 1 else words.listed(names)


def _power(judgement: Judgement) -> Iterator[str]:
    overall, table = judgement.overall, judgement.scores.table
    if overall is None or table.shape[1] < 2:
        return
    if len(table) > 1 and not overall.testable and np.isfinite(overall.reachable):
        count = overall.pairs["p"].notna().sum()
        needed = _smallest(lambda n: 2.0 ** (1 - n) * count)
        yield (
            f"{len(table)} problems are too few for a test over problems: corrected for {words.counted(count, 'pair')}, p "
            f"cannot fall below {min(1, overall.reachable):.2g}; {needed} problems would do."
        )
    weak: dict[tuple[float, int], list[str]] = defaultdict(list)
    for problem, contest in judgement.problems.items():
        if np.isfinite(contest.reachable) and not contest.testable:
            weak[round(min(1, contest.reachable), 4), int(contest.pairs["p"].notna().sum())].append(problem)
    for (reachable, count), problems in weak.items():
        needed = _smallest(lambda n, count=count: 2 / comb(2 * n, n) * count)  # type: ignore[misc]
        yield (
            f"On {_problems(problems)} no difference can be significant: with so few repeats and "
            f"{words.counted(count, 'pair')} p cannot fall below {reachable:.2g}; {needed} repeats would do."
        )


def _problems(names: list[str]) -> str:
    return words.listed(names, 4) if len(names) < 5 else f"each of {len(names)} problems"


def _smallest(p_value: Callable[[int], float]) -> int:
    return next(n for n in range(2, _MOST) if p_value(n) <= LEVEL)


def _budgets(records: list[Record], judgement: Judgement) -> Iterator[str]:
    by_problem: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_problem[record.problem].append(record)
    budgets = sorted({int(record.head["budget"]) for record in records})
    if len(budgets) > 1:
        yield (
            f"Runs have unequal budgets ({words.listed(f'{b:,}' for b in budgets)} evaluations). They are compared after "
            "equally many; a strategy that plans by its budget is at a disadvantage where a longer run is cut."
        )
    for problem, at in judgement.scores.at.items():
        budget = max(int(record.head["budget"]) for record in by_problem[problem])
        if at < budget:
            yield f"{problem} is compared after {at:,} evaluations, not {budget:,}: the shortest of its runs ends there."
    left = [r for r in records if r.evaluations and r.reach < judgement.scores.at[r.problem]]
    if left:
        names = words.listed(f"{r.strategy} on {r.problem}, seed {r.seed}" for r in left)
        yield f"{words.counted(len(left), 'unfinished run')} too short to be compared and left out: {names}."
    if any(record.ended == "time" for record in records):
        yield "Some runs ended because their time was up: how far they came depends on the machine."


def _values(records: list[Record], judgement: Judgement) -> Iterator[str]:
    means = judgement.scores.means
    if not len(means):
        return
    tops = means.groupby("problem", sort=True)["best"].max()
    for names, what in (
        ([name for name, top in tops.items() if top == 0], "every candidate failed, so nothing is compared there"),
        ([name for name, top in tops.items() if 0 < top <= 1], "no strategy beats the default"),
    ):
        if names:
            yield f"On {words.listed(map(str, names))} {what}."
    noisy: dict[str, float] = defaultdict(float)
    for record in records:
        if record.noise > 0:
            noisy[record.problem] = max(noisy[record.problem], record.noise)
    if noisy:
        names = words.listed(f"{name} (up to {_apart(most)})" for name, most in noisy.items())
        yield (
            f"Costs are noisy on {names}: one candidate evaluated twice differed by so much. The best of many noisy costs "
            "looks better than it is; measure the best candidates again before you rely on them."
        )


def _apart(most: float) -> str:
    return words.percent(1 + most) if np.isfinite(most) else "failing once and working once"
