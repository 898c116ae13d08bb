"""Block search: the program is cut into small blocks, and each is searched alone while the others stay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Graph, Level, Task, option

from .needs import graph_of
from .planned import Planned
from .single_changes import SingleChanges


@dataclass(frozen=True)
class PetOptions:
    """Options of `published:pet`."""

    threshold: int = option(3, "inputs and outputs from which on a node is a cut (its code)", low=1, high=1000)
    size: int = option(5, "largest number of nodes of a block (its code)", low=1, high=10_000)
    depth: int = option(5, "largest number of changes, one after another, in a block (its code)", low=1, high=1000)
    width: int = option(5, "candidates of each depth that are changed further (its code)", low=1, high=10_000)


class Pet(Planned):
    """Search of blocks between cuts of the graph, in the style of PET (Wang et al. 2021).

    Reproduced, from its public code: the graph is cut at nodes with three or more inputs and outputs, into blocks of at
    most five nodes; in each block, changes of changes are tried up to a depth of five, five of each depth go on, and
    the best is kept.

    Different here: a change is another value of one of the block's parameters; each candidate is measured as a whole,
    with the other blocks as they are; blocks are searched in turn until none improves, and then the search ends.

    Not reproduced: what the system is known for, programs that are equal only in part and are then corrected. That
    belongs to the space, not to the search, so this is the search by blocks alone.
    """

    Options: ClassVar[type] = PetOptions
    level: ClassVar[Level] = Level.STRUCTURE
    options: PetOptions

    def __init__(self, task: Task, budget: int, rng: Generator, options: PetOptions) -> None:
        graph, nodes = graph_of(task, "published:pet")
        super().__init__(task, budget, rng, options)
        self._changes = SingleChanges(task.space)
        self._blocks = _blocks(graph, nodes, self.moves.movable, options)
        self._best: NDArray = task.default.astype(task.space.dtype)
        self._cost = np.inf
        self._block, self._unchanged, self._depth = -1, 0, options.depth
        self._front: list[NDArray] = []

    def plan(self) -> NDArray:
        """Return the changes of the next depth of a block; none when no block has improved since it was searched."""
        while self._unchanged <= len(self._blocks) and self._blocks:
            if not self._front or self._depth == self.options.depth:
                self._block = (self._block + 1) % len(self._blocks)
                self._unchanged, self._depth, self._front = self._unchanged + 1, 0, [self._best]
            self._depth += 1
            columns = self._blocks[self._block]
            children = self.new(np.concatenate([self._changes.of(row, columns) for row in self._front]))
            if len(children):
                return children
            self._front = []
        return self._best[None][:0]

    def learn(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Keep the best, and let some of this depth be changed further."""
        order = np.argsort(values, kind="stable")[: self.options.width]
        order = order[np.isfinite(values[order])]
        self._front = [configs[place].copy() for place in order]
        if len(order) and values[order[0]] < self._cost:
            self._best, self._cost, self._unchanged = self._front[0], float(values[order[0]]), 0


def _blocks(
    graph: Graph, nodes: NDArray[np.int64], movable: NDArray[np.int64], options: PetOptions
) -> list[NDArray[np.int64]]:
    """Return the parameters of each block; a cut is a block of its own, and so are those that decide no node."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = len(graph.node_features)
    cut = np.bincount(graph.edges.ravel(), minlength=n) >= options.threshold
    inner = graph.edges[~cut[graph.edges].any(axis=1)]
    links = coo_array((np.ones(len(inner)), (inner[:, 0], inner[:, 1])), shape=(n, n))
    of = connected_components(links, directed=False)[1]
    order = np.lexsort((np.arange(n), of))
    firsts = np.flatnonzero(np.diff(of[order], prepend=-1))
    places = np.arange(n) - np.repeat(firsts, np.diff(np.append(firsts, n)))  # of each node in its component
    block = np.empty(n, np.int64)
    block[order] = of[order] * n + places // options.size
    keys = np.where(nodes[movable] < 0, -1, block[nodes[movable]])
    order = np.argsort(nodes[movable], kind="stable")
    found: dict[int, list[int]] = {}
    for column, key in zip(movable[order].tolist(), keys[order].tolist(), strict=True):
        found.setdefault(key, []).append(column)
    return [np.array(columns) for columns in found.values()]
