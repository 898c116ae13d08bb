"""The true best settings of every kernel of a library, which an oracle knows and other policies are compared with."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from .kept import kept_arrays
from .library import KernelLibrary, Progress

_KERNELS = 1024
"""Kernels whose settings are held at a time."""


@dataclass(frozen=True)
class Optimum:
    """The best that the stages can find without noise.

    Attributes:
      settings: `(k, w)`.
      gain: `(k,)` the share of the default's time that they save; 0 where nothing can be tuned.
    """

    settings: NDArray[np.float64]
    gain: NDArray[np.float64]


def optimum(library: KernelLibrary, version: int, shown: Progress) -> Optimum:
    """Return the best settings with a compiler; they are computed once and kept in the user's cache."""
    name = f"optimum-{library.fingerprint()}-{version}"
    return Optimum(**kept_arrays(name, lambda: asdict(_search(library, version, shown))))


def _search(library: KernelLibrary, version: int, shown: Progress) -> Optimum:
    usual, tunable = library.default_seconds(version), np.flatnonzero(library.tunable(version))
    best, gain = library.defaults(version, np.arange(len(usual))).copy(), np.zeros(len(usual))
    for start in range(0, len(tunable), _KERNELS):
        shown(f"finding the true best settings: {start:,} of {len(tunable):,} kernels")
        part = tunable[start : start + _KERNELS]
        chosen = best[part]
        for stage in range(library.counts.shape[1]):
            starts, settings = library.compiled(version, part, chosen, stage)
            owner = np.repeat(np.arange(len(part)), np.diff(starts))
            seconds = library.seconds(version, part[owner], settings)
            first = np.lexsort((seconds, owner))[starts[:-1]]
            chosen = settings[first]
        better = seconds[first] < usual[part]
        best[part[better]], gain[part[better]] = chosen[better], 1 - seconds[first][better] / usual[part[better]]
    return Optimum(best, gain)
