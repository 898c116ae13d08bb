"""The order of passes that the synthetic compiler uses for every program, as `-O2` does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .program import Program


def pipeline(programs: Sequence[Program], slots: int, once: bool) -> NDArray[np.int64]:
    """Return `(slots,)` passes that shrink the programs on average.

    The passes are taken one after another, round after round. Each is inserted where it shrinks the programs most
    (Nawaz, Enscore and Ham 1983), or skipped in this round if it does not shrink them. Slots that stay empty do
    nothing. With `once` there is a single round, and every pass is inserted.
    """
    order = np.zeros(0, np.int64)
    turns = range(len(programs[0].rewrites.names))
    while True:
        length = len(order)
        for p in turns[0 if once else 1 :]:
            if len(order) < slots:
                order = _inserted(programs, order, p, once)
        if len(order) in (length, slots):
            return np.concatenate([order, np.zeros(slots - len(order), np.int64)])


def _inserted(programs: Sequence[Program], order: NDArray[np.int64], p: int, always: bool) -> NDArray[np.int64]:
    longer = np.stack([np.insert(order, place, p) for place in range(len(order) + 1)])
    shares = _shares(programs, longer)
    best = int(shares.argmin())
    return longer[best] if always or shares[best] < _shares(programs, order[None])[0] - 1e-9 else order


def _shares(programs: Sequence[Program], orders: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return `(b,)` the instructions after each order as a share of those before, summed over programs."""
    return np.sum([p.run(orders) / p.run(orders[:1, :0]) for p in programs], axis=0)
