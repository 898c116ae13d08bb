"""Tables for people, on standard output."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

_CONSOLE = Console(soft_wrap=False)
_SINGLE_BREAK = re.compile(r"(?<!\n)\n(?!\n)")


def _print(table: Table) -> None:
    console = _CONSOLE if _CONSOLE.is_terminal else Console(width=max(_CONSOLE.width, 140))
    console.print(table)


def summary_table(summaries: Sequence[dict[str, Any]]) -> None:
    """Print one line a run: how much better than the default, from how many evaluations, in what time."""
    table = Table(caption="speedup: cost of the compiler's default / best cost found; higher is better")
    for name in ("problem", "strategy", "seed"):
        table.add_column(name, justify="right" if name == "seed" else "left")
    for name in ("evaluations", "unique", "failed", "default", "best", "speedup", "strategy s", "evaluation s"):
        table.add_column(name, justify="right")
    for s in summaries:
        counts = [f"{s[key]:,}" for key in ("evaluations", "unique", "failed")]
        best = "-" if s["best"] is None else f"{s['best']:.6g}"
        speedup = "-" if s["speedup"] is None else f"{s['speedup']:.4f}"
        times = [f"{s[key]:.2f}" for key in ("strategy_seconds", "evaluation_seconds")]
        strategy = s["strategy"] + (" *" if s["uses_structure"] else "")
        texts = [s["problem"], strategy, str(s["seed"]), *counts, f"{s['default']:.6g}", best, speedup, *times]
        table.add_row(*map(escape, texts))
    if any(s["uses_structure"] for s in summaries):
        table.caption = f"{table.caption}; * uses the declared structure"
    _print(table)


def list_table(items: Sequence[dict[str, str]]) -> None:
    """Print what there is, one line each."""
    table = Table("id", "kind", "what")
    for item in items:
        table.add_row(*map(escape, (item["id"], item["kind"], item["what"])))
    _print(table)


def fact_table(facts: dict[str, Any]) -> None:
    """Print facts by name; options become a table of their own."""
    table = Table(show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, fact in facts.items():
        if name != "options":
            table.add_row(escape(name.replace("_", " ")), escape(_text(fact)))
    _print(table)
    options = Table("option", "type", "default", "meaning")
    for option in facts.get("options", []):
        options.add_row(*(escape(str(option[key])) for key in ("name", "type", "default", "help")))
    if options.row_count:
        _print(options)


def _text(fact: Any) -> str:  # noqa: ANN401 - whatever a problem wants to say
    if fact is None:
        return "unknown"
    if isinstance(fact, dict):
        return ", ".join(f"{value:,} {name}" for name, value in fact.items())
    if isinstance(fact, int) and not isinstance(fact, bool):
        return f"{fact:,}" if fact < 10**15 else f"about 10^{len(str(fact)) - 1}"
    return f"{fact:.6g}" if isinstance(fact, float) else _SINGLE_BREAK.sub(" ", str(fact))
