"""What was measured at each place of a decomposition whose parts are nearly exact, and a model of each place.

A linear model of features, and for each place another one of what this leaves unexplained, by the parameters that
differ from those of the best candidate.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from bbo_suite import Parts, Space
from bbo_suite.parts.cursor import Cursor

from .part_costs import CostTable, new_table

_KEPT = 200
"""Measured parts of one place that its model learns from."""
_INTERACTION = 0.35
"""What other changes of a part do to the effect of one, in effects."""


class Effects(NamedTuple):
    """Linear models of the costs at p places, and what was measured.

    Attributes:
      table: costs of measured parts.
      starts, columns: the parameters that touch place p are `columns[starts[p]:starts[p + 1]]`.
      weights, spreads: `(e, v)` what each value of those adds to the cost there, and how unsure that is.
      levels: `(p,)` what else is added at each place.
      slopes: `(f,)` by how much a cost grows with each feature.
      alike: `(d, v)` the value that does the same as each value of a parameter, where others are as in the default.
      key, features: `(1,)` and `(f,)` buffers.
    """

    table: CostTable
    starts: NDArray[np.int64]
    columns: NDArray[np.int64]
    weights: NDArray[np.float64]
    spreads: NDArray[np.float64]
    levels: NDArray[np.float64]
    slopes: NDArray[np.float64]
    alike: NDArray[np.int64]
    key: NDArray[np.uint64]
    features: NDArray[np.float64]


class PlaceMemory:
    """What was measured at each place of a decomposition, and a linear model of each.

    A part that was measured more than once costs what it did in the best candidate, else what it did last.

    Args:
      cursor: of the decomposition.
      default: around which parameters are tried, to see which places they touch.
    """

    def __init__(self, cursor: Cursor, space: Space, default: NDArray[np.int64]) -> None:
        self._cursor, self._default = cursor, default
        self._values = int(space.sizes.max())
        self._places: dict[int, int] = {}
        self._described: dict[int, NDArray[np.float64]] = {}
        self._candidates = np.empty((0, len(default)), np.int64)
        self._keys, self._costs = np.empty(0, np.uint64), np.empty(0)
        self._at, self._owners = np.empty(0, np.int64), np.empty(0, np.int64)
        self._features = np.empty((0, cursor.width))
        self._alike = np.repeat(self._default[:, None], self._values, axis=1)
        self._starts, self._columns = self._touching(space)

    def __len__(self) -> int:
        return len(np.unique(self._keys))

    def _touching(self, space: Space) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the parameters that touch each place, at the default and where each other value is everywhere."""
        found: list[set[int]] = [set() for _ in range(self._cursor.places)]
        self._move(self._default)
        _, counts, features = self._cursor.parts()
        for value in range(-1, self._values):
            base = self._default if value < 0 else np.minimum(value, space.sizes - 1)
            self._move(base)
            for column in range(len(space)):
                for index in [*range(int(space.sizes[column])), base[column]]:
                    touched = self._cursor.set(np.array([column]), np.array([index]))
                    for place in touched.tolist():
                        found[place].add(column)
                    if value < 0 and index != base[column]:
                        _, *now = self._cursor.parts(touched)
                        if (now[0] != counts[touched]).any() or (now[1] != features[touched]).any():
                            self._alike[column, index] = index
        columns = [sorted(each) for each in found]
        return np.cumsum([0, *map(len, columns)]), np.array([c for each in columns for c in each], np.int64)

    def _move(self, row: NDArray[np.int64]) -> None:
        self._cursor.set(np.arange(len(row)), row)

    def expect(self, row: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Note where the parts of a candidate are, and return their keys."""
        self._move(row)
        keys, counts, features = self._cursor.parts()
        places = np.flatnonzero(counts)
        known = keys[places].tolist()
        self._places.update(zip(known, places.tolist(), strict=True))
        self._described.update(zip(known, features[places], strict=True))
        return keys[places]

    def learn(self, configs: NDArray, parts: Parts) -> None:
        """Take the costs of parts of candidates."""
        owners = parts.owners() + len(self._candidates)
        self._candidates = np.concatenate([self._candidates, configs])
        self._keys, self._costs = np.append(self._keys, parts.keys), np.append(self._costs, parts.costs)
        keys = parts.keys.tolist()
        places = np.array([self._places[key] for key in keys], np.int64)
        self._at, self._owners = np.append(self._at, places), np.append(self._owners, owners)
        described = np.array([self._described[key] for key in keys]).reshape(-1, self._cursor.width)
        self._features = np.concatenate([self._features, described])

    def effects(self, best: NDArray[np.int64]) -> Effects:
        """Return the models, fitted mostly to what is near a candidate."""
        away = (self._candidates != best).sum(axis=1)
        order = np.lexsort((-self._owners, away[self._owners] > 0, self._keys))
        order = order[np.append(True, np.diff(self._keys[order]) != 0)]  # of each key, that of the best, or the last
        keys, costs = self._keys[order], self._costs[order]
        table = new_table(keys, costs, np.zeros(len(keys)), np.zeros(len(keys), bool), 4 * len(keys))
        order = order[np.lexsort((away[self._owners[order]], self._at[order]))]
        places = len(self._starts) - 1
        firsts = np.searchsorted(self._at[order], np.arange(places + 1))
        weights, spreads = (np.zeros((len(self._columns), self._values)) for _ in range(2))
        slopes = self._slopes(order)
        rest = self._costs - self._features @ slopes
        levels, scale = np.zeros(places), self._scale(rest, order, firsts)
        for place in range(places):
            own = slice(self._starts[place], self._starts[place + 1])
            seen = order[firsts[place] : firsts[place + 1]][:_KEPT]
            levels[place], weights[own], spreads[own] = self._fitted(rest, seen, self._columns[own], scale)
        buffers = np.zeros(1, np.uint64), np.zeros(self._cursor.width)
        return Effects(table, self._starts, self._columns, weights, spreads, levels, slopes, self._alike, *buffers)

    def _slopes(self, order: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how costs grow with features (least squares of relative errors, none negative)."""
        weight = 1.0 / (1.0 + self._costs[order])
        x, y = self._features[order] * weight[:, None], self._costs[order] * weight
        size = np.maximum(np.abs(x).max(axis=0), 1e-12)
        return nnls(x / size, y, maxiter=100 * x.shape[1])[0] / size

    def _scale(self, rest: NDArray[np.float64], order: NDArray[np.int64], firsts: NDArray[np.int64]) -> float:
        """Return a typical difference of two parts at a place that features do not explain."""
        nearest = order[np.minimum(firsts[self._at[order]], len(order) - 1)]
        differences = np.abs(rest[order] - rest[nearest])
        return float(np.median(differences[differences > 0])) if differences.any() else 10.0

    def _fitted(
        self, rest: NDArray[np.float64], seen: NDArray[np.int64], columns: NDArray[np.int64], scale: float
    ) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        """Return the level, the weights and their standard deviations of a place (Bayesian linear regression).

        Args:
          rest: what features leave unexplained of each observation.
          seen: observations at the place, the nearest first; their costs are explained by what differs from the first.
        """
        shape = len(columns), self._values
        if not len(seen):
            return 0.0, np.zeros(shape), np.full(shape, scale)
        mean, variance = np.zeros(shape).ravel(), np.full(shape, scale**2).ravel()
        rows, costs = self._candidates[self._owners[seen]][:, columns], rest[seen]
        rows = self._alike[columns, rows]
        base = rows[0]
        away = (rows != base).sum(axis=1)
        noise = (_INTERACTION * scale) ** 2 * (1.0 + away)
        here = (rows[:, :, None] == np.arange(self._values)) & (rows != base)[:, :, None]
        x = here.reshape(len(rows), -1).astype(np.float64)
        used = np.flatnonzero(x.any(axis=0))
        if len(used):
            inner = x[:, used]
            precision = inner.T @ (inner / noise[:, None]) + np.eye(len(used)) / scale**2
            covariance = np.linalg.inv(precision)
            mean[used] = covariance @ (inner.T @ ((costs - costs[0]) / noise))
            variance[used] = covariance.diagonal()
        deviations = np.sqrt(variance).reshape(shape)
        deviations[np.arange(len(columns)), base] = 0.0
        return float(costs[0]), mean.reshape(shape), deviations
