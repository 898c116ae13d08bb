"""The rules that every problem with passes must follow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.evaluation import evaluate
from ..core.multipass import Decisions, MultiPass
from ..core.problem import Problem

Load = Callable[[], Problem]
_SAMPLES = 8


def _passes(problem: Problem) -> MultiPass | None:
    structure = problem.structure()
    return structure.passes if structure else None


def _walk(passes: MultiPass, row: NDArray) -> Iterator[tuple[str, Any, Decisions]]:
    """Yield each pass with its graph and decisions; the caller may change the row before the next pass."""
    graph = passes.source
    for name in passes.passes:
        yield name, graph, passes.decisions(name, graph)
        graph = passes.apply(name, graph, row)


def decisions_fit(load: Load) -> None:
    """If it has passes, declares decisions that fit the flat space on every graph."""
    problem = load()
    passes, sizes = _passes(problem), problem.space.sizes
    if passes is None:
        return
    columns = np.concatenate([passes.columns(name) for name in passes.passes])
    assert np.array_equal(np.sort(columns), np.arange(len(sizes))), "a column belongs to no pass, or to two"
    for row in problem.space.sample(_SAMPLES, np.random.default_rng(0)):
        for name, graph, live in _walk(passes, row):
            assert live is passes.decisions(name, graph), (
                f"{name} returns a new object when asked again for the same decisions"
            )
            assert (np.diff(live.columns) > 0).all(), f"the columns of {name} do not ascend"
            assert np.isin(live.columns, passes.columns(name)).all(), f"{name} decides columns of another pass"
            assert ((live.sizes >= 1) & (live.sizes <= sizes[live.columns])).all(), f"sizes of {name} are out of range"
            chosen = passes.default(name, graph)
            assert ((chosen >= 0) & (chosen < live.sizes)).all(), f"the default of {name} is out of range"


def only_live_decisions_count(load: Load) -> None:
    """If it has passes, has costs that depend only on the decisions that apply to the graph."""
    problem = load()
    passes = _passes(problem)
    if passes is None:
        return
    rows = problem.space.sample(_SAMPLES, np.random.default_rng(0))
    clean = np.repeat(problem.default_row()[None], len(rows), axis=0)
    for row, copy in zip(rows, clean, strict=True):
        for _, _, live in _walk(passes, copy):
            copy[live.columns] = np.minimum(row[live.columns], live.sizes - 1)
    same = evaluate(problem, rows).values == evaluate(problem, clean).values
    assert same.all(), "a decision that does not apply to its graph, or a value beyond its size, changes a cost"


def passes_default(load: Load) -> None:
    """If it has passes, has the default that the passes choose one after another."""
    problem = load()
    passes = _passes(problem)
    if passes is None:
        return
    row = problem.default_row()
    for name, graph, live in _walk(passes, row):
        row[live.columns] = passes.default(name, graph)
    chosen, default = evaluate(problem, np.stack([row, problem.default_row()])).values
    assert chosen == default, f"the choices of the passes cost {chosen}, but the default costs {default}"


MULTIPASS_RULES = (decisions_fit, only_live_decisions_count, passes_default)
