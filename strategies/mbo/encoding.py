"""Candidates as numbers that a regressor can learn from."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Kind, Space

WIDEST = 4096
"""Most features; a wider encoding is folded, or the models would not fit into memory and time."""

_CHUNK = 1 << 24


class Encoding:
    """Choices and slots one-hot (two values share one column), scales as a number in [0, 1] and its square.

    A parameter with a single value has no feature. More than `widest` features are folded: each output is the sum of a
    random set of them with random signs (feature hashing, Weinberger et al. 2009), an approximation that
    keeps spaces of 10^5 parameters within memory.

    Args:
      space: of the candidates.
      rng: draws which features share an output; used only when they are folded.
      widest: most features.

    Attributes:
      width: the number of features, at least 1.
    """

    def __init__(self, space: Space, rng: Generator, widest: int = WIDEST) -> None:
        smooth = (space.kinds == Kind.SCALE) & (space.sizes > 2)
        self._parameters, self._values = _indicators(space.sizes, np.flatnonzero(~smooth))
        self._scales = np.flatnonzero(smooth)
        self._spans = (space.sizes[self._scales] - 1).astype(np.float32)
        full = len(self._parameters) + 2 * len(self._scales)
        self.width, self._order = max(1, min(full, widest)), None
        if full > widest:
            self._order, self._signs = rng.permutation(full), rng.choice(np.array([-1, 1], np.float32), full)
            self._signs *= np.float32((widest / full) ** 0.5)  # a sum of many features spreads no wider than one
            self._starts = np.arange(widest) * full // widest
        self._step = max(1, _CHUNK // max(1, full))

    def encode(self, configs: NDArray) -> NDArray[np.float32]:
        """Return the `(n, width)` features of `(n, d)` candidates."""
        features = np.zeros((len(configs), self.width), np.float32)
        for start in range(0, len(configs), self._step):  # a fold's full width must not exist for all rows at once
            chunk = slice(start, start + self._step)
            self._fill(features[chunk], configs[chunk])
        return features

    def _fill(self, features: NDArray[np.float32], configs: NDArray) -> None:
        numbers = configs[:, self._scales] / self._spans
        flags = configs[:, self._parameters] == self._values
        if self._order is not None:
            full = np.concatenate([flags, numbers, numbers**2], axis=1, dtype=np.float32)[:, self._order] * self._signs
            np.add.reduceat(full, self._starts, axis=1, out=features)
        elif len(self._parameters) or len(self._scales):
            np.concatenate([flags, numbers, numbers**2], axis=1, out=features)


def _indicators(sizes: NDArray[np.int64], parameters: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray]:
    """Return parameter and value of each 0/1 feature "the parameter has the value"."""
    counts = np.where(sizes[parameters] == 2, 1, np.where(sizes[parameters] == 1, 0, sizes[parameters]))
    firsts = np.where(sizes[parameters] == 2, 1, 0)  # of two values only the second: the first is its absence
    places = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(parameters, counts), np.repeat(firsts, counts) + places
