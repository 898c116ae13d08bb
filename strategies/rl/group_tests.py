"""Group tests: what a policy prefers is tried in groups, and a group that does not pay is halved."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Space, Task

from .parameter_values import ParameterValues

_TOLERANCE = 2.0  # a group ends where preferences are this far below those of its first parameter
_HOPELESS = -4.0  # no value is tried whose preference is this far below that of the default
_LEAST = 0.3  # nor a group of which fewer values are expected to pay


class GroupTests:
    """Sets the values that a policy prefers, many at once (group testing, Dorfman 1943; halving as in Hwang 1972).

    Parameters are sorted by how far the best other value is preferred to the default, and neighbours in this order form
    groups. The group with the largest sum of probabilities is tried next. If it pays it stays; else both halves wait.

    Args:
      space: forbids some candidates.
      wanted: `(d,)` the best other value of each parameter.
      margins: `(d,)` its preference over the default, as a logarithm of odds; -inf where there is no other value.
      patience: the tests end after so many groups in a row that do not pay.
    """

    def __init__(self, space: Space, wanted: NDArray, margins: NDArray[np.float64], patience: int) -> None:
        self._space, self._wanted, self._margins = space, wanted, margins
        self._patience, self._failed = patience, 0
        self._waiting: list[tuple[float, int, NDArray]] = []
        self._pushed, self._drawn = 0, list[NDArray]()
        order = np.argsort(-margins, kind="stable")
        order = order[margins[order] > _HOPELESS]
        while len(order):
            n = int((margins[order] > margins[order[0]] - _TOLERANCE).sum())
            self._push(order[:n])
            order = order[n:]

    @classmethod
    def preferred(cls, task: Task, values: ParameterValues, preferences: NDArray, patience: int) -> GroupTests:
        """Return tests of what a policy prefers to the default, given its `(c,)` preferences for all values."""
        usual = values.places(values.parameter, task.default[values.parameter])
        others = np.flatnonzero(usual != np.arange(len(values)))
        others = others[np.argsort(preferences[others], kind="stable")]  # of a parameter, the last one counts
        wanted, margins = task.default.copy(), np.full(len(task.default), -np.inf)
        wanted[values.parameter[others]] = values.index(others)
        margins[values.parameter[others]] = preferences[others] - preferences[usual[others]]
        return cls(task.space, wanted, margins, patience)

    def draw(self, state: NDArray, n: int) -> NDArray:
        """Return up to `n` allowed changes of a state; a group that is forbidden as a whole is halved."""
        self._drawn, configs = [], [state[None][:0]]
        while self._waiting and self._failed < self._patience and len(self._drawn) < n:
            group = heapq.heappop(self._waiting)[2]
            row = state.copy()
            row[group] = self._wanted[group]
            if self._space.allowed(row[None])[0]:
                self._drawn.append(group)
                configs.append(row[None])
            else:
                self._halve(group)
        return np.concatenate(configs)

    def learn(self, cost: float, values: NDArray[np.float64]) -> None:
        """Halve the groups drawn last that cost more than the state did; those that cost the same are left out."""
        for group, value in zip(self._drawn, values, strict=True):
            self._failed = 0 if value < cost else self._failed + 1
            if value > cost:
                self._halve(group)
        self._drawn = []

    def _halve(self, group: NDArray) -> None:
        if len(group) > 1:
            self._push(group[: len(group) // 2])
            self._push(group[len(group) // 2 :])

    def _push(self, group: NDArray) -> None:
        chances = 1 / (1 + np.exp(-self._margins[group]))
        if chances.sum() > _LEAST:
            heapq.heappush(self._waiting, (-float(chances.sum()), self._pushed, group))
            self._pushed += 1
