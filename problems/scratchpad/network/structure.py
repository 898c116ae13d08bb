"""What a network declares: decisions of one operator interact, and those of operators that share a tensor."""

from __future__ import annotations

import numpy as np

from bbo_suite import Decomposition, Graph, Structure

from .graph import Role
from .machine import Machine

_WHAT = ("tile", "order", "level", "eliminate", "link", "stream", "blocks", "resident", "storage")
_BANKS = "across the banks"
_NODE = ("log work", "log bytes", "moves")


def structure(machine: Machine, parts: Decomposition) -> Structure:
    """Return the structure of the space."""
    names = [machine.space.name(i) for i in range(len(machine.space))]
    members = _members(machine)
    near: list[set[int]] = [set() for _ in names]
    for columns in members:
        for column in columns:
            near[column] |= columns
    rows = [sorted(found - {column}) for column, found in enumerate(near)]
    nodes = _nodes(machine)
    what_for = (*_WHAT, *((_BANKS,) if machine.banks else ()))
    kinds = [next(i for i, what in enumerate(what_for) if f": {what}" in name) for name in names]
    return Structure(
        starts=np.cumsum([0, *map(len, rows)]),
        neighbours=np.array([n for row in rows for n in row], np.int32),
        features=np.hstack([np.eye(len(what_for), dtype=np.float32)[kinds], nodes[machine.owners]]),
        feature_names=(*what_for, *_NODE),
        graph=Graph(nodes, _NODE, _edges(machine)),
        nodes=np.array(machine.owners, np.int32),
        parts=parts,
    )


def _members(machine: Machine) -> list[set[int]]:
    """Return sets of columns that interact: of each operator with its tensors, and of links with what they join."""
    columns = machine.columns
    members: list[set[int]] = []
    for op in range(machine.ops):
        own = {column for column, owner in enumerate(machine.owners) if owner == op}
        used = machine.net.tensors[op][machine.net.tensors[op] >= 0]
        tensors = {int(c) for t in used for c in (columns.resident[t], columns.store[t], columns.bank[t]) if c >= 0}
        members.append(own | tensors)
        if columns.link[op] >= 0:
            before = [columns.link[op - 1], *columns.stream[op - 1], *columns.block[op - 1]]
            members.append({int(columns.link[op]), *(int(c) for c in before if c >= 0)})
    return members


def _edges(machine: Machine) -> np.ndarray:
    made = {op.operands[-1].tensor: o for o, op in enumerate(machine.network.operators)}
    pairs = [
        (made[x.tensor], o)
        for o, op in enumerate(machine.network.operators)
        for x in op.operands[:-1]
        if machine.network.tensors[x.tensor].role in (Role.INTERMEDIATE, Role.OUTPUT)
    ]
    return np.array(pairs, np.int32).reshape(-1, 2)


def _nodes(machine: Machine) -> np.ndarray:
    work = machine.net.extents.astype(float).prod(axis=1)
    elements = machine.net.sizes.astype(float).prod(axis=1) * machine.net.bytes
    moved = np.where(machine.net.tensors >= 0, elements[machine.net.tensors], 0).sum(axis=1)
    return np.column_stack([np.log1p(work), np.log1p(moved), machine.net.moves]).astype(np.float32)
