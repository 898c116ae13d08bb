"""The costs of measured candidates: in small spaces no candidate is measured twice."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..archive import Archive
from .descent import Asking, Costs

_IDLE, _OTHERS = 50, 32  # rounds without a new candidate before others are measured; how many others


class CostCache:
    """The costs of all candidates that were measured, by this search or by others.

    Args:
      archive: the proposed candidates.
      report: called with the candidates that are measured when the search proposes nothing new, and their costs.
    """

    def __init__(self, archive: Archive, report: Callable[[NDArray, Costs], None]) -> None:
        self._archive, self._report = archive, report
        self._known: dict[str, float] = {}

    def learn(self, configs: NDArray, costs: Costs) -> None:
        """Remember `(n, d)` candidates with their costs."""
        digests = self._archive.digests(configs)
        self._archive.add(digests)
        self._known.update(zip(digests, costs.tolist(), strict=True))

    def without_repeats(self, search: Asking) -> Asking:
        """Pass on the candidates that a search asks for, except those whose costs are known.

        If the search no longer asks for anything new, other candidates are measured. When the whole space was measured,
        no rows are yielded.
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
            self._report(others, costs)
