"""Search where parts are told but not described: many changes at once, each credited with the parts that it moves."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Moves, Parts, Task

from .credit import Credit, Gain, own_parts

BATCH = 20
_CHANGES = 2
"""Parameters that a candidate changes: with more, it is not clear for long which of them moved a part."""
_APART = 6
"""Parameters between two changes of a candidate; changes that are closer often move the same parts."""


class CreditSearch:
    """Changes many parameters of one state at once, and merges the changes whose parts became cheaper.

    The merged state is evaluated with the next batch. If it is refused, half as many changes are merged next time; if
    it is accepted, twice as many.

    Args:
      task: to search; its structure is not used.
      rng: draws everything.
    """

    def __init__(self, task: Task, rng: Generator) -> None:
        self._space, self._moves, self._rng = task.space, Moves(task.space), rng
        self._state: NDArray = task.default.astype(task.space.dtype)
        self._cost, self._credit = np.inf, Credit(len(task.space))
        self._merged: NDArray | None = self._state
        self._most = 2 * _CHANGES
        self._width = max(1, min(len(task.space) // _APART, _CHANGES))

    def ask(self, n: int) -> NDArray:
        """Return at most 20 candidates: the merged state, if there is one, and changes of it or of the state."""
        n = 1 if np.isinf(self._cost) else min(n, BATCH)
        if self._merged is None:
            return self._changes(self._state, n)
        return np.concatenate([self._merged[None], self._changes(self._merged, n - 1)])

    def _changes(self, base: NDArray, n: int) -> NDArray:
        """Return `(n, d)` copies of the base in which parameters far from each other are changed."""
        children = np.repeat(base[None], n, axis=0)
        for row in range(n):
            columns = apart(self._rng.permutation(self._moves.movable), len(base))[: self._width]
            self._moves.change(children, np.full(len(columns), row), columns, self._rng)
        return children

    def tell(self, configs: NDArray, values: NDArray[np.float64], parts: Parts) -> None:
        """Accept or refuse the merged state, and merge those changes of the others that gained."""
        own = [own_parts(parts, i) for i in range(len(configs))]
        accepted = True
        if self._merged is not None:
            accepted = bool(values[0] <= self._cost) or np.isinf(self._cost)
            self._most = max(1, self._most * 2 if accepted else self._most // 2)
            if accepted:
                self._state, self._cost, self._credit = configs[0].copy(), float(values[0]), self._credit.at(own[0])
        base = configs[0] if self._merged is not None else self._state
        if accepted:
            children = range(0 if self._merged is None else 1, len(configs))
            gains = self._credit.gains(base, configs[children], [own[i] for i in children])
            self._merged = self._merge(gains)
        else:
            self._merged = None

    def _merge(self, gains: list[Gain]) -> NDArray | None:
        """Return the state with the changes that gained most and move different parts; None if there are none."""
        merged, moved, taken = self._state.copy(), set[int](), 0
        for gain in sorted((gain for gain in gains if gain.difference < 0), key=lambda gain: gain.difference):
            if taken < self._most and not gain.moved & moved and merged[gain.column] == self._state[gain.column]:
                merged[gain.column], taken = gain.value, taken + 1
                moved |= gain.moved
        return merged if taken and self._space.allowed(merged[None])[0] else None

    def diagnostics(self) -> dict[str, float]:
        """Return nothing."""
        return {}


def apart(columns: NDArray[np.int64], d: int) -> NDArray[np.int64]:
    """Return those of some parameters that are far from all that come before them."""
    near, chosen = np.zeros(d + 2 * _APART, bool), []
    for column in columns.tolist():
        if not near[column + _APART]:
            near[column + 1 : column + 2 * _APART] = True
            chosen.append(column)
    return np.array(chosen, np.int64)
