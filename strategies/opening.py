"""Random candidates before a search starts from the default: where the default of a sequence says next to nothing."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Task

_SHARE, _MOST = 5, 20
"""A fifth of the budget, and this many candidates at most."""


class Opening:
    """The default, and then random candidates, if most slots of a sequence have one value by default.

    Such a default is nearly empty, like one pipeline and no other pass: a change of it adds a pass or two, and random
    sequences, which have many, are often better. Where no default is so, nothing is drawn.

    Attributes:
      left: candidates that are still to be drawn.
      drawn: how many were drawn last.
    """

    def __init__(self, task: Task, budget: int, rng: Generator) -> None:
        self._task, self._rng = task, rng
        self.left = 1 + min(_MOST, budget // _SHARE) if any(map(self._is_empty, task.space.slots.values())) else 0
        self._begun, self.drawn = False, 0

    def _is_empty(self, slots: tuple[int, int]) -> bool:
        values = self._task.default[slice(*slots)]
        return 2 * int(np.unique(values, return_counts=True)[1].max()) > len(values) > 1

    def draw(self, n: int) -> NDArray:
        """Return up to `n` candidates; none if the opening is over."""
        self.drawn = min(n, self.left)
        self.left -= self.drawn
        rows = self._task.space.sample(self.drawn, self._rng)
        if self.drawn and not self._begun:
            rows[0], self._begun = self._task.default, True
        return rows
