"""Search where parts are nearly exact: single changes that touch different parts are tested in one candidate.

Parts that were measured are remembered. What a change does to a part that was not is estimated from what the same
change did to that place before: a linear model of each place, around the default.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Parts, Space, Structure
from bbo_suite.compiled import compiled_for
from bbo_suite.parts.cursor import Cursor

from ..archive import Archive
from .part_costs import EMPTY, CostTable, find, new_table, normal
from .virtual_search import WIDEST, Proposals, proposals, propose, uniform

compiled = compiled_for(__file__)

BATCH = 5
_STEPS, _TRIES = 40, 6
"""Steps of a virtual search, and changes that a test tries, for each parameter."""
_LEAST_STEPS, _MOST_STEPS = 3000, 60_000
_COOLING = 300.0
_KEPT = 200
"""Measured parts of one place that its model learns from."""
_INTERACTION = 0.35
"""What other changes of a part do to the effect of one, in effects."""


class Effects(NamedTuple):
    """Linear models of the costs at p places, and what was measured.

    Attributes:
      table: costs of measured parts.
      starts, columns: the parameters that touch place p are `columns[starts[p]:starts[p + 1]]`.
      weights, spreads: `(e, v)` what each value of those does to the cost there, and how unsure that is.
      levels: `(p,)` the cost at the default.
      key: `(1,)` a buffer.
    """

    table: CostTable
    starts: NDArray[np.int64]
    columns: NDArray[np.int64]
    weights: NDArray[np.float64]
    spreads: NDArray[np.float64]
    levels: NDArray[np.float64]
    key: NDArray[np.uint64]


class Desk(NamedTuple):
    """The memory of a virtual search.

    Attributes:
      config: `(d,)` its state, also while a move is tried; best: the best one.
      columns, values, old: of a move.
      costs, before: `(p,)` at each place, now and before a move; unknown: `(p,)` whether the part was not measured.
      touched: `(p,)` places of a move; claimed: `(p,)` places where a test has a change already.
      random: `(1,)` the state of the generator.
    """

    config: NDArray[np.int64]
    best: NDArray[np.int64]
    columns: NDArray[np.int64]
    values: NDArray[np.int64]
    old: NDArray[np.int64]
    costs: NDArray[np.float64]
    before: NDArray[np.float64]
    unknown: NDArray[np.int64]
    touched: NDArray[np.int64]
    claimed: NDArray[np.int64]
    random: NDArray[np.uint64]


class EffectSearch:
    """Merges changes that gain where they were measured, and tests others, many in one candidate.

    The first candidates are the default and, for each value, the candidate with this value everywhere. Then each batch
    has the end of a virtual annealing on known and estimated costs, in which unsure ones count as dearer, and tests:
    that end with changes that may gain, at most one for each part.

    Args:
      space: of the candidates.
      default: the first candidate.
      structure: with a decomposition that has a cursor.
      rng: draws everything.
    """

    def __init__(self, space: Space, default: NDArray, structure: Structure, rng: Generator) -> None:
        assert structure.parts is not None
        self._space, self._rng, self._archive = space, rng, Archive(space, rng)
        self._default = default.astype(np.int64)
        self._best, self._cost = self._default.copy(), np.inf
        cursor = structure.parts.cursor(self._default)
        assert cursor is not None
        self._cursor: Cursor = cursor
        self._proposals: Proposals = proposals(space, structure, cursor.whole)
        self._memory = PlaceMemory(cursor, space, self._default)
        self._waiting = [self._default, *self._uniform()]
        self._draw, self._width = 0, 1.0
        move, at = np.zeros((3, WIDEST), np.int64), np.zeros((3, cursor.places), np.int64)
        costs = np.zeros((2, cursor.places))
        random = rng.integers(2**63, size=1, dtype=np.uint64)
        config, best = self._default.copy(), self._default.copy()
        self._desk = Desk(config, best, move[0], move[1], move[2], costs[0], costs[1], at[0], at[1], at[2], random)

    def _uniform(self) -> list[NDArray[np.int64]]:
        """Return the candidates with one value everywhere, as far as parameters have it."""
        rows = [np.minimum(value, self._space.sizes - 1) for value in range(int(self._space.sizes.max()))]
        return [row for row in rows if (row != self._default).any()]

    def ask(self, n: int) -> NDArray:
        """Return at most 5 candidates."""
        if self._waiting:
            rows = [self._waiting.pop(0)]
            if np.isinf(self._cost):
                return self._marked(rows)
            return self._marked([*rows, *(self._waiting.pop(0) for _ in range(min(n - 1, len(self._waiting))))])
        effects = self._memory.effects(self._best)
        merged = self._fresh(self._merged(effects))
        rows = [merged]
        for _ in range(min(n, BATCH) - 1):
            rows.append(self._fresh(self._tested(merged, effects)))
        return self._marked(rows)

    def _functions(self) -> tuple[Any, ...]:
        return self._cursor.change, self._cursor.key, self._cursor.handle

    def _merged(self, effects: Effects) -> NDArray[np.int64]:
        steps = int(np.clip(_STEPS * len(self._space), _LEAST_STEPS, _MOST_STEPS))
        _anneal(*self._functions(), self._best, steps, 0.5, self._proposals, effects, self._desk)
        return self._desk.best.copy()

    def _tested(self, start: NDArray[np.int64], effects: Effects) -> NDArray[np.int64]:
        self._draw += 1
        tries = max(200, _TRIES * len(self._space))
        taken = _test(*self._functions(), start, tries, self._draw, self._width, self._proposals, effects, self._desk)
        self._width = 1.0 if taken else min(2 * self._width, 32.0)
        return self._desk.config.copy()

    def _fresh(self, row: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return a candidate, or a neighbour if it was proposed before."""
        fresh = row
        for changes in range(41):
            if len(self._archive.claim(fresh[None], 1)) or changes == 40:
                break
            fresh = row.copy()
            columns = self._rng.choice(self._proposals.movable, 1 + changes // 10)
            fresh[columns] = self._rng.integers(0, self._proposals.sizes[columns])
        return fresh

    def _marked(self, rows: list[NDArray[np.int64]]) -> NDArray:
        for row in rows:
            self._memory.expect(row)
        return np.array(rows, self._space.dtype)

    def tell(self, configs: NDArray, values: NDArray[np.float64], parts: Parts) -> None:
        """Learn the costs of `(k, d)` candidates and of their parts."""
        self._memory.learn(parts)
        i = int(values.argmin())
        if values[i] < self._cost:
            self._best, self._cost = configs[i].astype(np.int64), float(values[i])

    def diagnostics(self) -> dict[str, float]:
        """Return the number of parts that were measured."""
        return {"parts": float(len(self._memory))}


class PlaceMemory:
    """What was measured at each place of a decomposition, and a linear model of each.

    Args:
      cursor: of the decomposition.
      default: around which the models are linear.
    """

    def __init__(self, cursor: Cursor, space: Space, default: NDArray[np.int64]) -> None:
        self._cursor, self._default = cursor, default
        self._values = int(space.sizes.max())
        self._touching: list[dict[int, int]] = [{} for _ in range(cursor.places)]
        self._places: dict[int, int] = {}
        self._rows: dict[int, NDArray[np.int64]] = {}
        self._sums: dict[int, tuple[float, int]] = {}
        self._measured: list[list[int]] = [[] for _ in range(cursor.places)]
        self._probe(space)

    def __len__(self) -> int:
        return len(self._sums)

    def _probe(self, space: Space) -> None:
        """Find the parameters that touch each place, at the default and where each other value is everywhere."""
        self._at = self._default.copy()
        for value in range(-1, self._values):
            base = self._default if value < 0 else np.minimum(value, space.sizes - 1)
            self._move(base)
            for column in range(len(space)):
                for other in range(int(space.sizes[column])):
                    for place in self._cursor.set(np.array([column]), np.array([other])).tolist():
                        self._touching[place].setdefault(column, len(self._touching[place]))
                    for place in self._cursor.set(np.array([column]), base[[column]]).tolist():
                        self._touching[place].setdefault(column, len(self._touching[place]))

    def _move(self, row: NDArray[np.int64]) -> None:
        self._cursor.set(np.arange(len(row)), row)

    def expect(self, row: NDArray[np.int64]) -> None:
        """Note where the parts of a candidate are."""
        self._move(row)
        for place in range(self._cursor.places):
            key, count, _ = self._cursor.part(place)
            if count and key not in self._places:
                self._places[key], self._rows[key] = place, row

    def learn(self, parts: Parts) -> None:
        """Take the costs of parts."""
        for key, cost in zip(parts.keys.tolist(), parts.costs.tolist(), strict=True):
            total, count = self._sums.get(key, (0.0, 0))
            self._sums[key] = total + cost, count + 1
            if not count:
                self._measured[self._places[key]].append(key)

    def effects(self, best: NDArray[np.int64]) -> Effects:
        """Return the models, fitted mostly to what is near a candidate."""
        keys = np.fromiter(self._sums, np.uint64, len(self._sums))
        costs = np.array([total / count for total, count in self._sums.values()])
        table = new_table(keys, costs, np.zeros(len(keys)), np.zeros(len(keys), bool), 4 * len(keys))
        starts = np.cumsum([0, *map(len, self._touching)])
        columns = np.array([column for each in self._touching for column in each], np.int64)
        weights, spreads = (np.zeros((len(columns), self._values)) for _ in range(2))
        levels = np.zeros(len(self._touching))
        scale = self._scale()
        for place, keys_here in enumerate(self._measured):
            own = slice(starts[place], starts[place + 1])
            if keys_here:
                levels[place], weights[own], spreads[own] = self._fitted(keys_here[-_KEPT:], columns[own], best, scale)
            else:
                spreads[own] = scale
        return Effects(table, starts, columns, weights, spreads, levels, np.zeros(1, np.uint64))

    def _scale(self) -> float:
        """Return a typical difference of two parts at a place."""
        costs = [[self._cost(key) for key in keys] for keys in self._measured if len(keys) > 1]
        differences = [abs(cost - each[0]) for each in costs for cost in each[1:] if cost != each[0]]
        return float(np.median(differences)) if differences else 10.0

    def _cost(self, key: int) -> float:
        total, count = self._sums[key]
        return total / count

    def _fitted(
        self, keys: list[int], columns: NDArray[np.int64], best: NDArray[np.int64], scale: float
    ) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        """Return the level, the weights and their standard deviations of a place (Bayesian linear regression)."""
        rows = np.array([self._rows[key][columns] for key in keys])
        costs = np.array([self._cost(key) for key in keys])
        near = (rows != best[columns]).sum(axis=1)
        level = costs[near.argmin()]
        noise = (_INTERACTION * scale) ** 2 * (1.0 + near)
        here, default = rows[:, :, None] == np.arange(self._values), np.arange(self._values) == best[columns][:, None]
        x = np.where(default, 0.0, here).reshape(len(rows), -1)
        used = np.flatnonzero(x.any(axis=0))
        mean, variance = np.zeros(x.shape[1]), np.full(x.shape[1], scale**2)
        if len(used):
            inner = x[:, used]
            precision = inner.T @ (inner / noise[:, None]) + np.eye(len(used)) / scale**2
            covariance = np.linalg.inv(precision)
            mean[used] = covariance @ (inner.T @ ((costs - level) / noise))
            variance[used] = covariance.diagonal()
        shape = (len(columns), self._values)
        deviations = np.sqrt(variance).reshape(shape)
        deviations[np.arange(len(columns)), best[columns]] = 0.0
        return float(level), mean.reshape(shape), deviations


@compiled(runtime=False)
def _price(
    key_of: Callable[..., Any], handle: int, place: int, draw: int, width: float, effects: Effects, desk: Desk
) -> float:
    """Return the cost of the part at a place; above draw 0 with random deviates, else a cautious one."""
    count = key_of(handle, place, effects.key)
    desk.unknown[place] = 0
    if count == 0.0:
        return 0.0
    slot = find(effects.table, effects.key[0])
    if effects.table.states[slot] != EMPTY:
        return count * effects.table.costs[slot]
    desk.unknown[place] = 1
    mean, variance = effects.levels[place], 0.0
    for entry in range(effects.starts[place], effects.starts[place + 1]):
        value = desk.config[effects.columns[entry]]
        mean += effects.weights[entry, value]
        spread = effects.spreads[entry, value]
        if draw > 0 and spread > 0.0:
            mean += width * spread * normal(np.uint64(entry * 64 + value + 1), np.uint64(draw))
        variance += spread * spread
    if draw == 0:
        mean += variance**0.5
    return count * max(mean, 0.0)


@compiled(runtime=False)
def _start(
    change: Callable[..., Any],
    key_of: Callable[..., Any],
    handle: int,
    start: NDArray,
    draw: int,
    width: float,
    effects: Effects,
    desk: Desk,
) -> None:
    """Go to a candidate and price it."""
    for column in range(len(start)):
        desk.columns[0], desk.values[0] = column, start[column]
        change(handle, desk.columns[:1], desk.values[:1], desk.touched)
        desk.config[column] = start[column]
    for place in range(len(desk.costs)):
        desk.costs[place] = _price(key_of, handle, place, draw, width, effects, desk)
        desk.claimed[place] = 0


@compiled(runtime=False)
def _try(
    change: Callable[..., Any],
    key_of: Callable[..., Any],
    handle: int,
    draw: int,
    width: float,
    moves: Proposals,
    effects: Effects,
    desk: Desk,
) -> tuple[int, int, float]:
    """Make a random move; return how many parameters it changes, how many places, and the difference of the cost."""
    count = propose(moves, desk.config, desk.columns, desk.values, desk.random)
    for i in range(count):
        desk.old[i] = desk.config[desk.columns[i]]
        desk.config[desk.columns[i]] = desk.values[i]
    moved = change(handle, desk.columns[:count], desk.values[:count], desk.touched)
    difference = 0.0
    for i in range(moved):
        place = desk.touched[i]
        desk.before[i] = desk.costs[place]
        desk.costs[place] = _price(key_of, handle, place, draw, width, effects, desk)
        difference += desk.costs[place] - desk.before[i]
    return count, moved, difference


@compiled(runtime=False)
def _undo(change: Callable[..., Any], handle: int, count: int, moved: int, desk: Desk) -> None:
    for i in range(moved):
        desk.costs[desk.touched[i]] = desk.before[i]
    for i in range(count):
        desk.config[desk.columns[i]] = desk.old[i]
    change(handle, desk.columns[:count], desk.old[:count], desk.touched)


@compiled()
def _anneal(
    change: Callable[..., Any],
    key_of: Callable[..., Any],
    handle: int,
    start: NDArray,
    steps: int,
    heat: float,
    moves: Proposals,
    effects: Effects,
    desk: Desk,
) -> None:
    """Anneal from a candidate on cautious costs, and leave the best state in `desk.best`."""
    _start(change, key_of, handle, start, 0, 0.0, effects, desk)
    total, lowest, size, seen = 0.0, 0.0, 0.0, 0.0
    desk.best[:] = start
    for step in range(steps):
        count, moved, difference = _try(change, key_of, handle, 0, 0.0, moves, effects, desk)
        if difference != 0.0:
            size, seen = size + np.log(abs(difference)), seen + 1.0
        temperature = heat * np.exp(size / max(seen, 1.0)) * _COOLING ** (-step / steps)
        if difference <= 0.0 or uniform(desk.random) < np.exp(-difference / temperature):
            total += difference
            if total < lowest - 1e-6:
                lowest = total
                desk.best[:] = desk.config
        else:
            _undo(change, handle, count, moved, desk)


@compiled()
def _test(
    change: Callable[..., Any],
    key_of: Callable[..., Any],
    handle: int,
    start: NDArray,
    tries: int,
    draw: int,
    width: float,
    moves: Proposals,
    effects: Effects,
    desk: Desk,
) -> int:
    """Add to a candidate changes that may gain, one a part, and leave it in `desk.config`; return their number."""
    _start(change, key_of, handle, start, draw, width, effects, desk)
    taken = 0
    for _ in range(tries):
        count, moved, difference = _try(change, key_of, handle, draw, width, moves, effects, desk)
        free, new = True, False
        for i in range(moved):
            free &= desk.claimed[desk.touched[i]] == 0
            new |= desk.unknown[desk.touched[i]] == 1
        if free and new and difference < 0.0:
            for i in range(moved):
                desk.claimed[desk.touched[i]] = 1
            taken += 1
        else:
            _undo(change, handle, count, moved, desk)
    return taken
