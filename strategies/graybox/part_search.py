"""The search for candidates that are good by what their parts are believed to cost."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Parts, Space, Structure
from bbo_suite.parts.cursor import Cursor

from .beliefs import Beliefs
from .options import GrayBoxOptions
from .part_memory import PartMemory
from .part_model import PartModel
from .price_table import is_crowded, new_table
from .proposals import WIDEST, proposals
from .virtual_search import Room, anneal, reserve

BATCH = 20
_FEWEST = 20
_GROWTH = 2.0
_ATTEMPTS = 3
_SLOTS = 1 << 15
_CAUTION = 2.0
_PENALTY = 10.0


class PartSearch:
    """Virtual searches from the best candidate so far.

    Args:
      space: of the candidates.
      default: the first candidate.
      structure: with a decomposition that has a cursor.
      options: see `GrayBoxOptions`.
      rng: draws everything.
    """

    def __init__(
        self, space: Space, default: NDArray, structure: Structure, options: GrayBoxOptions, rng: Generator
    ) -> None:
        assert structure.parts is not None
        self._parts = structure.parts
        self._space, self._options, self._rng = space, options, rng
        self._proposals = proposals(space, structure)
        width = len(self._parts.feature_names)
        self._memory = PartMemory(width)
        self._model = PartModel(width, self._parts.estimate if options.estimate else None, rng)
        self._best, self._cost = default.astype(np.int64), np.inf
        self._draw, self._chosen_at = 0, 0
        self._proposed: set[bytes] = set()
        self._slots = _SLOTS
        self._random = rng.integers(2**63, size=1, dtype=np.uint64)
        self._scale = np.zeros(3)

    def ask(self, n: int) -> NDArray:
        """Return at most 20 candidates: first the default, then the ends of searches.

        The first search of a batch avoids what is not measured.
        """
        if np.isinf(self._cost):
            return self._best[None].astype(self._space.dtype)
        cursor = self._parts.cursor(self._best)
        assert cursor is not None
        room, beliefs = self._room(cursor), self._beliefs()
        ends = [self._end(cursor, room, beliefs, place) for place in range(min(n, BATCH))]
        self._slots *= 2 if is_crowded(beliefs.table) else 1
        return np.array(ends, self._space.dtype)

    def _end(self, cursor: Cursor, room: Room, beliefs: Beliefs, place: int) -> NDArray[np.int64]:
        """Return the end of a search; it is searched longer for one that was not proposed before."""
        beliefs.taste[:] = (_CAUTION, 0.0) if place == 0 else (0.0, float(self._options.draws))
        functions = cursor.change, cursor.key, cursor.describe, cursor.handle
        steps = max(200, int(self._options.sweeps * len(self._proposals.movable)))
        for attempt in range(1, _ATTEMPTS + 1):
            beliefs.draw[0] += np.uint64(1)
            anneal(*functions, self._best, steps * attempt, self._options.heat, self._proposals, beliefs, room)
            reserve(cursor.change, cursor.key, cursor.handle, beliefs, room)
            if room.best.tobytes() not in self._proposed:
                break
        self._proposed.add(room.best.tobytes())
        return room.best.copy()

    def _room(self, cursor: Cursor) -> Room:
        columns, values, old = (np.zeros(WIDEST, np.int64) for _ in range(3))
        held, before = (np.zeros(cursor.places) for _ in range(2))
        touched = np.zeros(cursor.places, np.int64)
        config, best = self._best.copy(), self._best.copy()
        return Room(config, best, columns, values, old, held, before, touched, self._random, self._scale)

    def _beliefs(self) -> Beliefs:
        """Return what the memory and the model tell."""
        logs = self._memory.logs
        known = np.arange(len(logs) if self._options.memory else 0)
        costs = np.where(np.isfinite(logs), np.exp(logs), _PENALTY * self._cost)
        table = new_table(self._memory.keys[known], costs[known], np.zeros(len(known)), self._slots)
        width = self._memory.features.shape[1]
        draw = np.array([self._draw], np.uint64)
        return Beliefs(table, self._model.arrays, draw, np.zeros(2), np.zeros(1, np.uint64), np.zeros(width))

    def tell(self, configs: NDArray, values: NDArray[np.float64], parts: Parts) -> None:
        """Learn the costs of `(k, d)` candidates and of their parts."""
        self._memory.learn(parts, self._parts.describe(configs))
        i = int(values.argmin())
        if values[i] < self._cost:
            self._best, self._cost = configs[i].astype(np.int64), float(values[i])
        self._fit()

    def _fit(self) -> None:
        """Fit the model to what is remembered."""
        logs, m = self._memory.logs, len(self._memory)
        if self._options.models and m >= _FEWEST:
            choose, finite = m >= _GROWTH * self._chosen_at, np.isfinite(logs)
            self._chosen_at = m if choose else self._chosen_at
            self._model.fit(self._memory.features[finite], logs[finite], choose)

    def diagnostics(self) -> dict[str, float]:
        """Return the scores of the regressors and the number of parts that were measured."""
        return {f"score/{name}": score for name, score in self._model.scores.items()} | {"parts": len(self._memory)}
