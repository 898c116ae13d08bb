"""A compiler as a chain of passes: the decisions of each pass depend on the graph that earlier passes produced."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .constraint import keep_unchanged


@dataclass(frozen=True, eq=False)
class Decisions:
    """The decisions of a pass on one graph: k columns of the flat space.

    Attributes:
      columns: `(k,)` int64, ascending.
      sizes: `(k,)` int64, at least 1; only the first `sizes` values of a column differ on this graph.
      keys: `(k,)` uint64, a hash of what is decided. Decisions with equal keys, on this graph or another, have equal
        sizes, and equal values have the same effect.
      nodes: `(k,)` int64; decisions about the same node have the same number in all separable passes.
      share: `(k,)` float64, the share of the run time that the compiler's own model attributes to the node; it is
        used only to order and divide work.
    """

    columns: NDArray[np.int64]
    sizes: NDArray[np.int64]
    keys: NDArray[np.uint64]
    nodes: NDArray[np.int64]
    share: NDArray[np.float64]

    def __post_init__(self) -> None:
        keep_unchanged(self)


class MultiPass(ABC):
    """The passes of a compiler over one flat space.

    The flat space holds the decisions of all passes; each column belongs to one pass. The problem ignores decisions
    that do not apply to the current graph, so every strategy can work on flat rows. A strategy that works pass by pass
    learns here which columns apply to a graph. Graphs are opaque; two are the same if they are the same object.

    Attributes:
      passes: the names of the passes, in the order in which they run.
      separable: passes whose decisions about one node do not change the cost of decisions about another.
      automatic: passes for which the task's default means "the compiler's choice" on every graph, not only on the
        graph of the default; such a pass does not need the graph until it is tuned.
      source: the graph before the first pass.
    """

    passes: tuple[str, ...]
    separable: frozenset[str] = frozenset()
    automatic: frozenset[str] = frozenset()
    source: Any

    @abstractmethod
    def columns(self, name: str) -> NDArray[np.int64]:
        """Return all columns of the flat space that belong to a pass, ascending."""

    @abstractmethod
    def decisions(self, name: str, graph: Any) -> Decisions:  # noqa: ANN401 - opaque
        """Return the decisions on a graph that earlier passes produced; repeated calls return the same object."""

    @abstractmethod
    def default(self, name: str, graph: Any) -> NDArray[np.int64]:  # noqa: ANN401 - opaque
        """Return the `(k,)` choices of the compiler on this graph, in the order of `decisions`; may be expensive."""

    @abstractmethod
    def apply(self, name: str, graph: Any, config: NDArray) -> Any:  # noqa: ANN401 - opaque
        """Return the graph after the pass with a flat `(d,)` row; the pass reads only its own columns.

        It does not count as an evaluation, and repeated calls return the same object.
        """
