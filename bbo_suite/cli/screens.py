"""The progress of a study as text, for a terminal or a file."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from ..core.quantities import duration
from ..store.run_view import RunState, RunView
from ..store.study_view import StudyView

MOST_RUNS = 12
"""The most runs that get a line of their own; runs without new rows for the longest time come first."""
WIDE = 160
"""Width in characters where there is no terminal."""


def screen(view: StudyView) -> RenderableType:
    """Return what `watch` shows."""
    runs, counts = view.runs, view.counts
    if not runs:
        return f"{escape(view.path.name)}: no run has started yet; the problems are being loaded"
    done, budget = sum(run.evaluations for run in runs), sum(map(_planned, runs))
    states = ", ".join(f"{counts[state]:,} {state.value}" for state in reversed(RunState) if counts[state])
    pace = f"{view.rate:,.0f} a second, {duration(view.seconds_left)} left"
    progress = "; stopped: run the same command to resume" if view.stopped else "" if view.over else f", {pace}"
    return Group(
        f"{escape(view.path.name)}: {len(runs):,} runs: {states}",
        f"{done:,}/{budget:,} evaluations ({done / max(1, budget):.0%}){progress}",
        _best(runs),
        "best speedup over all seeds so far: cost of the default / best cost; higher is better",
        *_lines(runs),
    )


def _planned(run: RunView) -> int:
    """Return the run's final number of evaluations; a run may end before its budget is spent."""
    return run.evaluations if run.ended else run.budget


def _best(runs: list[RunView]) -> Table:
    problems = dict.fromkeys(run.name.problem for run in runs)
    strategies = dict.fromkeys(run.name.strategy for run in runs)
    found: dict[tuple[str, str], list[float]] = {}
    for run in runs:
        found.setdefault(run.name[:2], []).extend([] if run.speedup is None else [run.speedup])
    table = Table()
    table.add_column("problem", overflow="fold")
    table.add_column("done", justify="right", no_wrap=True)
    for strategy in strategies:
        table.add_column(escape(strategy), justify="right", overflow="fold")
    for problem in problems:
        states = [run.state is RunState.DONE for run in runs if run.name.problem == problem]
        cells = (found.get((problem, strategy)) for strategy in strategies)
        table.add_row(
            escape(problem), f"{sum(states)}/{len(states)}", *(f"{max(cell):.4f}" if cell else "-" for cell in cells)
        )
    return table


def _lines(runs: list[RunView]) -> Iterator[str]:
    shown = [run for run in runs if run.state in (RunState.FAILED, RunState.SILENT, RunState.RUNNING)]
    shown.sort(key=lambda run: (run.state is not RunState.FAILED, -run.silence))
    for run in shown[:MOST_RUNS]:
        yield f"{escape(run.name.label)}: {run.evaluations:,}/{run.budget:,}, {_doing(run)}"
    if len(shown) > MOST_RUNS:
        yield f"... and {len(shown) - MOST_RUNS:,} more runs"


def _doing(run: RunView) -> str:
    best = "" if run.speedup is None else f"best {run.speedup:.4f}, "
    if run.state is RunState.FAILED:
        return f"failed: see {escape(str(run.path / 'error.txt'))}"
    if run.state is RunState.SILENT:
        return f"{best}no new rows for {duration(run.silence)}"
    if run.pairs:
        return f"{best}{run.pairs:,} pairs measured again"
    return f"{best}{duration(None if run.pace is None else run.pace * (run.budget - run.evaluations))} left"
