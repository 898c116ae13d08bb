"""A candidate of a chain of passes: its configuration, and the graph before each pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Decisions


@dataclass(frozen=True, eq=False)
class Candidate:
    """One configuration of all passes.

    Attributes:
      row: `(d,)` of the flat space; columns that are not live hold the task's default.
      graphs: the graph before each pass, down to the last pass that is tuned.
      cost: its cost; inf if it failed or was not evaluated yet.
    """

    row: NDArray
    graphs: tuple[Any, ...]
    cost: float = np.inf


@dataclass(frozen=True, eq=False)
class Group:
    """Candidates of a batch that share the graph before a pass.

    Attributes:
      graph: the graph before the pass.
      members: `(m,)` places of the candidates in the batch.
      decisions: the decisions of the pass on this graph.
    """

    graph: Any
    members: NDArray[np.int64]
    decisions: Decisions


@dataclass(frozen=True, eq=False)
class Batch:
    """Candidates of the flat space, each well formed for its graphs.

    Attributes:
      rows: `(n, d)`.
      levels: the groups before each pass.
    """

    rows: NDArray
    levels: Sequence[Sequence[Group]]

    def candidate(self, place: int, cost: float) -> Candidate:
        """Return one candidate of the batch."""
        graphs = [next(g.graph for g in groups if place in g.members) for groups in self.levels]
        return Candidate(self.rows[place].copy(), tuple(graphs), cost)
