"""A compiler as a chain of passes: what each pass decides depends on the graph that the earlier ones left."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Decisions:
    """What a pass decides on one graph: k columns of the flat space.

    Attributes:
      columns: `(k,)` int64, ascending.
      sizes: `(k,)` int64; only the first `sizes` values of a column differ on this graph, at least 1.
      keys: `(k,)` uint64, what is decided, by content: where keys are equal, on another graph or twice on this one,
        sizes are equal too, and the same value does the same.
      nodes: `(k,)` int64; decisions about one node have one number, in all separable passes.
      share: `(k,)` float64, the share of the run time that the compiler's own model gives to the node; it only orders
        and divides work.
    """

    columns: NDArray[np.int64]
    sizes: NDArray[np.int64]
    keys: NDArray[np.uint64]
    nodes: NDArray[np.int64]
    share: NDArray[np.float64]


class MultiPass(ABC):
    """The passes of a compiler over one flat space.

    The flat space holds the decisions of all passes, each column that of one pass. A decision that means nothing on
    the graph at hand is ignored by the problem, so every strategy can work on flat rows. A strategy that works pass by
    pass learns here which columns are live on a graph. Graphs are opaque; two are the same if they are the same object.

    Attributes:
      passes: their names, in the order in which they run.
      separable: passes whose decisions about one node do not change what those about another are worth.
      automatic: passes for which the task's default means `what the compiler chooses` on every graph, not only on the
        default's; such a pass needs no look at the graph until it is tuned.
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
        """Return what the pass decides on a graph that the earlier passes left; the same object when asked again."""

    @abstractmethod
    def default(self, name: str, graph: Any) -> NDArray[np.int64]:  # noqa: ANN401 - opaque
        """Return `(k,)` what the compiler chooses on this graph, in the order of `decisions`; it may be dear."""

    @abstractmethod
    def apply(self, name: str, graph: Any, config: NDArray) -> Any:  # noqa: ANN401 - opaque
        """Return the graph after the pass under a flat `(d,)` row, of which the pass reads its own columns only.

        It costs no evaluation, and what is asked again gives the same object.
        """
