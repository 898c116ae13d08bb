"""How much more often the changes that models chose improve a state than random ones do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_PRIOR = 0.5
_FEWEST = 20


class Hits:
    """Counts improving changes, chosen by models and random, since models were fitted last.

    A high R^2 says little: losses are predictable, rare gains much less. What a search needs is that more of the
    chosen changes improve than of random ones.

    Attributes:
      ratio: the improving share of the chosen changes over that of the random ones, between the last two fits; 1 if
        the models know nothing, None until it is known. Half an improvement is added to both counts.
    """

    def __init__(self) -> None:
        self._improved, self._tried = np.zeros((2, 2))
        self.ratio: float | None = None

    def learn(self, improved: NDArray[np.bool_], chosen: int) -> None:
        """Add `(k,)` changes, of which the first were chosen by models; true if they cost less than the state."""
        parts = improved[:chosen], improved[chosen:]
        self._improved += [part.sum() for part in parts]
        self._tried += [len(part) for part in parts]

    def close(self) -> None:
        """Set the ratio, if there were enough changes of both kinds, and begin to count anew."""
        if self._tried.min() >= _FEWEST:
            chosen, random = (self._improved + _PRIOR) / (self._tried + 2 * _PRIOR)
            self.ratio = float(chosen / random)
            self._improved, self._tried = np.zeros((2, 2))
