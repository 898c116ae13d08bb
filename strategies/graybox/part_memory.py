"""The parts that were met: their features, their families, and what they cost on average."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Parts, UserError

_LEAST = 1e-6
"""The smallest cost that models tell from 0, as a share of the first candidate's."""


class PartMemory:
    """The distinct parts seen so far, m in all.

    A part may be measured more than once and differ, because of noise. A part that failed stays a failure.

    Args:
      width: the number f of features.
    """

    def __init__(self, width: int) -> None:
        self._rows: dict[int, int] = {}
        self._features, self._families = np.empty((0, width)), np.empty(0, np.int64)
        self._costs, self._logs, self._repeats = np.empty(0), np.empty(0), np.empty(0)
        self._squares, self._least = 0.0, 0.0

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def keys(self) -> NDArray[np.uint64]:
        """`(m,)`."""
        return np.fromiter(self._rows, np.uint64, len(self))

    @property
    def features(self) -> NDArray[np.float64]:
        """`(m, f)`."""
        return self._features[: len(self)]

    @property
    def families(self) -> NDArray[np.int64]:
        """`(m,)`."""
        return self._families[: len(self)]

    @property
    def repeats(self) -> NDArray[np.float64]:
        """`(m,)` how often each was measured; 0 for a part of a candidate that is not evaluated yet."""
        return self._repeats[: len(self)]

    @property
    def costs(self) -> NDArray[np.float64]:
        """`(m,)` mean costs; inf for a part that failed, nan for one that was not measured."""
        with np.errstate(invalid="ignore"):
            return self._costs[: len(self)] / self.repeats

    @property
    def logs(self) -> NDArray[np.float64]:
        """`(m,)` mean logarithms of costs; inf for a part that failed, nan for one that was not measured."""
        with np.errstate(invalid="ignore"):
            return self._logs[: len(self)] / self.repeats

    @property
    def noise(self) -> float:
        """The variance of the logarithm of a cost between measurements of one part; 0 if all were equal."""
        return self._squares / max(1.0, float(np.maximum(self.repeats - 1, 0).sum()))

    def meet(self, keys: NDArray[np.uint64], features: NDArray[np.float64], families: NDArray[np.int64]) -> None:
        """Add `(k,)` parts that candidates consist of, unless they are known."""
        new = [(row, key) for row, key in enumerate(keys.tolist()) if key not in self._rows]
        for row, key in new:
            place = self._rows.setdefault(key, len(self._rows))
            self._grow(len(self._rows))
            self._features[place], self._families[place] = features[row], families[row]

    def _grow(self, m: int) -> None:
        """Make room for m parts, and for as many again."""
        if m > len(self._costs):
            more = np.zeros(2 * m - len(self._costs))
            self._costs, self._logs, self._repeats = (
                np.append(array, more) for array in (self._costs, self._logs, self._repeats)
            )
            self._families = np.append(self._families, more.astype(np.int64))
            self._features = np.concatenate([self._features, np.zeros((len(more), self._features.shape[1]))])

    def rows(self, parts: Parts) -> NDArray[np.int64]:
        """Return where the parts of candidates are remembered.

        Raises:
          UserError: one was never met, so it is not a part that the problem describes.
        """
        try:
            return np.fromiter((self._rows[key] for key in parts.keys.tolist()), np.int64, len(parts.keys))
        except KeyError as error:
            raise UserError(
                f"the problem tells the cost of part {error.args[0]:016x}, but does not describe it as a part of these"
                " candidates; `python -m bbo_suite check FILE` tests what a problem describes"
            ) from None

    def learn(self, parts: Parts) -> None:
        """Take the costs of parts that candidates consist of."""
        self._least = self._least or _LEAST * float(parts.sums()[0])
        rows = self.rows(parts)
        logs = np.log(np.maximum(parts.costs, self._least or 1.0))
        self._squares += self._spread(rows, logs)
        for sums, numbers in ((self._costs, parts.costs), (self._logs, logs), (self._repeats, np.ones(len(rows)))):
            sums += np.bincount(rows, numbers, len(sums))

    def _spread(self, rows: NDArray[np.int64], logs: NDArray[np.float64]) -> float:
        """Return by how much the sum of squares within parts grows with new measurements."""
        finite = np.isfinite(logs)
        rows, logs = rows[finite], logs[finite]
        size = len(self._costs)
        n, total = np.bincount(rows, minlength=size), np.bincount(rows, logs, size)
        known = self._repeats > 0
        mean = total / np.maximum(n, 1)
        with np.errstate(invalid="ignore"):
            gap = np.where(known & (n > 0), mean - self._logs / np.maximum(self._repeats, 1), 0.0)
        between = np.where(np.isfinite(gap), gap, 0.0) ** 2 * n * self._repeats / np.maximum(n + self._repeats, 1)
        return float(((logs - mean[rows]) ** 2).sum() + between.sum())
