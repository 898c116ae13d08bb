"""Evaluations to reach targets, and the measurements that each level of knowledge saves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.level import NOT_COUNTED, Level
from ..scores import Scores
from ..stats import SMALLEST_GAIN, SMALLEST_GAIN_TEXT, expected_running_time, first_hits
from ..store.results import RunResult
from . import table
from .judgement import BLACK_BOX, Judgement
from .table import Cell, Table, marked

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


@dataclass(frozen=True)
class Saving:
    """The best strategy of a level of knowledge on a problem.

    Attributes:
      evaluations: until its median run is as good as the median run of the best strategy that sees only costs is at the
        end; inf if it is not.
      reached, runs: how many of its runs are, and how many there are.
      saved: the evaluations which that strategy needed itself / `evaluations`; 1 for itself.
    """

    problem: str
    strategy: str
    level: Level
    evaluations: float
    reached: int
    runs: int
    saved: float


def levels(judgement: Judgement) -> list[Saving]:
    """Return the levels on each problem that has several, costs only first, where that gains something."""
    return [level for problem in judgement.problems for level in _on_problem(judgement, problem)]


def _on_problem(judgement: Judgement, problem: str) -> Iterator[Saving]:
    ranked = {group: judgement.problems[problem].ranked(names) for group, names in judgement.groups()}
    best = [names[0] for names in ranked.values() if names]
    if len(best) < 2 or not ranked[BLACK_BOX]:
        return
    scores, cutoff = judgement.scores, judgement.scores.cutoffs[problem]
    runs = {name: [run for run in scores.compared if (run.problem, run.strategy) == (problem, name)] for name in best}
    target = _median(np.array([run.best(cutoff) for run in runs[best[0]]]))
    default = float(runs[best[0]][0].head["default"])
    if target > 0 and default / target - 1 >= SMALLEST_GAIN:
        needed = {name: _hits(some, target, cutoff) for name, some in runs.items()}
        for name, own in needed.items():
            counts, saved = (int(np.isfinite(own).sum()), len(own)), _median(needed[best[0]]) / _median(own)
            yield Saving(problem, name, scores.levels[name], _median(own), *counts, saved)


def _hits(runs: Sequence[RunResult], target: float, cutoff: int) -> NDArray[np.float64]:
    found = hits(runs, np.array([target]))[:, 0]
    return np.where(found <= cutoff, found, np.inf)


def _median(values: NDArray[np.float64]) -> float:
    """Return the median, of an even number the upper one: the median run is a run."""
    return float(np.quantile(values, 0.5, method="higher"))


def savings(judgement: Judgement) -> Table:
    """Return what each level of knowledge saves, one row for each problem and level."""
    rows = [_row(judgement.scores, level) for level in levels(judgement)]
    columns = ["problem", "sees", "best strategy", "evaluations", "measurements saved"]
    return Table("savings", "Measurements that knowledge saves", _NOTE, columns, rows)


_NOTE = f"""Evaluations until the median run of the best strategy of each level of knowledge is as good as the median
run of the best strategy that sees only costs is at the end; in brackets how many runs are. Saved: that strategy's own
evaluations / these. A dash: the median run is never as good. Costs as the search measured them; {NOT_COUNTED}.
Problems on which only one level ran, or costs alone gain less than {SMALLEST_GAIN_TEXT}, are left out."""


def _row(scores: Scores, saving: Saving) -> list[Cell]:
    known = np.isfinite(saving.evaluations)
    count = f"{saving.evaluations:,.0f}" if known else "–"
    return [
        table.text(saving.problem),
        table.text(saving.level.sees),
        marked(scores, saving.strategy),
        table.number(saving.evaluations, f"{count} ({saving.reached}/{saving.runs})"),
        table.number(saving.saved, f"{saving.saved:.3g} ×" if known else "–"),
    ]


def sentences(judgement: Judgement) -> Iterator[str]:
    """Yield what each level saves: on the only problem, or over problems."""
    found = levels(judgement)
    references = [saving for saving in found if saving.level is Level.COSTS]
    for level in (Level.COMPILATION, Level.STRUCTURE, Level.PARTS):
        own = [saving for saving in found if saving.level is level]
        if len(own) == 1:
            yield _sentence(level, _on_one(own[0], references))
        elif own:
            yield _sentence(level, _on_several(own))


def _sentence(level: Level, what: str) -> str:
    return f"Measurements saved by {level.sees}: {what}; {NOT_COUNTED}."


def _on_one(level: Saving, references: Sequence[Saving]) -> str:
    other = next(each for each in references if each.problem == level.problem)
    then = f"as good as {other.strategy} (costs only) is after {other.evaluations:,.0f}"
    if not level.saved:
        return f"{level.strategy} never becomes {then}"
    return f"{level.strategy} is after {level.evaluations:,.0f} evaluations {then}"


def _on_several(own: Sequence[Saving]) -> str:
    factors = np.log([level.saved for level in own if level.saved])
    what = "the best strategy becomes as good as the best one that sees only costs"
    took = (
        f", which needs {np.exp(factors.mean()):.2g} times the evaluations there (geometric mean)"
        if len(factors)
        else ""
    )
    return f"on {len(factors)} of {len(own)} problems {what}{took}"
