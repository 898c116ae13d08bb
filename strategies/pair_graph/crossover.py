"""Partition crossover: the better of two candidates in each part of the graph in which they differ."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from bbo_suite.core.task import Capacity

from .network import Pairs
from .prices import used

_TRIED = 100
"""Components that are tried one after another where not all together keep the capacity."""


def cross(
    pairs: Pairs, capacity: Capacity | None, best: NDArray[np.int64], other: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the cheapest mixture of two `(d,)` candidates (partition crossover, Whitley et al. 2009).

    The nodes in which they differ fall into components that no edge joins, so that each gains on its own. Where the
    capacity has no room for all that gain, those that gain most come first.

    Args:
      pairs: the costs.
      capacity: which `best` keeps.
      best: a candidate.
      other: any other one.
    """
    labels = _components(pairs, best != other)
    gains = _gains(pairs, best, other, labels)
    good = np.argsort(gains, kind="stable")[: np.count_nonzero(gains < 0)]
    mixed = np.where(np.isin(labels, good), other, best)
    if capacity is None or used(capacity, mixed).max() <= capacity.limit:
        return mixed
    return np.where(np.isin(labels, _fitting(capacity, best, other, labels, good[:_TRIED])), other, best)


def _components(pairs: Pairs, differs: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return `(d,)` the number of the component of each node that differs, -1 for the others."""
    inner = differs[pairs.first] & differs[pairs.second]
    d, ends = len(differs), (pairs.first[inner], pairs.second[inner])
    labels = connected_components(coo_array((np.ones(len(ends[0])), ends), shape=(d, d)), directed=False)[1]
    found = np.full(d, -1)
    found[differs] = np.unique(labels[differs], return_inverse=True)[1]
    return found


def _gains(pairs: Pairs, best: NDArray, other: NDArray, labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return by how much each component costs more with the other candidate's values."""
    count, nodes = int(labels.max()) + 1, np.flatnonzero(labels >= 0)
    places = pairs.firsts[:-1][nodes]
    more = pairs.nodes[places + other[nodes]] - pairs.nodes[places + best[nodes]]
    owners = np.maximum(labels[pairs.first], labels[pairs.second])
    edges = np.flatnonzero(owners >= 0)
    first, second, starts = pairs.first[edges], pairs.second[edges], pairs.starts[edges]
    after, before = (
        pairs.tables[starts + config[first] * pairs.sizes[second] + config[second]] for config in (other, best)
    )
    gains = np.bincount(owners[edges], after - before, count).astype(np.float64)
    return gains + np.bincount(labels[nodes], more, count)


def _fitting(
    capacity: Capacity, best: NDArray, other: NDArray, labels: NDArray[np.int64], good: NDArray[np.int64]
) -> list[int]:
    """Return those of some components that fit together, each next one if there is room."""
    room, firsts = capacity.limit - used(capacity, best), capacity.firsts[:-1]
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(labels.max() + 2))
    taken: list[int] = []
    for component in good.tolist():
        nodes = order[starts[component] : starts[component + 1]]
        nodes = nodes[capacity.begins[nodes] < capacity.ends[nodes]]
        more = capacity.usages[firsts[nodes] + other[nodes]] - capacity.usages[firsts[nodes] + best[nodes]]
        change = np.zeros(len(room), np.int64)
        np.add.at(change, capacity.begins[nodes], more)
        np.add.at(change, capacity.ends[nodes], -more)
        change = np.cumsum(change)
        if (change <= room).all():
            room, taken = room - change, [*taken, component]
    return taken
