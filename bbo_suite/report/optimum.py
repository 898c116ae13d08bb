"""What is known of a problem: baselines, its optimum, and in an enumerated space what random search finds."""

from __future__ import annotations

import time
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from ..core.enumeration import Enumeration
from ..core.evaluation import evaluate
from ..core.problem import Problem
from ..errors import UserError
from ..registry import Registry
from ..scores import NEAR, OverRandom, Scores, over_random_search
from ..stats import bootstrap_interval, fraction_of_optimum, resampled_interval
from ..store.identity import PUBLISHED_IN, known_speedups
from ..store.results import RunResult
from ..supervised import LiveProblem
from . import formatting, table
from .drawings import Picture, drawing
from .limits import Limit
from .table import Cell, Table, marked


def baselines(scores: Scores) -> Table:
    """Return each baseline and known optimum or bound with its speedup, and how many runs are better."""
    rows, sources = [], []
    for problem in scores.cutoffs:
        runs = [run for run in scores.compared if run.problem == problem]
        sources += list(dict.fromkeys(f"{problem}: {known}." for run in runs if (known := run.head.get(PUBLISHED_IN))))
        for name, speedup in sorted(_known(runs).items(), key=lambda item: -item[1]):
            found = [scores.speedup(run) for run in runs]
            best, better = max(found), sum(value > speedup for value in found)
            cells = [table.text(problem), table.text(name), table.speedup(speedup), table.speedup(best)]
            gap = speedup / best - 1 if best > 0 else np.nan
            text = f"{100 * gap:+,.2f} %" if best > 0 else "–"
            share = table.number(better / len(found), f"{better} of {len(found)}")
            rows.append([*cells, table.number(gap, text), share])
    columns = ["problem", "baseline", "its speedup", "best run", "gap of the best run", "runs that are better"]
    note = f"{_BASELINES} Published: {' '.join(sources)}" if sources else _BASELINES
    return Table("baselines", "Baselines that the problems know", note, columns, rows)


_BASELINES = """Speedup over the compiler's default. As stored at the start of the first run that knows them; a baseline
need not be in the space that was searched, and no candidate is better than a bound. Gap: by how much the best run costs
more than the baseline; less than 0 if it costs less. On a problem with published results this says more than the
speedup."""


def _known(runs: list[RunResult]) -> dict[str, float]:
    return next((known for run in runs if (known := known_speedups(run.head))), {})


_LARGEST, _SECONDS, _CHUNK = 200_000, 10.0, 4096
_CANDIDATES, _DRAWN = 20, 9
"""Candidates that a space must have for a picture, and pictures of spaces at most."""


def whole_space(run: RunResult, registry: Registry) -> NDArray[np.float64] | None:
    """Return the cost of every candidate of a run's problem, or None if there are too many or they cannot be evaluated.

    Only for problems that declare their optimum, are small, have not changed, and drive no real compiler. A failed
    candidate gets the highest cost of those that work.
    """
    problem = _small(run, registry)
    costs = None if problem is None else _evaluated(problem)
    if costs is None or not np.isfinite(costs).any():
        return None
    return np.where(np.isfinite(costs), costs, costs[np.isfinite(costs)].max())


def spaces(scores: Scores, registry: Registry) -> Iterator[Picture]:
    """Yield what each space looks like whose candidates are all known."""
    from ..figures.space import PARAMETERS, Sample, draw

    firsts = {run.problem: run for run in scores.compared if run.head.get("optimum") is not None}.values()
    problems = [problem for run in firsts if (problem := _small(run, registry)) and len(problem.space) <= PARAMETERS]
    for place, problem in enumerate(problems[:_DRAWN]):
        costs = _evaluated(problem)
        works = np.isfinite(costs) if costs is not None else np.zeros(0, bool)
        if costs is None or works.sum() < _CANDIDATES or costs[works].min() <= 0:
            continue
        configs = Enumeration(problem.space, np.random.default_rng(0)).rows(0, len(costs))
        found = Sample(configs[works], costs[works], int((~works).sum()), whole=True)
        drawn = drawing(draw(problem, found)[0], f"space{place}.")
        yield Picture(f"What does the space of {problem.id} look like?", (drawn,))


def _small(run: RunResult, registry: Registry) -> Problem | None:
    """Return the problem of a run if all of its candidates can be evaluated."""
    try:
        problem = registry.problem(str(run.head["problem"]))
        same = problem.fingerprint() == run.head["fingerprint"]
    except UserError:
        return None
    if not same or problem.optimum is None or isinstance(problem, LiveProblem) or problem.space.cardinality > _LARGEST:
        return None
    return problem


@lru_cache(maxsize=16)
def _evaluated(problem: Problem) -> NDArray[np.float64] | None:
    order, started, parts = Enumeration(problem.space, np.random.default_rng(0)), time.monotonic(), []
    for start in range(0, order.length, _CHUNK):
        if time.monotonic() - started > _SECONDS:
            return None
        try:
            parts.append(evaluate(problem, order.rows(start, start + _CHUNK)).values)
        except UserError:
            return None
    return np.concatenate(parts)


def optima(scores: Scores, registry: Registry) -> tuple[Table, list[Limit]]:
    """Return how close each strategy came, and which problems lack a known optimum or an exact random baseline."""
    rows: list[list[Cell]] = []
    found: dict[str, dict[str, NDArray[np.float64]]] = {}
    known = [run for run in scores.compared if run.head.get("optimum") is not None]
    for problem, group in groupby(known, key=lambda run: run.problem):
        of_problem = list(group)
        costs = whole_space(of_problem[0], registry)
        found |= {} if costs is None else {problem: {}}
        for strategy, own in groupby(of_problem, key=lambda run: run.strategy):
            runs = list(own)
            over = None if costs is None else over_random_search(runs, scores.cutoffs[problem], costs)
            if over is not None:
                found[problem][strategy] = over.score
            cells = _row(runs, scores.cutoffs[problem], over)
            rows.append([table.text(problem), marked(scores, strategy), *cells])
    rows += _over_problems(scores, list(found.values()))
    return Table("optima", "Known optima", _NOTE, _COLUMNS, rows), list(_unknown(scores, known, found))


def _unknown(scores: Scores, known: Sequence[RunResult], enumerated: Container[str]) -> Iterator[Limit]:
    unknown = sorted(set(scores.cutoffs) - {run.problem for run in known})
    if unknown:
        text = f"The optimum of {_some(unknown)} is unknown, and so is the remaining gain."
        yield Limit("unknown optimum", tuple(unknown), text)
    if others := [problem for problem in dict.fromkeys(run.problem for run in known) if problem not in enumerated]:
        text = (
            f"The space of {_some(others)} is not enumerated here, so there is no exact baseline of random "
            "search: compare with runs of the strategy random."
        )
        yield Limit("no random baseline", tuple(others), text)


_COLUMNS = [
    "problem",
    "strategy",
    "runs that found it",
    "fraction of optimum (95 %)",
    "over random, at the end (95 %)",
    "over random, score (95 %)",
    "score until",
]
_NOTE = f"""Fraction of optimum: optimal cost / best cost found; 1 is the optimum. Over random: the improvement over
random search without repeats, whose expected best is exact because every cost of the space is known. 0 is as good as
random search, 1 is the optimum, below 0 is worse (Willemsen et al. 2024); for both, a failed candidate has the highest
cost of those that work. Score: the mean over the evaluations until random search is expected to have closed
{NEAR:.0%} of the gap between the median cost and the optimum, or until the end; over several problems the mean of their
means, with runs resampled within each. A dash: the space is not enumerated, or random search is within .01 % of the
optimum by then."""


def _some(names: Sequence[str]) -> str:
    return formatting.listed(names, 5)


def _row(runs: Sequence[RunResult], at: int, over: OverRandom | None) -> Iterator[Cell]:
    optimum = float(runs[0].head["optimum"])
    best = np.array([run.best(at) for run in runs])
    found = int((best <= optimum).sum())
    yield table.number(found / len(runs), f"{found} of {len(runs)}")
    yield _interval(fraction_of_optimum(best, optimum))
    if over is None:
        yield from [_NONE] * 3
        return
    yield from (_interval(over.final), _interval(over.score), table.count(over.until))


def _over_problems(scores: Scores, found: Sequence[Mapping[str, NDArray[np.float64]]]) -> Iterator[list[Cell]]:
    """Yield the mean score of each strategy that has one on every enumerated problem, if these are several."""
    for strategy in sorted(set(found[0]).intersection(*found)) if len(found) > 1 else ():
        runs = [each[strategy] for each in found]
        if all(np.isfinite(own).all() for own in runs):
            low, high = bootstrap_interval(runs, _mean_of_means, np.random.default_rng(0))
            mean = float(_mean_of_means(runs))
            score = table.number(mean, f"{mean:.3f} ({low:.3f} to {high:.3f})")
            yield [table.text(f"mean of {len(found)}"), marked(scores, strategy), *[_NONE] * 3, score, _NONE]


def _mean_of_means(runs: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    return np.mean([own.mean(axis=-1) for own in runs], axis=0)


_NONE = table.number(np.nan, "–")


def _interval(values: NDArray[np.float64]) -> Cell:
    if not np.isfinite(values).all():
        return _NONE
    mean, low, high = resampled_interval(values)
    return table.number(mean, f"{mean:.3f}" if np.isnan(low) else f"{mean:.3f} ({low:.3f} to {high:.3f})")
