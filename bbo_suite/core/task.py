"""What a strategy may know of a problem: never the problem itself, so every evaluation goes through the budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from .multipass import MultiPass
from .space import Space

if TYPE_CHECKING:
    from .strategy import Strategy


@dataclass(frozen=True)
class Graph:
    """The computation graph that a compiler works on.

    Attributes:
      node_features: `(n, f)` float32, one row a node.
      feature_names: `f` names.
      edges: `(m, 2)` int32, producer and consumer.
    """

    node_features: NDArray[np.float32]
    feature_names: tuple[str, ...]
    edges: NDArray[np.int32]


@dataclass(frozen=True)
class Structure:
    """What a problem declares about its parameters.

    Attributes:
      starts, neighbours: the parameters that interact with parameter i are
        `neighbours[starts[i]:starts[i + 1]]` (compressed sparse rows, symmetric, without i itself).
      features: `(d, f)` float32, one row a parameter.
      feature_names: `f` names.
      graph: the computation graph, if there is one.
      edges: `(d,)` the edge of the graph that each parameter decides, -1 for none.
      nodes: `(d,)` the node of the graph that each parameter decides, -1 for none.
      passes: the chain of passes that the parameters belong to, if there is one.
    """

    starts: NDArray[np.int64]
    neighbours: NDArray[np.int32]
    features: NDArray[np.float32]
    feature_names: tuple[str, ...]
    graph: Graph | None = None
    edges: NDArray[np.int32] | None = None
    nodes: NDArray[np.int32] | None = None
    passes: MultiPass | None = None


class Strategies(Protocol):
    """Finds strategies by id, for a strategy that runs others; `bbo_suite.registry.Registry` is one."""

    def strategies(self) -> Mapping[str, Callable[[], type[Strategy]]]:
        """Return the loader of each strategy by id."""
        ...

    def strategy(self, name: str) -> type[Strategy]:
        """Return a strategy's class by its id.

        Raises:
          UserError: there is none.
        """
        ...


@dataclass(frozen=True)
class Task:
    """A problem as a strategy sees it.

    Attributes:
      problem: the id, for messages only.
      space: the candidates.
      default: `(d,)` what the compiler does on its own.
      unit: of the values, which are minimised.
      structure: what the problem declares about itself; None if it declares nothing or the strategy is black-box.
      strategies: those that the study knows, plugins included, for a strategy that runs others; None for those that
        are installed.
    """

    problem: str
    space: Space
    default: NDArray
    unit: str
    structure: Structure | None = None
    strategies: Strategies | None = None
