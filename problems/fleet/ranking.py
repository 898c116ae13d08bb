"""What the learned models of tiles and flags rank first for many kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite.fleet.library import Progress

from ..learned.kernels import SIZES, KernelGraphs, features
from ..learned.model import CostModel, embeddings, scores
from ..tensor_compiler.hardware.all_settings import fitting_settings, times
from ..tensor_compiler.hardware.kernel_settings import FLAG_SLOTS, TILE_SLOTS
from ..tensor_compiler.hardware.machine import Machine

_KERNELS = 2048
"""Kernels that are ranked at a time."""


def rank(
    model: CostModel,
    rows: NDArray[np.float64],
    graphs: KernelGraphs,
    defaults: NDArray[np.float64],
    machine: Machine,
    keep: int,
    shown: Progress,
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Return the settings that a model ranks first, and how much it expects them to save.

    Args:
      rows: `(k, KERNEL_WIDTH)` kernels that can be tuned.
      graphs: of these.
      defaults: `(k, 9)` the compiler's settings.
      keep: tiles, and flags, of each kernel.

    Returns:
      `(k, 2, keep, 9)` tiles with the compiler's flags, and flags with the best of these tiles; where a kernel has
      fewer, the best is repeated. `(k,)` the predicted share of the time that is saved.
    """
    embedded = embeddings(model.relative, graphs.cut(SIZES[-1]))
    picks, saved = np.empty((len(rows), 2, keep, 9), np.float32), np.empty(len(rows))
    for start in range(0, len(rows), _KERNELS):
        shown(f"ranking settings by the learned model: {start:,} of {len(rows):,} kernels")
        part = slice(start, start + _KERNELS)
        own = _Ranked(model, rows[part], embedded[part], machine)
        picks[part, 0], logs = own.best("tiles", TILE_SLOTS, defaults[part], defaults[part], model.slopes[0], keep)
        tiled = picks[part, 0, 0].astype(np.float64)
        picks[part, 1], more = own.best("flags", FLAG_SLOTS, tiled, tiled, model.slopes[1], keep)
        saved[part] = 1 - np.exp(logs + more)
    return picks, saved


class _Ranked:
    def __init__(
        self, model: CostModel, rows: NDArray[np.float64], embedded: NDArray[np.float32], machine: Machine
    ) -> None:
        self._model, self._rows, self._embedded, self._machine = model, rows, embedded, machine

    def best(
        self, kind: str, slots: range, given: NDArray, usual: NDArray, slope: float, keep: int
    ) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Return the `(n, keep, 9)` best settings and the `(n,)` log of the time of the best over the usual one's."""
        starts, settings = fitting_settings(self._rows, given, slots, self._machine)
        owner = np.repeat(np.arange(len(self._rows)), np.diff(starts))
        found = self._scores(kind, owner, settings)
        order = np.lexsort((found, owner))
        places = starts[:-1, None] + np.arange(keep)
        chosen = order[np.where(places < starts[1:, None], places, starts[:-1, None])]
        own = self._scores(kind, np.arange(len(self._rows)), usual)
        return settings[chosen].astype(np.float32), slope * (found[chosen[:, 0]] - own)

    def _scores(self, kind: str, owner: NDArray[np.int64], settings: NDArray[np.float64]) -> NDArray[np.float64]:
        estimates = times(self._rows, owner, settings, self._machine.analytical_model())
        given = features(self._rows[owner], settings.astype(np.float32), estimates, self._model.machine)
        return scores(self._model.relative, kind, self._embedded[owner], given, estimates)
