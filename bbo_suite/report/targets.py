"""The expected number of evaluations to reach targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ..stats import SMALLEST_GAIN, SMALLEST_GAIN_TEXT, expected_running_time, first_hits
from ..store.results import RunResult
from . import table
from .per_problem import marked
from .scores import Scores
from .table import Cell, Table

SHARES = (0.5, 0.9, 0.99)
"""Targets, as fractions of the largest gain of any run."""


def hits(runs: Sequence[RunResult], targets: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the `(runs, targets)` evaluations at which each run first reaches each target cost; inf if it does not."""
    found = np.full((len(runs), len(targets)), np.inf)
    for row, run in zip(found, runs, strict=True):
        if len(run.costs):
            places = first_hits(run.costs[None], targets)[0]
            reached = np.isfinite(places)
            row[reached] = run.steps[places[reached].astype(int) - 1]
    return found


def running_times(scores: Scores) -> Table:
    """Return the expected running time to each target, one row per problem and strategy."""
    rows = []
    for problem in scores.cutoffs:
        started = scores.started(problem)
        best = max(run.speedup(run.evaluations) for runs in started.values() for run in runs)
        if SMALLEST_GAIN <= best - 1 < np.inf:
            for strategy, runs in started.items():
                targets = float(runs[0].head["default"]) / (1 + np.array(SHARES) * (best - 1))
                cells = _running_times(runs, targets)
                rows.append([table.text(problem), marked(scores, strategy), table.speedup(best), *cells])
    columns = [
        "problem",
        "strategy",
        "best speedup of any run",
        *(f"{100 * share:.0f} % of its gain" for share in SHARES),
    ]
    return Table("times", "Evaluations to reach a target", _TIMES, columns, rows)


_TIMES = f"""Expected running time (ERT): evaluations to reach the target with restarts, that is, the evaluations of all
runs before the target / the number of runs that reached it; in brackets how many runs did. Fewer is better; a dash:
no run reached it. A target is a fraction of the largest gain over the default of any run in this study. Problems on
which no run beats the default by {SMALLEST_GAIN_TEXT} or more are left out."""


def _running_times(runs: Sequence[RunResult], targets: NDArray[np.float64]) -> Iterator[Cell]:
    reached = hits(runs, targets)
    expected = expected_running_time(reached, [run.evaluations for run in runs])
    for time, number in zip(expected, np.isfinite(reached).sum(axis=0), strict=True):
        text = f"{time:,.0f} ({number}/{len(runs)})" if np.isfinite(time) else f"– (0/{len(runs)})"
        yield table.number(time, text)
