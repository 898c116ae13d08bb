"""Which neighbours in a sequence make a candidate fail, as learned from what failed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Space

_PRIOR = 0.2  # of a pair that nobody tried, once anything failed: of four at once it is likelier that they fail
_CELLS = 4_000_000  # pairs, of 16 bytes; the sequences beyond are believed never to fail


class Failures:
    """How likely a change of a sequence runs, by the pairs of neighbours that it brings in.

    A noisy-OR (Pearl 1988, "Probabilistic reasoning in intelligent systems", section 4.3.2): each pair of values makes
    a candidate fail with a chance of its own, wherever it stands. What failed is blamed on the pairs that it brought
    in, on each in proportion to the chance that it is at fault (EM, taken in steps as in Neal & Hinton 1998). A pair
    that was seen to run is freed of its blame.

    Cost and memory are the same however many were told. In spaces without sequences everything is believed to run:
    single values say too little there (joint tasks gained 0.2 % instead of 2.6 % with them), since what fails with one
    neighbourhood runs with another.

    Attributes:
      explains: are there sequences, whose failures this accounts for?
    """

    def __init__(self, space: Space) -> None:
        spans = list(space.slots.values())
        sizes = np.array([space.sizes[start] for start, _ in spans], np.int64)
        ends = np.cumsum(sizes**2)
        known = np.flatnonzero(ends <= _CELLS)
        left = [np.arange(spans[i][0], spans[i][1] - 1) for i in known]
        lengths = [len(columns) for columns in left]
        self._left = np.concatenate([np.zeros(0, np.int64), *left])
        self.explains = len(self._left) > 0
        self._sizes = np.repeat(sizes[known], lengths)
        self._starts = np.repeat((ends - sizes**2)[known], lengths)
        self._blame, self._tried = np.zeros((2, int(ends[known[-1]]) if len(known) else 0))
        self._prior = 0.0

    def chances(self, base: NDArray, children: NDArray) -> NDArray[np.float64]:
        """Return the `(n,)` chances that `(n, d)` changes of a `(d,)` base run, if the base does."""
        rows, pairs = self._brought(base, children)
        return self._running(rows, pairs, len(children))

    def learn(self, base: NDArray, children: NDArray, failed: NDArray[np.bool_]) -> None:
        """Take which of `(n, d)` changes of a base that runs failed, `(n,)`."""
        self._prior = _PRIOR if failed.any() else self._prior
        rows, pairs = self._brought(base, children)
        failing = np.maximum(1 - self._running(rows, pairs, len(children)), 1e-12)
        blame = np.where(failed[rows], np.minimum(self._faults(pairs) / failing[rows], 1), 0)
        np.add.at(self._blame, pairs, blame)
        np.add.at(self._tried, pairs, 1)
        self._blame[pairs[~failed[rows]]] = 0

    def _running(self, rows: NDArray[np.int64], pairs: NDArray[np.int64], n: int) -> NDArray[np.float64]:
        return np.exp(np.bincount(rows, np.log1p(-self._faults(pairs)), n))

    def _faults(self, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the chance that each pair makes a candidate fail: its share of blame, and the prior as one more."""
        return (self._blame[pairs] + self._prior) / (self._tried[pairs] + 1)

    def _brought(self, base: NDArray, children: NDArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows of the pairs that the base has not, and these, each once a row."""
        pairs = self._pairs(children)
        rows, places = np.nonzero(~np.isin(pairs, self._pairs(base[None])))
        keys = np.unique(rows * max(1, len(self._blame)) + pairs[rows, places])
        return keys // max(1, len(self._blame)), keys % max(1, len(self._blame))

    def _pairs(self, configs: NDArray) -> NDArray[np.int64]:
        left, right = configs[:, self._left].astype(np.int64), configs[:, self._left + 1]
        return self._starts + left * self._sizes + right
