"""A model of which neighbours in a sequence make a candidate fail, learned from failures."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Space

_PRIOR = 0.2  # chance that an untried pair fails, once anything failed: four such pairs fail more often than not
_RUN = 6.0  # failures that outweigh one success of a pair: a failed candidate has other suspect pairs, too
_STEPS = 3  # steps of EM for each batch; it continues from the last estimate
_MOST = 10_000  # suspects that are kept, those of the latest failures
_CELLS = 1_000_000  # pairs in the table; sequences beyond it are assumed never to fail


class Failures:
    """The probability that a change of a sequence runs, given the pairs of neighbours that it introduces.

    A noisy-OR (Pearl 1988, "Probabilistic reasoning in intelligent systems", section 4.3.2): each pair of values makes
    a candidate fail with a probability of its own, wherever it stands. Which of the new pairs caused a failure is not
    observed: EM (Dempster et al. 1977) divides the blame by their probabilities, and less falls on pairs that ran.

    Time and memory are bounded, however many candidates were evaluated. In spaces without sequences every candidate is
    assumed to run: single values predict too little there (with them a joint task gained 0.2 % instead of 2.6 %),
    because a value that fails next to one neighbour runs next to another.
    """

    def __init__(self, space: Space) -> None:
        spans = list(space.slots.values())
        sizes = np.array([space.sizes[start] for start, _ in spans], np.int64)
        ends = np.cumsum(sizes**2)
        tabled = np.flatnonzero(ends <= _CELLS)
        left = [np.arange(spans[i][0], spans[i][1] - 1) for i in tabled]
        lengths = [len(columns) for columns in left]
        self._left = np.concatenate([np.zeros(0, np.int64), *left])
        self._sizes = np.repeat(sizes[tabled], lengths)
        self._starts = np.repeat((ends - sizes**2)[tabled], lengths)
        self._cells = int(ends[tabled[-1]]) if len(tabled) else 1
        self._blame, self._failed, self._ran = np.zeros((3, self._cells))
        self._prior, self._evaluated = 0.0, 0
        self._cases, self._suspects = np.zeros((2, 0), np.int64)

    def chances(self, base: NDArray, children: NDArray) -> NDArray[np.float64]:
        """Return the `(n,)` probabilities that `(n, d)` changes of a `(d,)` base run, if the base does."""
        rows, pairs = self._brought(base, children)
        return np.exp(np.bincount(rows, np.log1p(-self._faults(pairs)), len(children)))

    def learn(self, base: NDArray, children: NDArray, failed: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Learn which of `(n, d)` changes of a base that runs failed; return which failures have suspects, `(n,)`."""
        rows, pairs = self._brought(base, children)
        np.add.at(self._ran, pairs[~failed[rows]], 1)
        cases = np.append(self._cases, self._evaluated + rows[failed[rows]])
        suspects = np.append(self._suspects, pairs[failed[rows]])
        forgotten = suspects[:-_MOST]
        self._blame[forgotten] = self._failed[forgotten] = 0
        self._cases, self._suspects = cases[-_MOST:], suspects[-_MOST:]
        self._evaluated += len(children)
        if len(self._suspects):
            self._prior = _PRIOR
            self._share_blame()
        return failed & (np.bincount(rows, minlength=len(children)) > 0)

    def _share_blame(self) -> None:
        """Take steps of EM: divide the blame by the failure probabilities, and estimate these from the blame."""
        cases = np.cumsum(np.diff(self._cases, prepend=self._cases[:1]) != 0)
        pairs, places = np.unique(self._suspects, return_inverse=True)
        self._failed[pairs] = np.bincount(places)
        for _ in range(_STEPS):
            faults = self._faults(pairs)[places]
            failing = -np.expm1(np.bincount(cases, np.log1p(-faults)))
            self._blame[pairs] = np.bincount(places, faults / failing[cases])

    def _faults(self, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the probability that each pair makes a candidate fail: blame / trials, with the prior as one trial."""
        return (self._blame[pairs] + self._prior) / (self._failed[pairs] + _RUN * self._ran[pairs] + 1)

    def _brought(self, base: NDArray, children: NDArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the pairs that children have and the base has not: rows, ascending, and pairs, each once per row."""
        pairs = self._pairs(children)
        rows, places = np.nonzero(~np.isin(pairs, self._pairs(base[None])))
        return np.divmod(np.unique(rows * self._cells + pairs[rows, places]), self._cells)

    def _pairs(self, configs: NDArray) -> NDArray[np.int64]:
        left, right = configs[:, self._left].astype(np.int64), configs[:, self._left + 1]
        return self._starts + left * self._sizes + right
