"""Candidates that contain as many parts as possible that were not measured yet."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for
from bbo_suite.parts.table import PairDecomposition

compiled = compiled_for(__file__)


class Exploration:
    """Draws candidates greedily: each node, in random order, takes the value with the most unknown parts.

    These are its own parts, and its pairs with the nodes before it. Parts of a candidate that was drawn count as known.
    """

    def __init__(self, parts: PairDecomposition, rng: Generator) -> None:
        self._parts, self._rng = parts, rng
        paired = np.flatnonzero(parts.second >= 0)
        ends = np.concatenate([parts.first, parts.second[paired]])
        order = np.argsort(ends, kind="stable")
        self._owned = np.concatenate([np.arange(len(parts.first)), paired])[order]
        self._rows = np.searchsorted(ends[order], np.arange(len(parts.sizes) + 1))
        self._known = np.zeros(parts.length, bool)

    def draw(self) -> tuple[NDArray[np.int64], int]:
        """Return a `(d,)` candidate and how many unknown parts it has."""
        parts, order = self._parts, self._rng.permutation(len(self._parts.sizes))
        config = np.full(len(order), -1)
        first_tried = self._rng.integers(0, parts.sizes)
        found = _draw(
            order, first_tried, parts.sizes, parts.first, parts.second, parts.starts, self._rows, self._owned,
            self._known, config,
        )  # fmt: skip
        return config, found


@compiled()
def _draw(
    order: NDArray,
    first_tried: NDArray,
    sizes: NDArray,
    first: NDArray,
    second: NDArray,
    starts: NDArray,
    rows: NDArray,
    owned: NDArray,
    known: NDArray,
    config: NDArray,
) -> int:
    total = 0
    for i in order:
        best, most = first_tried[i], -1
        for k in range(sizes[i]):
            a = (first_tried[i] + k) % sizes[i]
            config[i] = a
            unknown = 0
            for q in range(rows[i], rows[i + 1]):
                place = _place(owned[q], sizes, first, second, starts, config)
                unknown += place >= 0 and not known[place]
            if unknown > most:
                best, most = a, unknown
        config[i] = best
        total += most
        for q in range(rows[i], rows[i + 1]):
            place = _place(owned[q], sizes, first, second, starts, config)
            if place >= 0:
                known[place] = True
    return total


@compiled(runtime=False)
def _place(part: int, sizes: NDArray, first: NDArray, second: NDArray, starts: NDArray, config: NDArray) -> int:
    """Return the key of a part; -1 if one of its nodes has no value yet."""
    a, j = config[first[part]], second[part]
    if j < 0:
        return starts[part] + a
    return -1 if a < 0 or config[j] < 0 else starts[part] + a * sizes[j] + config[j]
