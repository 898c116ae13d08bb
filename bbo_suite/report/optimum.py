"""How near the optimum, where it is known, and how far beyond random search, where the whole space is."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from ..core.enumeration import Enumeration
from ..core.evaluation import evaluate
from ..core.problem import Problem
from ..errors import UserError
from ..registry import Registry
from ..stats import expected_best, fraction_of_optimum, mean_interval, over_random
from ..supervised import LiveProblem
from . import formatting, table
from .per_problem import marked
from .run_summary import RunSummary
from .scores import Scores
from .table import Cell, Table

_LARGEST, _SECONDS, _CHUNK = 200_000, 10.0, 4096
_POINTS = 50


def whole_space(record: RunSummary, registry: Registry) -> NDArray[np.float64] | None:
    """Return the cost of every candidate of a run's problem, None where that is too much or cannot be had.

    Only of problems that declare their optimum, are small, are still the same, and drive no real compiler; a failed
    candidate counts as the costliest that works.
    """
    try:
        problem = registry.problem(str(record.head["problem"]))
        same = problem.fingerprint() == record.head["fingerprint"]
    except UserError:
        return None
    if not same or problem.optimum is None or isinstance(problem, LiveProblem) or problem.space.cardinality > _LARGEST:
        return None
    costs = _evaluated(problem)
    if costs is None or not np.isfinite(costs).any():
        return None
    return np.where(np.isfinite(costs), costs, costs[np.isfinite(costs)].max())


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


def optima(scores: Scores, registry: Registry) -> tuple[Table, list[str]]:
    """Return how near each strategy came, and a sentence on each problem whose random baseline is not known exactly."""
    rows, notes, blind = [], [], []
    known = [record for record in scores.used if record.head.get("optimum") is not None]
    for problem, group in groupby(known, key=lambda record: record.problem):
        records = list(group)
        costs = whole_space(records[0], registry)
        if costs is None:
            blind.append(problem)
        for strategy, runs in groupby(records, key=lambda record: record.strategy):
            rows.append(
                [table.text(problem), marked(scores, strategy), *_row(list(runs), scores.cutoffs[problem], costs)]
            )
    unknown = sorted(set(scores.cutoffs) - {record.problem for record in known})
    if unknown:
        notes.append(f"The optimum is not known on {_some(unknown)}: how much is left to gain there is open.")
    if blind:
        notes.append(
            f"The space of {_some(blind)} is not enumerated here, so there is no exact random-search baseline: "
            "compare with runs of the strategy random."
        )
    return Table("optima", "Where the optimum is known", _NOTE, _COLUMNS, rows), notes


_COLUMNS = [
    "problem",
    "strategy",
    "runs that found it",
    "fraction of optimum (95 %)",
    "over random (95 %)",
    "over random, mean",
]
_NOTE = """Fraction of optimum: the optimum over the best cost found, 1 is the optimum. Over random: what is won over
random search without repeats, whose expected best is exact because every cost of the space is known. 0 is as good as
random, 1 is the optimum, below 0 is worse (Willemsen et al. 2024); a failed candidate counts as the costliest that
works, for both. At the end, and in the mean over the run. A dash:
the space is not enumerated, or random search has the optimum by then. * sees the structure."""


def _some(names: Sequence[str]) -> str:
    return formatting.listed(names, 5)


def _row(runs: list[RunSummary], at: int, costs: NDArray[np.float64] | None) -> Iterator[Cell]:
    optimum = float(runs[0].head["optimum"])
    best = np.array([run.best(at) for run in runs])
    found = int((best <= optimum).sum())
    yield table.number(found / len(runs), f"{found} of {len(runs)}")
    yield _interval(fraction_of_optimum(best, optimum))
    if costs is None:
        yield from (table.number(np.nan, "–"), table.number(np.nan, "–"))
        return
    budgets = np.unique(np.linspace(1, at, min(at, _POINTS)).astype(int))
    random = expected_best(costs, budgets)
    curves = np.array([[run.best(int(n)) for n in budgets] for run in runs])
    curves[np.isfinite(best)] = np.minimum(curves[np.isfinite(best)], costs.max())  # as for random search
    over = np.array([over_random(curve, random, optimum) for curve in curves])
    yield _interval(over[:, -1])
    useful = np.isfinite(over)
    yield _interval(
        np.array([row[keep].mean() if keep.any() else np.nan for row, keep in zip(over, useful, strict=True)])
    )


def _interval(values: NDArray[np.float64]) -> Cell:
    if not np.isfinite(values).all():
        return table.number(np.nan, "–")
    mean, low, high = mean_interval(values)
    return table.number(mean, f"{mean:.3f}" if np.isnan(low) else f"{mean:.3f} ({low:.3f} to {high:.3f})")
