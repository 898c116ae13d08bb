"""The lists of strategies and problems and the facts about one of them: as plain data and as printed tables."""

from __future__ import annotations

import contextlib
import inspect
import math
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.columns import Columns
from rich.console import Console
from rich.table import Column, Table

from ..core import options
from ..core.evaluation import default_value, told, working_baselines
from ..core.level import LEVEL
from ..core.problem import family_of
from ..core.space import Kind, count_text
from ..core.strategy import Strategy
from ..core.task import Structure
from ..errors import UserError, did_you_mean
from ..registry import Registry
from ..store.identity import BASELINES, BOUND, PUBLISHED_IN
from .tables import escape, fitting_table, wide_console


def strategies(registry: Registry) -> list[dict[str, str]]:
    """Return id, kind, description and what it sees of each strategy; variants are listed as one `id:NAME`."""
    known = _loadable(registry.strategies())
    return [
        _item("strategy", f"{name}:NAME" if found.has_variants else name, found) | {"sees": _sees(found)}
        for name, found in known
    ]


def _sees(strategy: type[Strategy]) -> str:
    return strategy.level.sees


def problems(registry: Registry) -> list[dict[str, str]]:
    """Return id, kind and a one-line description of each problem; `family:path` where a family reads files only."""
    items = []
    for family, found in _loadable(registry.families()):
        ids = [f"{family}/{instance}" for instance in found.instances] or [f"{family}:path"]
        items += [_item("problem", problem, found) for problem in ids]
    return items


def families(items: Iterable[Mapping[str, str]]) -> dict[tuple[str, str], list[str]]:
    """Return the ids of problems by their family and its description."""
    found: dict[tuple[str, str], list[str]] = {}
    for item in items:
        if item["kind"] == "problem":
            found.setdefault((family_of(item["id"]), item["what"]), []).append(item["id"])
    return found


def overview(registry: Registry) -> str:
    """Return what families and strategies say of themselves as two tables in Markdown, as README has them."""
    families = [
        {
            "family": f"`{name}`",
            "decision": found.decision,
            "cost": found.costs or found.unit,
            "extra": found.extra and f"`{found.extra}`",
        }
        for name, found in _loadable(registry.families())
    ]
    strategies = [
        {
            "strategy": f"`{name}:…`" if found.has_variants else f"`{name}`",
            "idea": first_line(found).partition("; `show ")[0].removesuffix("."),
            "sees": _levels(found),
        }
        for name, found in _loadable(registry.strategies())
    ]
    return "\n".join([*markdown_table(families), "", *markdown_table(strategies)])


def _levels(strategy: type[Strategy]) -> str:
    """Return the level of a strategy, or those of its variants as far as their libraries are installed."""
    levels = set()
    for name in strategy.variants():
        with contextlib.suppress(UserError):
            levels.add(strategy.variant(name).level)
    return " or ".join(level.word for level in sorted(levels or {strategy.level}))


def markdown_table(rows: Iterable[Mapping[str, str]]) -> list[str]:
    """Return the lines of a table in Markdown; rows that differ only in the first cell are one row."""
    named: dict[tuple[str, ...], str] = {}
    for row in rows:
        first, *others = row.values()
        named[tuple(others)] = " ".join(filter(None, (named.get(tuple(others)), first)))
    cells = [[*row], ["---"] * len(row), *((first, *others) for others, first in named.items())] if named else []
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in each).replace("  ", " ") + " |" for each in cells]


def _loadable(known: Mapping[str, Callable[[], Any]]) -> Iterator[tuple[str, Any]]:
    """Yield the classes that can be imported; report the others on standard error."""
    for name, load in sorted(known.items()):
        try:
            yield name, load()
        except UserError as error:
            print(f"left out: {error}", file=sys.stderr)


def _item(kind: str, name: str, found: type) -> dict[str, str]:
    return {"id": name, "kind": kind, "what": first_line(found)}


def first_line(found: type) -> str:
    """Return the first line of a class's docstring."""
    return (found.__doc__ or "").strip().partition("\n")[0]


def facts(registry: Registry, name: str) -> dict[str, Any]:
    """Return the facts about a strategy or a problem by its id.

    Raises:
      UserError: there is no strategy and no problem with that id.
    """
    known, families = registry.strategies(), registry.families()
    owner = name.partition(":")[0]
    if name in known or (owner in known and known[owner]().has_variants):
        return _strategy_facts(registry, name)
    if "/" in name or ":" in name or name in families:
        return _problem_facts(registry, name)
    raise UserError(f"there is no strategy or problem {name!r}.{did_you_mean(name, [*known, *families])}")


def _strategy_facts(registry: Registry, name: str) -> dict[str, Any]:
    loaders = registry.strategies()
    found = loaders[name]() if name in loaders else registry.strategy(name)
    known: dict[str, Any] = {
        "id": name,
        "what": inspect.getdoc(found) or "",
        "sees": _sees(found),
        LEVEL: found.level.word,
    }
    if found.has_variants:
        return {**known, "names": [f"{name}:{variant}" for variant in found.variants()]}
    return {**known, "options": options.describe(found.Options)}


def _problem_facts(registry: Registry, name: str) -> dict[str, Any]:
    problem = registry.problem(name)
    space, structure = problem.space, told(problem, "structure", Structure | None)
    kinds = {kind.name.lower(): int((space.kinds == kind).sum()) for kind in Kind if (space.kinds == kind).any()}
    return {
        "id": name,
        "what": inspect.getdoc(type(problem)) or "",
        "parameters": len(space),
        "kinds": kinds,
        "candidates": space.cardinality,
        "log10_candidates": round(math.log10(space.cardinality), 3),
        "default": default_value(problem),
        "unit": problem.unit,
        "optimum": problem.optimum,
        **({} if problem.bound is None else {BOUND: problem.bound}),
        "interactions": None if structure is None else len(structure.neighbours) // 2,
        "declares": _declared(structure, len(problem.statistics) > 0),
        "fingerprint": told(problem, "fingerprint", str),
        **{str(name): fact for name, fact in told(problem, "facts", Mapping).items()},
        BASELINES: working_baselines(problem),
        **({PUBLISHED_IN: problem.published_in} if problem.published_in else {}),
    }


def _declared(structure: Structure | None, tells: bool) -> str:
    """Return what a structure says of the parameters and parts, beside their features, and whether compiling tells."""
    compiled = ["what compiling tells"] if tells else []
    if structure is None:
        return compiled[0] if compiled else "nothing"
    parts = structure.parts
    said = {
        "interactions": len(structure.neighbours) > 0,
        "a computation graph": structure.graph is not None,
        "passes": structure.passes is not None,
        "parts": parts is not None,
        "estimates of parts": parts is not None and parts.estimate is not None,
        "a capacity": structure.capacity is not None,
    }
    return ", ".join([name for name, is_said in said.items() if is_said] + compiled) or "features"


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
