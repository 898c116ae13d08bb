"""A program as arrays: what every pass of the compiler reads."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Graph:
    """The operations of a program in topological order; n nodes and m edges from a producer to a consumer.

    Calls are inlined, tuples resolved and pure changes of shape left out, so an edge is data that really flows. A loop
    body is there once, with the number of its trips as `weight`.

    Attributes:
      names: of the nodes, those of the program.
      opcodes: of the nodes, those of HLO.
      kind: `(n,)` of `opcodes.Kind`.
      elements: `(n,)` elements of the result.
      bytes: `(n,)` of the result in memory, padded to the hardware's tile.
      element_bytes: `(n,)`.
      operations: `(n,)` vector operations for the whole result.
      extents: `(n, 3)` outer, rows and columns of what a loop over the node walks: its result, a reduction's input.
      matrix: `(n, 4)` groups, rows, columns and depth of a matrix product; zeros for other nodes.
      weight: `(n,)` how often the node runs.
      output: `(n,)` must the result be in memory whatever is fused?
      user_starts: `(n + 1,)`; the edges of producer v are `user_starts[v]:user_starts[v + 1]`.
      users: `(m,)` the consumer of each edge.
      producers: `(m,)` the producer of each edge.
      operand: `(m,)` the first place at which the consumer takes the producer.
      read: `(m,)` bytes that the consumer reads if the producer lies in memory.
      reuse: `(m,)` how often each element of the producer is used to compute the consumer once.
    """

    names: list[str]
    opcodes: list[str]
    kind: NDArray[np.int8]
    elements: NDArray[np.float64]
    bytes: NDArray[np.float64]
    element_bytes: NDArray[np.float64]
    operations: NDArray[np.float64]
    extents: NDArray[np.float64]
    matrix: NDArray[np.float64]
    weight: NDArray[np.float64]
    output: NDArray[np.bool_]
    user_starts: NDArray[np.int64]
    users: NDArray[np.int32]
    producers: NDArray[np.int32]
    operand: NDArray[np.int8]
    read: NDArray[np.float64]
    reuse: NDArray[np.float64]

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.kind)

    def digest(self) -> str:
        """Return a text that changes when the program does; names do not count."""
        state = hashlib.sha256("\n".join(self.opcodes).encode())
        for array in (
            self.elements,
            self.bytes,
            self.operations,
            self.extents,
            self.matrix,
            self.weight,
            self.read,
            self.reuse,
        ):
            state.update(array.astype("<f8").tobytes())
        for whole in (self.kind, self.output, self.user_starts, self.users, self.operand):
            state.update(whole.astype("<i8").tobytes())
        return state.hexdigest()[:16]
