"""The lists of strategies and problems, and the facts about one of them, as plain data."""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ..core import options
from ..core.evaluation import default_value, working_baselines
from ..core.level import LEVEL
from ..core.space import Kind
from ..core.strategy import Strategy
from ..errors import UserError, did_you_mean
from ..registry import Registry
from ..store.identity import BASELINES, BOUND, PUBLISHED_IN


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
            found.setdefault((re.split("[:/]", item["id"])[0], item["what"]), []).append(item["id"])
    return found


def _loadable(known: Mapping[str, Callable[[], Any]]) -> Iterator[tuple[str, Any]]:
    """Yield the classes that can be imported; report the others on standard error."""
    for name, load in sorted(known.items()):
        try:
            yield name, load()
        except UserError as error:
            print(f"left out: {error}", file=sys.stderr)


def _item(kind: str, name: str, found: type) -> dict[str, str]:
    return {"id": name, "kind": kind, "what": (found.__doc__ or "").strip().partition("\n")[0]}


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
    space, structure = problem.space, problem.structure()
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
        "fingerprint": problem.fingerprint(),
        **problem.facts(),
        BASELINES: working_baselines(problem),
        **({PUBLISHED_IN: problem.published_in} if problem.published_in else {}),
    }
