"""Tables on standard output."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from typing import Any, TypeVar

from rich import markup
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from ..core.level import Level, explained
from ..core.quantities import ratio_name, ratio_text
from ..files.names import printable
from ..store.remeasured import ROUNDS

_Found = TypeVar("_Found")
_SPARE = ("evaluation s", "strategy s", "failed", "unique", "default", "best", "unit", "evaluations", "seed")
"""The columns of the summary that are left out on a narrow terminal, in this order."""
_TEXTS = ("problem", "strategy", "policy", "study", "problems", "strategies", "unit", "last change (UTC)")
"""The columns of text, which may be wrapped; others hold numbers."""


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


def each_reserved(
    found: Iterator[_Found], wanted: bool = True, shown: Callable[[], AbstractContextManager[object]] = nullcontext
) -> Iterator[_Found]:
    """Yield what an iterator does; standard output is reserved while it works, and free while the command prints.

    Args:
      shown: says something while it works.
    """
    while True:
        with reserved(wanted), shown():
            try:
                one = next(found)
            except StopIteration:
                return
        yield one


def console(error: bool = False, **options: Any) -> Console:  # noqa: ANN401 - those of rich
    """Return a console on standard output, or on standard error; it gets its own control characters to the terminal."""
    stream = sys.stderr if error else sys.stdout
    return Console(file=getattr(stream, "rich_proxied_file", stream), **options)


def escape(text: str) -> str:
    """Return a text from anywhere as rich can print it: without markup and control characters."""
    return markup.escape(printable(text))


def wide_console() -> Console:
    """Return a console with the terminal's width; at least 160 characters for a file."""
    here = console()
    return here if here.is_terminal else console(width=max(here.width, 160))


def summary_table(summaries: Sequence[dict[str, Any]]) -> None:
    """Print one line per run with its speedup, evaluations and time."""
    name = ratio_name(s["unit"] for s in summaries)
    console, caption = wide_console(), f"{name}: cost of the compiler's default / best cost found; higher is better"
    if marks := explained({Level.of(s) for s in summaries}):
        caption += f"; {marks}"
    if any(s["remeasured"] for s in summaries):
        caption += f"; of noisy problems the median of {ROUNDS} pairs with the default, measured after the search"
    if any(s["ended"] == "covered" for s in summaries):
        caption += "; covered: no candidate was left to try"
    if any(s["ended"] == "price" for s in summaries):
        caption += "; enough: more are not expected to be worth their price"
    console.print(fitting_table([_cells(summary, name) for summary in summaries], _SPARE, console.width, caption))


def _cells(s: dict[str, Any], ratio: str) -> dict[str, str]:
    counts = {key: "-" if s[key] is None else f"{s[key]:,}" for key in ("evaluations", "unique", "failed")}
    counts["evaluations"] += {"covered": " covered", "price": " enough"}.get(s["ended"], "")
    return {
        **{
            "problem": s["problem"],
            "strategy": Level.of(s).marked(s["strategy"]),
            "seed": str(s["seed"]),
            **counts,
        },
        "default": f"{s['default']:.6g}",
        "best": "-" if s["best"] is None else f"{_best(s):.6g}",
        "unit": s["unit"],
        ratio: ratio_text(s["speedup"]),
        "strategy s": f"{s['strategy_seconds']:.2f}",
        "evaluation s": f"{s['evaluation_seconds']:.2f}",
    }


def _best(s: dict[str, Any]) -> float:
    """Return the best cost; if it was measured again, the one that agrees with the speedup."""
    return float(s["default"] / s["speedup"] if s["remeasured"] and s["speedup"] else s["best"])


def fitting_table(lines: Sequence[Mapping[str, str]], spare: Sequence[str], width: int, caption: str) -> Table:
    """Return a table that fits a width: spare columns are dropped, in this order, until the others fit.

    Args:
      lines: text by column, all with the same columns.
    """
    names, space = list(lines[0]), {}
    for name in names:
        space[name] = 3 + max(cell_len(text) for text in (name, *(line[name] for line in lines)))
    for each in spare:
        if 1 + sum(space[name] for name in names) > width:
            names.remove(each)
    table = Table(caption=caption + ("; a wider terminal shows more columns" if len(names) < len(lines[0]) else ""))
    for name in names:
        is_text = name in _TEXTS
        table.add_column(name, justify="left" if is_text else "right", overflow="fold", no_wrap=not is_text)
    for line in lines:
        table.add_row(*(escape(line[name]) for name in names))
    return table
