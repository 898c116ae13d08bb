"""Memory for an elimination: the tables that take the place of eliminated nodes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .network import Network

MOST_NEAR, MOST_FACTORS = 24, 96
"""Neighbours of a node that is eliminated, and edges and tables that it has."""


class Work(NamedTuple):
    """Memory for one elimination.

    Attributes:
      alive: `(d,)` true for nodes that are neither eliminated nor kept.
      seen: `(d,)` the number of the last visit of each node.
      used: `(m,)` true for edges that are part of an eliminated table.
      near: the neighbours of the node that is eliminated.
      scopes, begins, lengths: the nodes of derived table f are `scopes[begins[f]:begins[f] + lengths[f]]`.
      offsets: where each derived table begins in `costs`; -1 once it is part of another.
      heads, nexts, holders: the derived tables of each node, as linked lists.
      costs: the derived tables.
      choices: the best value of an eliminated node for each entry of its table.
    """

    alive: NDArray[np.bool_]
    seen: NDArray[np.int64]
    used: NDArray[np.bool_]
    near: NDArray[np.int64]
    scopes: NDArray[np.int64]
    begins: NDArray[np.int64]
    lengths: NDArray[np.int64]
    offsets: NDArray[np.int64]
    heads: NDArray[np.int64]
    nexts: NDArray[np.int64]
    holders: NDArray[np.int64]
    costs: NDArray[np.float64]
    choices: NDArray[np.int16]


def work(network: Network, entries: int) -> Work:
    """Return memory for tables of up to so many entries together."""
    d, integers = len(network.sizes), np.int64
    scopes = MOST_NEAR * d + 64
    return Work(
        np.empty(d, bool),
        np.empty(d, integers),
        np.empty(len(network.first), bool),
        np.empty(d + 1, integers),
        np.empty(scopes, integers),
        np.empty(d, integers),
        np.empty(d, integers),
        np.empty(d, integers),
        np.empty(d, integers),
        np.empty(scopes, integers),
        np.empty(scopes, integers),
        np.empty(entries),
        np.empty(entries, np.int16),
    )
