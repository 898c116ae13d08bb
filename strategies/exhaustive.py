"""Exhaustive search: every candidate once, in a seeded order, under the same budget as every other strategy."""

from __future__ import annotations

from numpy.typing import NDArray

from bbo_suite import Enumeration, Strategy


class Exhaustive(Strategy):
    """Tries the whole space in an order that the seed shuffles."""

    _position = 0

    def ask(self, n: int) -> NDArray:
        """Return the next candidates of the order, no rows when all have been tried."""
        if self._position == 0:
            self._order = Enumeration(self.task.space, self.rng)
        configs = self._order.rows(self._position, self._position + n)
        self._position += len(configs)
        return configs
