"""Tables of strategies, problems and studies, and the facts about one of them, on standard output."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.columns import Columns
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from ..core.level import LEVEL
from ..core.space import count_text
from ..store.identity import BASELINES, BOUND, PUBLISHED_IN
from .tables import fitting_table, wide_console

_COMPARED = (BASELINES, BOUND, PUBLISHED_IN)
"""Facts that are not printed with the others but in a table of their own."""


def _table(*names: str) -> Table:
    return Table(*(Column(name, overflow="fold") for name in names))  # nothing is cut off


def list_table(items: Sequence[dict[str, str]]) -> None:
    """Print strategies, one line each."""
    table = _table("strategy", "sees", "what it does")
    for item in items:
        table.add_row(escape(item["id"]), escape(item["sees"]), escape(item["what"]))
    if items:
        wide_console().print(table)


def family_table(families: Mapping[tuple[str, str], Sequence[str]], in_full: bool) -> None:
    """Print families of problems, one line each; in full: every id, in columns on a terminal."""
    console = wide_console()
    for (family, what), ids in families.items() if in_full else ():
        print(reflowed(f"{family}: {what}", console.width))
        shown = Columns(map(escape, ids), padding=(0, 2)) if console.is_terminal else "\n".join(map(escape, ids))
        console.print(shown, highlight=False, soft_wrap=not console.is_terminal)
    if in_full:
        return
    table = _table("family", "problems", "what is decided")
    for (family, what), ids in families.items():
        table.add_row(escape(family), f"{len(ids):,}", escape(what))
    if families:
        console.print(table)
        print(
            "`list FAMILY` names the problems of a family, `show ID` describes one, `list studies` shows your results"
        )


def study_table(found: Sequence[dict[str, Any]], results: Path) -> None:
    """Print stored studies, one line each."""
    if not found:
        print(f"there are no studies in {results} yet; `run` makes one")
        return
    console = wide_console()
    console.print(
        fitting_table(list(map(_cells, found)), ("budget", "strategies", "problems"), console.width, f"in {results}")
    )


def _cells(study: Mapping[str, Any]) -> dict[str, str]:
    return {
        "study": study["study"],
        "problems": _few(study["problems"]),
        "strategies": _few(study["strategies"]),
        "runs done": f"{study['done']:,} of {study['runs']:,}",
        "budget": "" if study["budget"] is None else f"{study['budget']:,}",
        "last change (UTC)": study["changed"][:16].replace("T", " "),
    }


def _few(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{len(names):,}"


def fact_table(facts: dict[str, Any]) -> None:
    """Print the id and the description, then the other facts by name; options get a table of their own."""
    console = wide_console()
    print(f"{facts['id']}\n\n{reflowed(facts['what'], min(console.width, 100))}\n")
    table = Table(show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, fact in facts.items():
        if name not in ("id", "what", "options", "log10_candidates", LEVEL, *_COMPARED):  # some are for programs
            table.add_row(escape(name.replace("_", " ")), escape(_text(fact)))
    console.print(table)
    _baseline_table(facts, console)
    options = _table("option", "type", "default", "meaning")
    for option in facts.get("options", []):
        options.add_row(*(escape(str(option[key])) for key in ("name", "type", "default", "help")))
    if options.row_count:
        console.print(options)


def _baseline_table(facts: Mapping[str, Any], console: Console) -> None:
    """Print what a problem knows to compare with, lowest cost first, and by how much its default costs more."""
    known = dict(facts.get(BASELINES, {}))
    least = next((name for name in ("optimum", BOUND) if facts.get(name) is not None), None)
    known |= {least: facts[least]} if least else {}
    table = _table("to compare with", "cost", "gap of the default")
    for name, cost in sorted(known.items(), key=lambda item: item[1]):
        gap = f"{100 * (facts['default'] / cost - 1):+,.2f} %" if cost > 0 else "-"
        table.add_row(escape(name), f"{cost:,.0f}" if float(cost).is_integer() else f"{cost:.6g}", gap)
    if known:
        console.print(table)
    if PUBLISHED_IN in facts:
        console.print(f"published in: {escape(facts[PUBLISHED_IN])}", highlight=False)


def reflowed(text: str, width: int) -> str:
    """Return a docstring wrapped to a width; bullets keep their lines, and indented commands are not wrapped."""
    blocks: list[str] = []
    for line in re.split(r"^(?:Args|Attributes):$", text, flags=re.MULTILINE)[0].strip().splitlines():
        starts = not line.strip() or line.lstrip().startswith("- ") or not blocks or not blocks[-1]
        if starts or _is_command(blocks[-1]):
            blocks.append(line.rstrip())
        else:
            blocks[-1] += f" {line.strip()}"
    return "\n".join(block if _is_command(block) else _wrapped(block, width) for block in blocks)


def _is_command(block: str) -> bool:
    return block.startswith("    ") and not block.lstrip().startswith("- ")


def _wrapped(block: str, width: int) -> str:
    indent = re.match(r" *(?:- )?", block)
    margin = " " * len(indent[0] if indent else "")
    return textwrap.fill(block, width, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False)


def _text(fact: Any) -> str:  # noqa: ANN401 - problems add facts of any type
    if fact is None:
        return "unknown"
    if isinstance(fact, list):
        return ", ".join(map(str, fact))
    if isinstance(fact, dict):
        return ", ".join(f"{value:,} {name}" for name, value in fact.items())
    if isinstance(fact, int) and not isinstance(fact, bool):
        return count_text(fact)
    return f"{fact:.6g}" if isinstance(fact, float) else str(fact)
