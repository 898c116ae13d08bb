"""Which parameters interact, and which are alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Kind, Structure, Task


class Neighbourhood:
    """What a task declares about its parameters, in the form that the search needs.

    Attributes:
      starts, neighbours: compressed sparse rows of the interaction graph; empty rows where nothing is declared.
      alike: `(d,)` a number for each parameter, equal for alike ones: those with equal sizes and declared features,
        such as in repeated layers. All differ if nothing is declared.
      plain: `(d,)` true if the parameter can be set freely: it is in no sequence and under no constraint.
      places: arrays `(d,)` of the node that each parameter belongs to, -1 for none: one array each for producers and
        for consumers of the edges that parameters decide, and for the nodes that they decide.
    """

    def __init__(self, task: Task) -> None:
        d, structure = len(task.space), task.structure
        self.starts, self.neighbours = np.zeros(d + 1, np.int64), np.empty(0, np.int32)
        self.plain = task.space.kinds != Kind.SLOT
        for component in task.space.components:
            self.plain[component.columns] = False
        self.alike, self.places = np.arange(d), list[NDArray[np.int64]]()
        if structure is not None:
            self.starts, self.neighbours = structure.starts, structure.neighbours
            self.alike = number_rows(np.column_stack([structure.features, task.space.sizes]))
            self.places = _places(structure)

    def of(self, column: int) -> NDArray[np.int32]:
        """Return the parameters that interact with one, without itself."""
        return self.neighbours[self.starts[column] : self.starts[column + 1]]

    def around(self, columns: NDArray) -> NDArray[np.int64]:
        """Return the parameters and all that interact with them, ascending."""
        lengths = self.starts[columns + 1] - self.starts[columns]
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        reached = self.neighbours[np.repeat(self.starts[columns], lengths) + within]
        return np.unique(np.concatenate([columns, reached]))


def number_rows(features: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the same number for equal rows, compared byte by byte."""
    rows = np.ascontiguousarray(features)
    if not rows.size:
        return np.zeros(len(rows), np.int64)
    rows_as_bytes = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).reshape(-1)
    return np.unique(rows_as_bytes, return_inverse=True)[1].reshape(-1)


def _places(structure: Structure) -> list[NDArray[np.int64]]:
    places = []
    if structure.graph is not None and structure.edges is not None and len(structure.graph.edges):
        ends = structure.graph.edges[structure.edges].astype(np.int64)
        places += [np.where(structure.edges >= 0, end, -1) for end in ends.T]
    if structure.nodes is not None:
        places.append(structure.nodes.astype(np.int64))
    return places
