"""Tables on standard output."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .durations import duration

if TYPE_CHECKING:
    from ..tuning.tune import Tuning, TuningResult

_SPARE = ("evaluation s", "strategy s", "failed", "unique", "default", "best", "evaluations", "seed")
"""The columns of the summary that are left out on a narrow terminal, in this order."""


@contextmanager
def reserved(wanted: bool) -> Iterator[None]:
    """Keep standard output for the command: what plugins and compilers print goes to standard error."""
    if not wanted:
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)  # also for child processes and C libraries
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def wide_console() -> Console:
    """Return a console with the terminal's width; at least 160 characters for a file."""
    console = Console()
    return console if console.is_terminal else Console(width=max(console.width, 160))


def summary_table(summaries: Sequence[dict[str, Any]]) -> None:
    """Print one line per run with its speedup, evaluations and time."""
    console, lines = wide_console(), [_cells(summary) for summary in summaries]
    names = _fitting(lines, console.width)
    table = Table(caption="speedup: cost of the compiler's default / best cost found; higher is better")
    for name in names:
        left = name in ("problem", "strategy")
        table.add_column(name, justify="left" if left else "right", overflow="fold", no_wrap=not left)
    for line in lines:
        table.add_row(*(escape(line[name]) for name in names))
    if any(s["uses_structure"] for s in summaries):
        table.caption = f"{table.caption}; * uses the declared structure"
    if any(s["ended"] == "covered" for s in summaries):
        table.caption = f"{table.caption}; covered: no candidate was left to try"
    if len(names) < len(lines[0]):
        table.caption = f"{table.caption}; a wider terminal shows more columns"
    console.print(table)


def _cells(s: dict[str, Any]) -> dict[str, str]:
    counts = {key: f"{s[key]:,}" for key in ("evaluations", "unique", "failed")}
    counts["evaluations"] += " covered" if s["ended"] == "covered" else ""
    strategy = s["strategy"] + (" *" if s["uses_structure"] else "")
    return {
        **{"problem": s["problem"], "strategy": strategy, "seed": str(s["seed"]), **counts},
        "default": f"{s['default']:.6g}",
        "best": "-" if s["best"] is None else f"{s['best']:.6g}",
        "speedup": "-" if s["speedup"] is None else f"{s['speedup']:.4f}",
        "strategy s": f"{s['strategy_seconds']:.2f}",
        "evaluation s": f"{s['evaluation_seconds']:.2f}",
    }


def _fitting(lines: Sequence[dict[str, str]], width: int) -> list[str]:
    """Return the columns to show; spare columns are dropped until the rest fits."""
    names, space = list(lines[0]), {}
    for name in names:
        space[name] = 3 + max(cell_len(text) for text in (name, *(line[name] for line in lines)))
    for spare in _SPARE:
        if 1 + sum(space[name] for name in names) > width:
            names.remove(spare)
    return names


def plan_table(items: Sequence[dict[str, Any]], jobs: int) -> None:
    """Print the amount of work in a plan: one line per strategy and problem, the total, and how long it will take."""
    table = Table(caption="time: one run after another, estimated; stored MB: at the full budget")
    for name in ("problem", "strategy", "runs", "done", "parameters", "evaluations", "stored MB", "time"):
        table.add_column(name, justify="left" if name in ("problem", "strategy") else "right", overflow="fold")
    for item in items:
        counts = (f"{item[key]:,}" for key in ("runs", "done", "parameters", "evaluations"))
        table.add_row(escape(item["problem"]), escape(item["strategy"]), *counts, *_size(item))
    runs, done, evaluations, size, seconds = (
        sum(item[key] for item in items) for key in ("runs", "done", "evaluations", "bytes", "seconds")
    )
    table.add_section()
    total = {"bytes": size, "seconds": seconds}
    table.add_row("total", "", f"{runs:,}", f"{done:,}", "", f"{evaluations:,}", *_size(total))
    wide_console().print(table)
    at_once = max(1, min(jobs, runs - done))
    longest = max((item["seconds"] / max(1, item["runs"] - item["done"]) for item in items), default=0.0)
    print(f"{runs - done:,} runs to do, {at_once} at a time: about {duration(max(seconds / at_once, longest))}")


def _size(item: Mapping[str, Any]) -> tuple[str, str]:
    return f"{item['bytes'] / 1e6:,.1f}", duration(item["seconds"])


def tuning_table(plan: Tuning, result: TuningResult) -> None:
    """Print the tuned setting next to the shipped defaults, and the command that uses it."""
    from ..tuning.tune import changed, option_text

    table = Table("problem", "shipped defaults", "tuned")
    for problem, gain in result.shipped.items():
        table.add_row(escape(problem), f"{math.exp(gain):.4f}", f"{math.exp(result.tuned[problem]):.4f}")
    seeds = f"{2 * plan.repeats} fresh seeds"
    table.caption = f"speedup after {plan.budget:,} evaluations, geometric mean of {seeds}; higher is better"
    console, setting = wide_console(), changed(result)
    console.print(table)
    print(f"score: {result.score:.4f} in the search, {result.fresh_score:.4f} on {seeds}; the shipped defaults score 1")
    if not setting or result.fresh_score <= 1:
        print(f"keep the shipped defaults: none of {plan.trials} settings is better")
        return
    options = " ".join(f"--option {plan.strategy}.{text}" for text in option_text(setting).split(" "))
    print(f"python -m bbo_suite run --strategy {plan.strategy} {options}")
