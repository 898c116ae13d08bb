"""Graphs of parameters: pairs that interact, components, and the nodes of a program that parameters decide."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Structure


def pairs(starts: NDArray[np.int64], neighbours: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the two parameters of each interaction, each once, the smaller first; see `Structure.starts`."""
    first, second = np.repeat(np.arange(len(starts) - 1), np.diff(starts)), neighbours.astype(np.int64)
    once = first < second
    return first[once], second[once]


def components(d: int, first: NDArray, second: NDArray) -> NDArray[np.int64]:
    """Return `(d,)` the component of each node of a graph, given the ends of its edges; the first is that of node 0."""
    from scipy.sparse import coo_array  # it takes long to import: only those who need it pay for it
    from scipy.sparse.csgraph import connected_components

    edges = coo_array((np.ones(len(first)), (first, second)), shape=(d, d))
    return connected_components(edges, directed=False)[1].astype(np.int64)


def differing(first: NDArray, second: NDArray, differs: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return `(d,)` the component of each node that differs, -1 for the others (partition crossover).

    From Whitley et al. 2009: parameters in which two candidates differ fall into components that no edge joins, so that
    each gains on its own.
    """
    inner = differs[first] & differs[second]
    labels = components(len(differs), first[inner], second[inner])
    found = np.full(len(differs), -1)
    found[differs] = np.unique(labels[differs], return_inverse=True)[1]
    return found


def decided_nodes(structure: Structure) -> list[NDArray[np.int64]]:
    """Return arrays `(d,)` of the node that each parameter decides, -1 for none.

    There is one each for the producers and the consumers of the edges that parameters decide, and one for the nodes
    that they decide, as far as they are declared.
    """
    found = []
    if structure.graph is not None and structure.edges is not None and len(structure.graph.edges):
        ends = structure.graph.edges[structure.edges].astype(np.int64)
        found += [np.where(structure.edges >= 0, end, -1) for end in ends.T]
    if structure.nodes is not None:
        found.append(structure.nodes.astype(np.int64))
    return found
