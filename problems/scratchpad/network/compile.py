"""What a compiler does on its own: each operator by itself, then tensors that stay and operators that run together.

`solve` finds the best tiles, loop order and buffers of one operator under a given capacity, by trying all of them.
`python -m bbo_problems.scratchpad.network.compile` compiles every instance and stores the defaults.
"""

from __future__ import annotations

import json
import sys
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for, load

from .decode import decode, evaluate
from .groups import NORMAL, SLICE
from .memory import buffer, measure, slice_size, traffic, waiting
from .model import DEFAULTS
from .networks import INSTANCES, NETWORKS, split
from .space import DIMS, OPERANDS, STATE, Machine

compiled = compiled_for(__file__)

CHOICES = 1 + DIMS + 1 + OPERANDS
"""Length of a solution: bytes, the index of each tile, that of the order, and the level of each operand."""


@compiled(runtime=False, inline=False)
def free_bytes(head: int, end: int, op: int, capacity: int, at: int) -> int:
    """Return the bytes that an operator of a group may use, after what stays, the group's slices and pinned buffers."""
    state: Any = load(at, STATE)
    net, plan = state.net, state.plan
    left = capacity
    for t in range(len(net.ranks)):
        if plan.resident[t] and plan.first[t] < end and plan.last[t] >= head:
            left -= waiting(t, at)
    for other in range(head, end):
        if plan.gone[other]:
            continue
        root = plan.root[net.tensors[other, net.reads[other]]]
        if plan.served[other, net.reads[other]] == SLICE and other <= op <= plan.last[root]:
            left -= slice_size(other, at)
        for x in range(net.reads[other] + 1 if other < op else 0):
            if not plan.moved[other, x, 2]:
                left -= buffer(other, x, at)
    return left


@compiled(runtime=False, inline=False)
def solve(op: int, capacity: int, step: int, best: NDArray, table: NDArray, count: NDArray, at: int) -> None:
    """Write into `best` the solution that moves least, as the plan serves the operands; no bytes but -1 if none fits.

    Args:
      step: tries every `step`-th tile, and as many times fewer orders.
      table: `(OPERANDS, DIMS + 1, 2)` int64 for bytes and buffers.
      count: `(DIMS,)` int64 for the indices of the tiles.
    """
    state: Any = load(at, STATE)
    net, columns, plan = state.net, state.columns, state.plan
    best[0] = -1
    orders = 1
    for i in range(2, net.tiles[op] + 1):
        orders *= i
    orders = min(orders, _orders(op, at))
    for d in range(DIMS):
        count[d] = 0
    while True:
        if _set_tiles(op, count, at):
            for order in range(0, orders, max(1, step * step - 1)):
                for d in range(DIMS):
                    plan.order[op, d] = columns.orders[op, order, d]
                _tabulate(op, table, at)
                _choose_levels(op, order, capacity, best, table, count, at)
        d = 0
        while d < DIMS:
            last = _last_tile(op, d, at)
            if count[d] < last:
                count[d] = min(last, count[d] + step)
                break
            count[d] = 0
            d += 1
        if d == DIMS:
            return


@compiled(runtime=False, inline=False)
def _orders(op: int, at: int) -> int:
    """Return how many orders of the loops an operator chooses from."""
    state: Any = load(at, STATE)
    orders = state.columns.orders
    found = 1
    while found < orders.shape[1]:
        same = True
        for d in range(DIMS):
            same = same and orders[op, found, d] == 0
        if same:
            return found
        found += 1
    return found


@compiled(runtime=False, inline=False)
def _last_tile(op: int, d: int, at: int) -> int:
    state: Any = load(at, STATE)
    column = state.columns.tile[op, d]
    if column < 0:
        return 0
    last = 0
    while state.columns.values[column, last] < state.net.extents[op, d]:
        last += 1
    return last


@compiled(runtime=False, inline=False)
def _set_tiles(op: int, count: NDArray, at: int) -> bool:
    """Set the tiles; return False if one is larger than necessary for its block."""
    state: Any = load(at, STATE)
    columns, plan = state.columns, state.plan
    for d in range(DIMS):
        column = columns.tile[op, d]
        if column >= 0:
            plan.tile[op, d] = columns.values[column, count[d]]
            if count[d] > 0 and columns.values[column, count[d] - 1] >= plan.blocks[op, d]:
                return False
    return True


@compiled(runtime=False, inline=False)
def _tabulate(op: int, table: NDArray, at: int) -> None:
    """Write bytes and buffer of each operand for each level."""
    state: Any = load(at, STATE)
    net, plan = state.net, state.plan
    for x in range(net.reads[op] + 1):
        tensor = net.tensors[op, x]
        for level in range(net.tiles[op] + 1):
            plan.level[op, x] = level
            traffic(at, op, x, net.bytes[tensor], plan.moved[op, x])
            one, passes = plan.moved[op, x, 0], plan.moved[op, x, 1]
            table[x, level, 1] = buffer(op, x, at)
            table[x, level, 0] = 0
            if plan.served[op, x] == NORMAL:
                table[x, level, 0] = one * passes
                if x == net.reads[op] and passes > 1:
                    traffic(at, op, x, 4, plan.sums)
                    table[x, level, 0] = one + (passes - 1) * 2 * plan.sums[0]


@compiled(runtime=False, inline=False)
def _choose_levels(op: int, order: int, capacity: int, best: NDArray, table: NDArray, count: NDArray, at: int) -> None:
    """Improve `best` by the levels that move least and fit."""
    state: Any = load(at, STATE)
    net = state.net
    levels, operands = net.tiles[op] + 1, net.reads[op] + 1
    total = levels**operands
    for number in range(total):
        rest, moved, held = number, 0, 0
        for x in range(operands):
            moved += table[x, rest % levels, 0]
            held += table[x, rest % levels, 1]
            rest //= levels
        if held <= capacity and (best[0] < 0 or moved < best[0]):
            best[0], best[1 + DIMS], rest = moved, order, number
            for d in range(DIMS):
                best[1 + d] = count[d]
            for x in range(operands):
                best[2 + DIMS + x] = rest % levels
                rest //= levels


def workspace() -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return `best`, `table` and `count`."""
    return np.zeros(CHOICES, np.int64), np.zeros((OPERANDS, DIMS + 1, 2), np.int64), np.zeros(DIMS, np.int64)


_LONGEST = 5
_UNBOUNDED = 1 << 50
_SINGLE, _PAIR = (1, 2, 3, 4, 5, 6), (2, 4)
"""Indices of divisors that are tried for a stream of one dimension, and for each of two."""


class Compiler:
    """Passes over one candidate; each keeps what moves fewer bytes."""

    def __init__(self, machine: Machine) -> None:
        self._m = machine
        self._work = workspace()
        self._known: dict[object, NDArray[np.int64]] = {}

    def alone(self) -> NDArray[np.int64]:
        """Return the candidate in which each operator moves least by itself, and all tensors go through DRAM."""
        row = np.zeros(len(self._m.space), np.int64)
        self._lay(row)
        self._decode_unbounded(row)
        for op in range(self._m.ops):
            self._solve(op, self._m.capacity, 1, row)
        return row

    def default(self) -> dict[str, NDArray[np.int64]]:
        """Return the candidates of the passes: each operator alone, greedy residency, and both orders of passes."""
        alone = self.alone()
        greedy = self.residency(self.elimination(alone))
        first = self.elimination(self.fusion(greedy))
        second = self.elimination(self.residency(self.fusion(self.elimination(alone))))
        return {"alone": alone, "greedy": greedy, "residency first": first, "fusion first": second}

    def bytes(self, row: NDArray[np.int64]) -> float:
        """Return the bytes that a candidate moves."""
        values = np.empty(1)
        evaluate(row[None], values, self._m.at)
        return float(values[0])

    def elimination(self, row: NDArray[np.int64]) -> NDArray[np.int64]:
        """Eliminate each movement of data, and store each tensor and lay it across the banks, as it helps."""
        columns = self._m.columns
        every = np.concatenate([columns.eliminate, columns.store, columns.bank])
        chosen = every[every >= 0].tolist()
        for column in chosen:
            rows = np.tile(row, (int(self._m.space.sizes[column]), 1))
            rows[:, column] = np.arange(len(rows))
            values = np.empty(len(rows))
            evaluate(rows, values, self._m.at)
            row = rows[values.argmin()] if values.min() < self.bytes(row) else row
        return row

    def residency(self, row: NDArray[np.int64]) -> NDArray[np.int64]:
        """Let each tensor stay, in the order of the program, if it helps after its users make room."""
        plan, columns = self._m.plan, self._m.columns
        for tensor in np.flatnonzero(columns.resident >= 0).tolist():
            trial = row.copy()
            trial[columns.resident[tensor]] = 1
            self._decode_unbounded(trial)
            if plan.resident[tensor]:
                first, last = int(plan.first[tensor]), int(plan.last[tensor])
                groups = [(h, int(e)) for h, e in enumerate(plan.ends) if e and h <= last and e > first]
                row = self._resolved(trial, groups, 1, row)
        return row

    def fusion(self, row: NDArray[np.int64]) -> NDArray[np.int64]:
        """Link operators from the first to the last; of all lengths and loops over blocks keep what helps most."""
        head = 0
        while head < self._m.ops:
            best = row
            for trial, end in self._links(head, row):
                best = self._resolved(trial, [(head, end)], 3, best)
            decode(best, self._m.at)
            end = int(self._m.plan.ends[head])
            row = self._resolved(best.copy(), [(head, end)], 1, best) if end > head + 1 else best
            head = max(head + 1, end)
        return row

    def _links(self, head: int, row: NDArray[np.int64]) -> list[tuple[NDArray[np.int64], int]]:
        """Return candidates that link operators to `head`, and where the group ends."""
        m, found = self._m, []
        self._decode_unbounded(row)
        users = [op for op in range(head, m.ops) if not m.plan.gone[op]][:_LONGEST]
        if not users or users[0] != head:
            return []
        for length in range(2, len(users) + 1):
            for streams in self._streams(head):
                trial = row.copy()
                trial[m.columns.link[users[1:length]]] = 1
                if length < len(users):
                    trial[m.columns.link[users[length]]] = 0
                trial[m.columns.block[head]] = 0
                for i, (dim, block) in enumerate(streams):
                    trial[m.columns.stream[head, i]], trial[m.columns.block[head, i]] = dim, block
                self._decode_unbounded(trial)
                if m.plan.ends[head] == users[length - 1] + 1:
                    found.append((trial, users[length - 1] + 1))
        return found

    def _streams(self, head: int) -> list[tuple[tuple[int, int], ...]]:
        dims = range(int(self._m.space.sizes[self._m.columns.stream[head, 0]]))
        single = [((d, block),) for d in dims for block in _SINGLE]
        return [*single, *(((a, i), (b, j)) for a, b in combinations(dims, 2) for i in _PAIR for j in _PAIR)]

    def _resolved(
        self, trial: NDArray[np.int64], groups: list[tuple[int, int]], step: int, other: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Solve the operators of some groups again as a trial serves them; return the better of it and another."""
        m = self._m
        self._decode_unbounded(trial)
        for head, end in groups:
            for op in range(head, end):
                if not m.plan.gone[op]:
                    left = free_bytes(head, end, op, m.capacity, m.at)
                    if left <= 0 or not self._solve(op, left, step, trial):
                        return other
        return trial if self.bytes(trial) < self.bytes(other) else other

    def _lay(self, row: NDArray[np.int64]) -> None:
        """Lay each tensor across the banks as most of its users need it; of several such axes, the longest."""
        for tensor, column in enumerate(self._m.columns.bank.tolist()):
            clashes = []
            for axis, length in enumerate(self._m.network.tensors[tensor].shape if column >= 0 else ()):
                row[column] = axis
                self._decode_unbounded(row)
                clashes.append((int(self._m.plan.clash.sum()), -length, axis))
            if clashes:
                row[column] = min(clashes)[2]

    def _decode_unbounded(self, row: NDArray[np.int64]) -> None:
        """Set the plan of a candidate as if everything fitted."""
        self._m.limits[0] = _UNBOUNDED
        decode(row, self._m.at)
        self._m.limits[0] = self._m.capacity

    def _solve(self, op: int, capacity: int, step: int, row: NDArray[np.int64]) -> bool:
        """Write the best tiles, order and levels of an operator into a row and the plan; False if none fits."""
        m, plan = self._m, self._m.plan
        served = (
            plan.served[op].tobytes()
            + plan.blocks[op].tobytes()
            + plan.streams[op].tobytes()
            + plan.across[op].tobytes()
        )
        fast = plan.fast[m.net.tensors[op]].tobytes()
        key = (int(m.net.kinds[op]), capacity, step, served, fast)
        if key not in self._known:
            best, table, count = self._work
            solve(op, capacity, step, best, table, count, m.at)
            self._known[key] = best.copy()
        best = self._known[key]
        if best[0] < 0:
            return False
        self._write(op, best, row)
        measure(op, m.at)
        return True

    def _write(self, op: int, best: NDArray[np.int64], row: NDArray[np.int64]) -> None:
        m, plan, dims = self._m, self._m.plan, self._m.columns.tile.shape[1]
        for d in np.flatnonzero(m.columns.tile[op] >= 0).tolist():
            column = m.columns.tile[op, d]
            row[column] = best[1 + d]
            plan.tile[op, d] = m.columns.values[column, best[1 + d]]
        row[m.columns.order[op]] = best[1 + dims]
        plan.order[op] = m.columns.orders[op, best[1 + dims]]
        for x in range(int(m.net.reads[op]) + 1):
            row[m.columns.level[op, x]] = plan.level[op, x] = best[2 + dims + x]


def default_of(instance: str) -> dict[str, object]:
    """Return the default of an instance, the better of both orders of passes, and what other passes reach."""
    name, capacity, banks = split(instance)
    machine = Machine(NETWORKS[name](), capacity, banks)
    compiler = Compiler(machine)
    rows = compiler.default()
    moved = {what: int(compiler.bytes(row)) for what, row in rows.items()}
    best = min(("residency first", "fusion first"), key=moved.__getitem__)
    row = np.asarray(rows[best]).astype(machine.space.dtype)
    return {"default": machine.space.pack(row), "baselines": {k: v for k, v in moved.items() if k != best}}


def main(names: list[str]) -> None:
    """Write the defaults of the named instances, or of all."""
    known = json.loads(DEFAULTS.read_text(encoding="utf-8")) if DEFAULTS.exists() else {}
    for instance in names or INSTANCES:
        known[instance] = default_of(instance)
        DEFAULTS.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
