"""What a search needs that not every task declares: order, structure, a graph, a model. Messages name tasks that do."""

from __future__ import annotations

import numpy as np

from bbo_suite import Decomposition, Graph, Kind, Moves, Structure, Task, UserError

ORDERED = ("tile", "flags", "kernel", "gcc", "halide", "recorded", "scratchpad", "xla-tpu", "pallas", "triton")
WITH_STRUCTURE = ("fusion", "tile", "flags", "kernel", "layout", "joint", "sharding", "scratchpad", "halide", "xla-tpu")
WITH_GRAPH = ("fusion", "layout", "joint", "sharding", "scratchpad", "halide", "xla-tpu")
WITH_MODEL = ("fusion", "layout", "joint")
"""Families of problems, most tasks of which declare it; a test compares them with the problems."""


def check_order(task: Task, owner: str) -> None:
    """Check that the task has ordered parameters that can change.

    Raises:
      UserError: it has none.
    """
    if not (task.space.kinds[Moves(task.space).movable] == Kind.SCALE).any():
        raise UserError(f"{owner} steps along ordered parameters, and {task.problem} has none; {_others(ORDERED)}")


def structure_of(task: Task, owner: str) -> Structure:
    """Return what the task declares about its parameters.

    Raises:
      UserError: it declares nothing.
    """
    if task.structure is None:
        what = "needs the declared interactions of parameters"
        raise UserError(f"{owner} {what}, and {task.problem} declares none; {_others(WITH_STRUCTURE)}")
    return task.structure


def graph_of(task: Task, owner: str) -> tuple[Graph, np.ndarray]:
    """Return the task's graph, and the `(d,)` node that each parameter decides, or whose output it decides; -1: none.

    Raises:
      UserError: it declares no graph.
    """
    structure = task.structure
    if structure is None or structure.graph is None or (structure.nodes is None and structure.edges is None):
        what = "needs the computation graph that parameters decide on"
        raise UserError(f"{owner} {what}, and {task.problem} declares none; {_others(WITH_GRAPH)}")
    nodes = np.full(len(task.space), -1) if structure.nodes is None else structure.nodes.astype(np.int64)
    if structure.edges is not None:
        decides = (nodes < 0) & (structure.edges >= 0)
        nodes[decides] = structure.graph.edges[structure.edges[decides], 0]
    return structure.graph, nodes


def model_of(task: Task, owner: str) -> Decomposition:
    """Return the decomposition whose parts have an estimate.

    Raises:
      UserError: the task declares none.
    """
    parts = task.structure.parts if task.structure else None
    if parts is None or parts.estimate is None:
        what = "ranks candidates by a compiler's own estimate of their parts"
        raise UserError(f"{owner} {what}, and {task.problem} declares none; {_others(WITH_MODEL)}")
    return parts


def _others(families: tuple[str, ...]) -> str:
    return f"use it on tasks of {', '.join(families[:-1])} or {families[-1]}"
