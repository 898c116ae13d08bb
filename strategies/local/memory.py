"""Small spaces: what was measured is not measured again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..archive import Archive
from .climbing import Asking, Costs

_IDLE, _OTHERS = 50, 32  # rounds in which all was known, before something else is tried; how much of it


def without_repeats(search: Asking, archive: Archive, found: Callable[[NDArray, Costs], None]) -> Asking:
    """Pass on what a search asks without the candidates whose costs are known; these it is told at once.

    Where a search asks for nothing new any more, candidates that are left are measured and given to `found`. Ends by
    asking for none when the whole space was.
    """
    known: dict[str, float] = {}
    rows, idle = next(search), 0
    while True:
        digests = archive.digests(rows)
        new = archive.claim(rows, len(rows))
        idle = 0 if len(new) else idle + 1
        if len(new):
            known.update(zip([digests[i] for i in new], (yield rows[new]), strict=True))
        elif idle > _IDLE:
            others = archive.others(_OTHERS)
            costs = yield others
            known.update(zip(archive.digests(others), costs, strict=True))
            if len(others):
                found(others, costs)
        rows = search.send(np.array([known[digest] for digest in digests]))
