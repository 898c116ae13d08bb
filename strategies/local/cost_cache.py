"""Small spaces: what was measured is not measured again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..archive import Archive
from .descent import Asking, Costs

_IDLE, _OTHERS = 50, 32  # rounds in which all was known, before something else is tried; how much of it


class CostCache:
    """The costs of all that was measured, by this search or by others.

    Args:
      archive: of what was proposed.
      found: is given the candidates that are measured because a search asks for nothing new any more.
    """

    def __init__(self, archive: Archive, found: Callable[[NDArray, Costs], None]) -> None:
        self._archive, self._found = archive, found
        self._known: dict[str, float] = {}

    def learn(self, configs: NDArray, costs: Costs) -> None:
        """Remember `(n, d)` candidates with their costs."""
        digests = self._archive.digests(configs)
        self._archive.add(digests)
        self._known.update(zip(digests, costs.tolist(), strict=True))

    def without_repeats(self, search: Asking) -> Asking:
        """Pass on what a search asks without the candidates whose costs are known; these it is told at once.

        Where a search asks for nothing new any more, candidates that are left are measured. Ends by asking for none
        when the whole space was.
        """
        rows, idle = next(search), 0
        while True:
            digests = self._archive.digests(rows)
            new = rows[self._archive.claim(rows, len(rows))]
            idle = 0 if len(new) else idle + 1
            if len(new):
                self.learn(new, (yield new))
            elif idle > _IDLE:
                yield from self._measure_others()
            rows = search.send(np.array([self._known[digest] for digest in digests]))

    def _measure_others(self) -> Asking:
        others = self._archive.others(_OTHERS)
        costs = yield others
        self.learn(others, costs)
        if len(others):
            self._found(others, costs)
