"""A network as arrays for compiled code, and the space of its plans with the column of each decision.

Axes are padded to `AXES`, dimensions to `DIMS`, operands to `OPERANDS`. Compiled code works on one handle: passing
fifty arrays takes longer than the work of most functions.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from numba import typeof
from numpy.typing import NDArray

from bbo_suite import Kind, Space
from bbo_suite.compiled import handle

from .networks import Network, Role

DIMS, OPERANDS, AXES = 8, 5, 4


class Arrays(NamedTuple):
    """Operators and tensors.

    Attributes:
      extents, reduced, tiled: `(ops, DIMS)` of each dimension; unused ones have extent 1.
      tiles: `(ops,)` the number of dimensions that may be tiled.
      reads: `(ops,)` the number of operands that are read; the next one is written.
      moves: `(ops,)` whether an operator only rearranges a tensor.
      tensors: `(ops, OPERANDS)` the tensor of each operand, -1 for none.
      dims, strides, windows, pads: `(ops, OPERANDS, AXES)` the map of each operand; `windows` are extents.
      sizes: `(tensors, AXES)`, 1 for unused axes.
      ranks, bytes, roles: `(tensors,)`.
      kinds: `(ops,)` a number that equal operators share.
    """

    extents: NDArray[np.int64]
    reduced: NDArray[np.bool_]
    tiled: NDArray[np.bool_]
    tiles: NDArray[np.int64]
    reads: NDArray[np.int64]
    moves: NDArray[np.bool_]
    tensors: NDArray[np.int64]
    dims: NDArray[np.int64]
    strides: NDArray[np.int64]
    windows: NDArray[np.int64]
    pads: NDArray[np.int64]
    sizes: NDArray[np.int64]
    ranks: NDArray[np.int64]
    bytes: NDArray[np.int64]
    roles: NDArray[np.int64]
    kinds: NDArray[np.int64]


def arrays(network: Network) -> Arrays:
    """Return the arrays of a network."""
    ops, tensors = len(network.operators), len(network.tensors)
    maps = (ops, OPERANDS, AXES)
    found = Arrays(
        extents=np.ones((ops, DIMS), np.int64),
        reduced=np.zeros((ops, DIMS), bool),
        tiled=np.zeros((ops, DIMS), bool),
        tiles=np.array([len(op.tiled) for op in network.operators]),
        reads=np.array([len(op.operands) - 1 for op in network.operators]),
        moves=np.array([op.moves for op in network.operators]),
        tensors=np.full((ops, OPERANDS), -1, np.int64),
        dims=np.zeros(maps, np.int64),
        strides=np.ones(maps, np.int64),
        windows=np.ones(maps, np.int64),
        pads=np.zeros(maps, np.int64),
        sizes=np.ones((tensors, AXES), np.int64),
        ranks=np.array([len(t.shape) for t in network.tensors]),
        bytes=np.array([t.bytes for t in network.tensors]),
        roles=np.array([int(t.role) for t in network.tensors]),
        kinds=np.zeros(ops, np.int64),
    )
    for t, tensor in enumerate(network.tensors):
        found.sizes[t, : len(tensor.shape)] = tensor.shape
    kinds: dict[object, int] = {}
    for o, op in enumerate(network.operators):
        shapes = tuple((network.tensors[x.tensor].shape, network.tensors[x.tensor].bytes) for x in op.operands)
        maps_of = tuple(x.axes for x in op.operands)
        found.kinds[o] = kinds.setdefault((op.extents, op.reduced, op.whole, maps_of, shapes), len(kinds))
        found.extents[o, : len(op.extents)] = op.extents
        found.reduced[o, : len(op.extents)] = op.reduced
        found.tiled[o, op.tiled] = True
        for x, operand in enumerate(op.operands):
            found.tensors[o, x] = operand.tensor
            for a, axis in enumerate(operand.axes):
                found.dims[o, x, a], found.strides[o, x, a], found.pads[o, x, a] = axis.dim, axis.stride, axis.pad
                found.windows[o, x, a] = op.extents[axis.window] if axis.window >= 0 else 1
    return found


_ORDERS = 24
_STORES = 6
_SMALL, _LEAST = 64, 16
"""Tiles of extents above the first have at least so many elements as the second says; of smaller extents, a quarter."""
_BLOCKS = 7


class Columns(NamedTuple):
    """Where each decision is in a row; -1 where there is none.

    Attributes:
      tile: `(ops, DIMS)`, order: `(ops,)`, level: `(ops, OPERANDS)`, link: `(ops,)`, stream and block: `(ops, 2)`,
        eliminate: `(ops,)`, resident, store and bank: `(tensors,)`.
      values: `(d, most)` numbers behind the indices: of tiles, streams (a dimension) and blocks (a divisor).
      orders: `(ops, 24, DIMS)` the tile loops for each index of an order.
      stores: `(AXES + 1, 6, AXES)` the axes from the fastest varying, by rank and index; index 0 is row by row.
    """

    tile: NDArray[np.int64]
    order: NDArray[np.int64]
    level: NDArray[np.int64]
    link: NDArray[np.int64]
    stream: NDArray[np.int64]
    block: NDArray[np.int64]
    eliminate: NDArray[np.int64]
    resident: NDArray[np.int64]
    store: NDArray[np.int64]
    bank: NDArray[np.int64]
    values: NDArray[np.int64]
    orders: NDArray[np.int64]
    stores: NDArray[np.int64]


class Decisions:
    """Collects columns with their names and values."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.kinds: list[Kind] = []
        self.shown: list[list[object]] = []
        self.numbers: list[list[int]] = []
        self.owners: list[int] = []

    def add(self, owner: int, name: str, numbers: list[int], kind: Kind, shown: list[object] | None = None) -> int:
        """Add a column of an operator and return its place."""
        self.names.append(name)
        self.kinds.append(kind)
        self.shown.append(list(numbers) if shown is None else shown)
        self.numbers.append(numbers)
        self.owners.append(owner)
        return len(self.names) - 1


def columns(network: Network, net: Arrays, banks: bool = False) -> tuple[Columns, Space, list[int]]:
    """Return the columns of a network, their space, and the operator that each belongs to.

    Args:
      banks: whether there is a column for the axis of each tensor that lies across the banks.
    """
    found, made = _empty(network), Decisions()
    for o, op in enumerate(network.operators):
        _operator(o, op.name, net, found, made)
    for t in range(len(network.tensors)):
        _tensor(t, network, found, made, banks)
    table = np.ones((len(made.names), max(map(len, made.numbers))), np.int64)
    for column, numbers in enumerate(made.numbers):
        table[column, : len(numbers)] = numbers
    sizes = [len(numbers) for numbers in made.numbers]
    space = Space(sizes, np.array(made.kinds, np.int8), names=made.names, values=made.shown)
    return found._replace(values=table), space, made.owners


def _empty(network: Network) -> Columns:
    ops, tensors = len(network.operators), len(network.tensors)

    def none(*shape: int) -> NDArray[np.int64]:
        return np.full(shape, -1, np.int64)

    stores = np.zeros((AXES + 1, _STORES, AXES), np.int64)
    for rank in range(1, AXES + 1):
        for i, fast in enumerate(storage_orders(rank)):
            stores[rank, i, :rank] = fast
    return Columns(
        tile=none(ops, DIMS),
        order=none(ops),
        level=none(ops, OPERANDS),
        link=none(ops),
        stream=none(ops, 2),
        block=none(ops, 2),
        eliminate=none(ops),
        resident=none(tensors),
        store=none(tensors),
        bank=none(tensors),
        values=np.zeros((0, 0), np.int64),
        orders=np.zeros((ops, _ORDERS, DIMS), np.int64),
        stores=stores,
    )


def storage_orders(rank: int) -> list[tuple[int, ...]]:
    """Return at most six orders of the axes from the fastest varying, row by row first."""
    rows = tuple(reversed(range(rank)))
    every = [rows, *(p for p in permutations(rows) if p != rows)]
    return every[:: max(1, len(every) // _STORES)][:_STORES]


def _operator(o: int, name: str, net: Arrays, found: Columns, made: Decisions) -> None:
    tiled = np.flatnonzero(net.tiled[o]).tolist()
    for d in tiled:
        sizes = tile_sizes(int(net.extents[o, d]))
        found.tile[o, d] = made.add(o, f"{name}: tile {d}", sizes, Kind.SCALE)
    every = list(permutations(tiled))
    orders = every[:: -(-len(every) // _ORDERS)]
    found.orders[o, : len(orders), : len(tiled)] = orders
    found.order[o] = made.add(o, f"{name}: order", list(range(len(orders))), Kind.CHOICE, list(map(str, orders)))
    for x in range(net.reads[o] + 1):
        what = f"operand {x}" if x < net.reads[o] else "result"
        found.level[o, x] = made.add(o, f"{name}: level of {what}", list(range(len(tiled) + 1)), Kind.SCALE)
    if net.moves[o]:
        found.eliminate[o] = made.add(o, f"{name}: eliminate", [0, 1], Kind.CHOICE)
    if o:
        found.link[o] = made.add(o, f"{name}: link to the previous operator", [0, 1], Kind.CHOICE)
    parallel = [d for d in tiled if not net.reduced[o, d]]
    for i in range(2):
        found.stream[o, i] = made.add(o, f"{name}: stream {i}", parallel or [0], Kind.CHOICE)
        divisors = [1 << k for k in range(_BLOCKS if parallel else 1)]
        found.block[o, i] = made.add(o, f"{name}: blocks of stream {i}", divisors, Kind.SCALE)


def _tensor(t: int, network: Network, found: Columns, made: Decisions, banks: bool) -> None:
    tensor = network.tensors[t]
    users = [o for o, op in enumerate(network.operators) if any(x.tensor == t for x in op.operands)]
    if tensor.role == Role.INTERMEDIATE or len(users) > 1:
        found.resident[t] = made.add(users[0], f"{tensor.name}: resident", [0, 1], Kind.CHOICE)
        axes = list(range(len(tensor.shape) if banks else 0))
        found.bank[t] = made.add(users[0], f"{tensor.name}: across the banks", axes, Kind.CHOICE) if banks else -1
    if tensor.role in (Role.WEIGHT, Role.INTERMEDIATE):
        orders = storage_orders(len(tensor.shape))
        shown: list[object] = [str(tuple(reversed(fast))) for fast in orders]
        found.store[t] = made.add(users[0], f"{tensor.name}: storage", list(range(len(orders))), Kind.CHOICE, shown)


def tile_sizes(extent: int) -> list[int]:
    """Return the extent, its half, its quarter, and so on, smallest first."""
    least = _LEAST if extent > _SMALL else max(1, min(4, extent))
    sizes = [extent]
    while (half := -(-sizes[-1] // 2)) >= least and half < sizes[-1]:
        sizes.append(half)
    return sizes[::-1]


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
