"""Raises a lower bound until it stalls, by passing messages and by moving prices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .prices import Prices
from .relaxation import Relaxation
from .remaining import Remaining

_PATIENCE, _WAIT, _GAIN = 200, 30, 1e-3
"""Sweeps without gain that end an ascent, and that halve its steps; what is a gain, of the gap."""
_SETTLING, _STRIDE = 20, 0.1
"""Sweeps before prices move; how far they move at first, of the gap."""


class Ascent:
    """A lower bound (`Relaxation`), with prices that move along subgradients of the Lagrangian (Held et al. 1974).

    Args:
      left: the graph.
      prices: for the capacity; they are moved.
      most: entries that cost more need not be told apart.

    Attributes:
      bound: the highest bound so far: no candidate that is left costs less.
      rises: false when it has stalled, or nothing better is left.
    """

    def __init__(self, left: Remaining, prices: Prices, most: float) -> None:
        self._left, self._prices = left, prices
        prices.forget()
        nodes = left.nodes(prices.of_values())
        self._relaxation = Relaxation(left.small, nodes, 2 * (most + prices.of_limit()))
        self.bound, self.rises = self._relaxation.bound - prices.of_limit(), True
        self._turns, self._still, self._stride = 0, 0, _STRIDE

    def sweep(self) -> NDArray[np.int64]:
        """Sweep once and return its `(d,)` candidate."""
        return self._left.expand(self._relaxation.sweep())

    def follow(self, config: NDArray[np.int64], most: float) -> NDArray[np.int64]:
        """Move the prices after a sweep.

        Args:
          config: its `(d,)` candidate.
          most: only candidates that cost less are of interest.

        Returns:
          The values that are in no such candidate.
        """
        paid = self._prices.of_limit()
        bound, few = self._relaxation.bound - paid, self._left.places(self._relaxation.least - paid >= most)
        self._turns += 1
        self._still = 0 if bound > self.bound + _GAIN * (most - self.bound) else self._still + 1
        self.bound = max(self.bound, bound)
        self.rises = self._still < _PATIENCE and self.bound < most
        if self._still and self._still % _WAIT == 0:
            self._stride /= 2
        if self.rises and self._turns > _SETTLING:
            before = self._prices.of_values()
            self._prices.ascend(config, self._stride * (most - bound))
            self._relaxation.add(self._left.change(self._prices.of_values() - before))
        return few
