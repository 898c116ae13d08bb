"""What a compiler does on its own: each operator by itself, then tensors that stay and operators that run together."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from .decode import decode
from .evaluation import evaluate
from .machine import Machine
from .memory import measure
from .solve import room, solve, workspace

_LONGEST = 5
_ROOMY = 1 << 50
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
        self._roomy(row)
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
            self._roomy(trial)
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
        self._roomy(row)
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
                self._roomy(trial)
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
        self._roomy(trial)
        for head, end in groups:
            for op in range(head, end):
                if not m.plan.gone[op]:
                    left = room(head, end, op, m.capacity, m.at)
                    if left <= 0 or not self._solve(op, left, step, trial):
                        return other
        return trial if self.bytes(trial) < self.bytes(other) else other

    def _lay(self, row: NDArray[np.int64]) -> None:
        """Lay each tensor across the banks as most of its users need it; of several such axes, the longest."""
        for tensor, column in enumerate(self._m.columns.bank.tolist()):
            clashes = []
            for axis, length in enumerate(self._m.network.tensors[tensor].shape if column >= 0 else ()):
                row[column] = axis
                self._roomy(row)
                clashes.append((int(self._m.plan.clash.sum()), -length, axis))
            if clashes:
                row[column] = min(clashes)[2]

    def _roomy(self, row: NDArray[np.int64]) -> None:
        """Set the plan of a candidate as if everything fitted."""
        self._m.limits[0] = _ROOMY
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
