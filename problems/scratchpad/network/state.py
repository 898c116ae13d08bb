"""What compiled code works on, behind one handle: passing fifty arrays takes longer than the work of most functions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import typeof
from numpy.typing import NDArray

from bbo_suite.compiled import handle

from .networks import Network
from .space import AXES, DIMS, OPERANDS, Arrays, Columns, arrays, columns


class Plan(NamedTuple):
    """What a candidate does, after repair.

    Attributes:
      tile, order, blocks: `(ops, DIMS)`, streams: `(ops, 2)` of the loops; -1 where there is no stream.
      level: `(ops, OPERANDS)` the tile loops outside each buffer.
      gone: `(ops,)` whether an operator is eliminated.
      ends: `(ops,)` for the first operator of a group, the place after its last; 0 for others.
      root: `(tensors,)` the tensor that each became part of.
      axis: `(tensors, AXES)` the root's axis for each axis.
      fast: `(tensors, AXES)` axes from the fastest varying.
      resident, output: `(tensors,)` of a root.
      first, last: `(tensors,)` the first and the last operator that uses a root.
      made: `(tensors,)` the first operator of the group that makes a root, -1 if none.
      sliced: `(tensors, 2)` the axis of a root that each loop of the group cuts, -1 for none.
      moved: `(ops, OPERANDS, 4)` what `traffic` says.
      served: `(ops, OPERANDS)` how each operand is served.
      cuts: `(4, DIMS)` for `traffic`: blocks, tiles, whether the operand has a dimension, and numbers of an axis.
      bank: `(tensors,)` the axis of a root that lies across the banks, -1 for none.
      across: `(ops, OPERANDS)` the same for each operand as its operator needs it.
      clash: `(ops, OPERANDS)` whether these differ.
      sums: `(4,)` what `traffic` says of sums that are not complete.
    """

    tile: NDArray[np.int64]
    order: NDArray[np.int64]
    blocks: NDArray[np.int64]
    streams: NDArray[np.int64]
    level: NDArray[np.int64]
    gone: NDArray[np.bool_]
    ends: NDArray[np.int64]
    root: NDArray[np.int64]
    axis: NDArray[np.int64]
    fast: NDArray[np.int64]
    resident: NDArray[np.bool_]
    output: NDArray[np.bool_]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    made: NDArray[np.int64]
    sliced: NDArray[np.int64]
    moved: NDArray[np.int64]
    served: NDArray[np.int64]
    cuts: NDArray[np.int64]
    sums: NDArray[np.int64]
    bank: NDArray[np.int64]
    across: NDArray[np.int64]
    clash: NDArray[np.bool_]


def new_plan(ops: int, tensors: int) -> Plan:
    """Return memory for a plan."""

    def per_op(*shape: int) -> NDArray[np.int64]:
        return np.zeros((ops, *shape), np.int64)

    def per_tensor(*shape: int) -> NDArray[np.int64]:
        return np.zeros((tensors, *shape), np.int64)

    return Plan(
        tile=per_op(DIMS),
        order=per_op(DIMS),
        blocks=per_op(DIMS),
        streams=per_op(2),
        level=per_op(OPERANDS),
        gone=np.zeros(ops, bool),
        ends=per_op(),
        root=per_tensor(),
        axis=per_tensor(AXES),
        fast=per_tensor(AXES),
        resident=np.zeros(tensors, bool),
        output=np.zeros(tensors, bool),
        first=per_tensor(),
        last=per_tensor(),
        made=per_tensor(),
        sliced=per_tensor(2),
        moved=per_op(OPERANDS, 4),
        served=per_op(OPERANDS),
        cuts=np.zeros((4, DIMS), np.int64),
        sums=np.zeros(4, np.int64),
        bank=per_tensor() - 1,
        across=per_op(OPERANDS) - 1,
        clash=np.zeros((ops, OPERANDS), bool),
    )


class State(NamedTuple):
    """A network, the columns of its space, the plan of a candidate, and `(3,)` capacity, granule (bytes) and banks."""

    net: Arrays
    columns: Columns
    plan: Plan
    limits: NDArray[np.int64]


def _example() -> State:
    network = Network()
    network.operator("copy", {"a": 2}, [(network.tensor("x", (2,)), "a")], "a")
    net = arrays(network)
    return State(net, columns(network, net)[0], new_plan(1, 2), np.zeros(3, np.int64))


STATE: Any = typeof(_example())
"""The type of every state."""


GRANULE = 64
"""Bytes that DRAM moves at least at a time."""


class Machine:
    """What evaluation, the default and the parts of one instance share.

    Args:
      capacity: bytes of the scratchpad.
      banks: over which one dimension of each tensor lies; 0 if it does not matter where data lies.
    """

    def __init__(self, network: Network, capacity: int, banks: int = 0) -> None:
        self.network, self.capacity, self.banks = network, capacity, banks
        self.net = arrays(network)
        self.columns, self.space, self.owners = columns(network, self.net, banks > 0)
        self.ops = len(network.operators)
        self.plan = new_plan(self.ops, len(network.tensors))
        self.limits = np.array([capacity, GRANULE, banks], np.int64)
        self._memory = handle(State(self.net, self.columns, self.plan, self.limits))

    @property
    def at(self) -> int:
        """The handle."""
        return self._memory.ctypes.data
