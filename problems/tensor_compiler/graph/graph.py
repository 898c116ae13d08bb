"""A program as arrays, before any pass: its operations, and the layouts in which each can work."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite.report.formatting import listed

from ..hardware.kernel_row import PRODUCT_COLUMNS


class Read(IntEnum):
    """How much of an operand in memory a consumer reads."""

    ALL = 0
    RESULT = 1  # as many bytes as the result has, at most all
    NOTHING = 2  # it is updated in place


class Tables(NamedTuple):
    """Facts about k signatures; nodes of one signature differ only in their names and neighbours.

    Attributes:
      first: `(k + 1,)`; the states of signature i are `first[i]:first[i + 1]`, rows of `result`, `work`, `written`,
        `read`, `row`.
      result: `(s,)` number of the result's layout.
      work: `(s,)` vector operations for the whole result.
      written: `(s,)` bytes of the result that the node writes.
      read: `(s,)` bytes that the node reads if its operands are in memory.
      row: `(s,)` row of `loops` and `tiles` for a kernel around the node.
      wanted: `(w,)` numbers of the layouts wanted of operands, -1 for any; place p of state j of signature i is at
        `wants[i] + j * places[i] + p`.
      wants, places: `(k,)`.
      array: `(k,)`; the result in layout l is row `array + l` of `bytes`, `loops` and `tiles`.
      layouts: `(k,)` how many the result can have.
      same_minor: `(k,)` how many layouts of the result have the same minor dimension, 0 if there is only one layout:
        layouts l and m have the same minor dimension if `l // same_minor == m // same_minor`.
      compact: `(k,)` number of the layout that pads the result least.
      bytes: `(r,)` of an array in a layout.
      loops: `(r, 8)` groups, rows, columns, depth and taps of a matrix product, or zeros; outer, rows and columns of a
        loop.
      tiles: `(r, 4, 3)` that a kernel can have by default.
    """

    first: NDArray[np.int64]
    result: NDArray[np.int64]
    work: NDArray[np.float64]
    written: NDArray[np.float64]
    read: NDArray[np.float64]
    row: NDArray[np.int64]
    wanted: NDArray[np.int64]
    wants: NDArray[np.int64]
    places: NDArray[np.int64]
    array: NDArray[np.int64]
    layouts: NDArray[np.int64]
    same_minor: NDArray[np.int64]
    compact: NDArray[np.int64]
    bytes: NDArray[np.float64]
    loops: NDArray[np.float64]
    tiles: NDArray[np.float64]


@dataclass(frozen=True)
class ProgramGraph:
    """The operations of a program in topological order; n nodes and m edges from a producer to a consumer.

    Calls are inlined and tuples resolved, so every edge is data that flows or is only renamed. A loop body appears
    once, with the number of its trips as `weight`. An operand that one consumer wants in several layouts has an edge
    for each.

    Attributes:
      names: of the nodes, those of the program.
      opcodes: of the nodes, those of HLO.
      choices: for each signature, its states in words, if they are chosen.
      unknown_loops: names of loops that count once, because nothing says how often they run.
      idle_loops: names of loops that never run, and are left out.
      conditionals: names of those whose branches count alike, because nothing says which of them runs.
      unknown_calls: what custom calls call whose work is not known.
      kind: `(n,)` of `opcodes.Kind`.
      elements: `(n,)` elements of the result.
      element_bytes: `(n,)`.
      weight: `(n,)` how often the node runs.
      output: `(n,)` True if the result must be in memory whatever is fused.
      tuned: `(n,)` True if the node's state is chosen and not left to propagation.
      renamed: `(n,)` the operand whose dimensions the node only renames if layouts allow, or -1.
      signature: `(n,)` the number of the node's signature in `tables`.
      user_starts: `(n + 1,)`; the edges of producer v are `user_starts[v]:user_starts[v + 1]`.
      users: `(m,)` the consumer of each edge.
      producers: `(m,)` the producer of each edge.
      operand: `(m,)` the first place at which the consumer takes the producer.
      read: `(m,)` of `Read`.
      reuse: `(m,)` how often each element of the producer is used to compute the consumer once.
      cost_model: the version of the cost model that last changed the cost of this program.
      tables: of the signatures.
    """

    names: list[str]
    opcodes: list[str]
    choices: list[tuple[str, ...]]
    unknown_loops: list[str]
    idle_loops: list[str]
    conditionals: list[str]
    unknown_calls: list[str]
    kind: NDArray[np.int8]
    elements: NDArray[np.float64]
    element_bytes: NDArray[np.float64]
    weight: NDArray[np.float64]
    output: NDArray[np.bool_]
    tuned: NDArray[np.bool_]
    renamed: NDArray[np.int32]
    signature: NDArray[np.int32]
    user_starts: NDArray[np.int64]
    users: NDArray[np.int32]
    producers: NDArray[np.int32]
    operand: NDArray[np.int32]
    read: NDArray[np.int8]
    reuse: NDArray[np.float64]
    cost_model: int
    tables: Tables

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.kind)

    @property
    def matrix(self) -> NDArray[np.float64]:
        """The `(n, 5)` numbers of `shapes.on_matrix_unit`."""
        return self.tables.loops[self.tables.row[self.tables.first[self.signature]], :PRODUCT_COLUMNS]

    def not_counted(self) -> dict[str, str]:
        """Return facts about loops, branches and calls that are not counted as they run; empty if there are none."""
        facts = {
            "loops of unknown length": (self.unknown_loops, "each counts as if it ran once"),
            "loops that never run": (self.idle_loops, "left out"),
            "conditionals": (self.conditionals, "all branches of one count as if they ran equally often"),
            "calls of unknown work": (self.unknown_calls, "each costs what it takes to move its arrays"),
        }
        return {what: f"{listed(dict.fromkeys(names))}; {how}" for what, (names, how) in facts.items() if names}

    def digest(self) -> str:
        """Return a hash of the program; names do not count."""
        state = hashlib.sha256("\n".join(self.opcodes).encode())
        own = [getattr(self, field.name) for field in fields(self)[:-1]]
        for array in (*(each for each in own if isinstance(each, np.ndarray)), *self.tables):
            wide = "<f8" if array.dtype.kind == "f" else "<i8"
            state.update(array.astype(wide).tobytes())
        return state.hexdigest()[:16]
