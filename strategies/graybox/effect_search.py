"""Search where parts are nearly exact: single changes that touch different parts are tested in one candidate.

Parts that were measured are remembered, and others are estimated by a linear model of features, and for each place by
another one of what this leaves unexplained, by the parameters that differ from those of the best candidate.
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

from .part_costs import EMPTY, find, normal, scrambled
from .place_memory import Effects, PlaceMemory
from .virtual_search import WIDEST, Proposals, proposals, propose, uniform

compiled = compiled_for(__file__)

BATCH = 5
_STEPS, _TRIES = 40, 6
"""Steps of a virtual search, and changes that a test tries, for each parameter."""
_LEAST_STEPS, _MOST_STEPS = 3000, 60_000
_COOLING = 300.0
_TINY = 1e-6
_LEAST_CAUTION, _WIDEST = 0.25, 32.0


class Desk(NamedTuple):
    """The memory of a virtual search.

    Attributes:
      config: `(d,)` its state, also while a move is tried; best: the best one.
      columns, values, old: of a move.
      costs, before: `(p,)` at each place, now and before a move.
      unknown, unknown_before: `(p,)` whether the part there was not measured.
      touched: `(p,)` places of a move; claimed: `(p,)` places where a test has a change already.
      names, names_before: `(p,)` of the part at each place, now and before a move; 0 if there is none.
      name: `(1,)` of all parts together, the sum of theirs: programs with equal parts are one program.
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
    unknown_before: NDArray[np.int64]
    touched: NDArray[np.int64]
    claimed: NDArray[np.int64]
    names: NDArray[np.uint64]
    names_before: NDArray[np.uint64]
    name: NDArray[np.uint64]
    random: NDArray[np.uint64]


class EffectSearch:
    """Merges changes that gain where they were measured, and tests others, many in one candidate.

    The first candidates are the default and, for each value, the candidate with this value everywhere. Then each batch
    has the end of a virtual annealing on known and estimated costs, in which unsure ones count as dearer, if it seems
    better; one under drawn costs that has parts that were not measured; and tests: the best candidate with changes that
    may gain, at most one for each part. No two candidates have all parts in common while there are others.

    Args:
      space: of the candidates.
      default: the first candidate.
      structure: with a decomposition that has a cursor.
      rng: draws everything.
    """

    def __init__(self, space: Space, default: NDArray, structure: Structure, rng: Generator) -> None:
        assert structure.parts is not None
        self._space, self._rng = space, rng
        self._proposed = np.empty(0, np.uint64)
        self._default = default.astype(np.int64)
        self._best, self._cost = self._default.copy(), np.inf
        cursor = structure.parts.cursor(self._default)
        assert cursor is not None
        self._cursor: Cursor = cursor
        self._proposals: Proposals = proposals(space, structure, cursor.whole)
        self._memory = PlaceMemory(cursor, space, self._default)
        self._waiting = [self._default, *self._uniform()]
        self._draw, self._width, self._caution, self._merges = 0, 1.0, 8.0, False
        move, at = np.zeros((3, WIDEST), np.int64), np.zeros((4, cursor.places), np.int64)
        costs = np.zeros((2, cursor.places))
        random = rng.integers(2**63, size=1, dtype=np.uint64)
        config, best = self._default.copy(), self._default.copy()
        names, name = np.zeros((2, cursor.places), np.uint64), np.zeros(1, np.uint64)
        self._desk = Desk(*(config, best, *move, *costs, *at, *names, name, random))

    def _uniform(self) -> list[NDArray[np.int64]]:
        """Return the candidates with one value everywhere, as far as parameters have it."""
        rows = [np.minimum(value, self._space.sizes - 1) for value in range(int(self._space.sizes.max()))]
        return [row for row in rows if (row != self._default).any()]

    def ask(self, n: int) -> NDArray:
        """Return at most 5 candidates."""
        if self._waiting:
            count = min(n, BATCH) if np.isfinite(self._cost) else 1
            rows, self._waiting = self._waiting[:count], self._waiting[count:]
            return np.array([self._claimed(row) for row in rows])
        effects = self._memory.effects(self._best)
        merged, gain = self._annealed(effects, 0, self._caution)
        self._merges = gain > 0
        if not self._merges:
            self._caution = max(self._caution / 2, _LEAST_CAUTION)
        base = merged if self._merges and self._caution <= 1 else self._best  # after a surprise, only on what is known
        rows = [self._claimed(merged)] if self._merges else []
        if len(rows) < n:
            rows.append(self._claimed(self._explored(effects)))
        while len(rows) < min(n, BATCH):
            rows.append(self._claimed(self._tested(base, effects)))
        return np.array(rows)

    def _functions(self) -> tuple[Any, ...]:
        return self._cursor.change, self._cursor.key, self._cursor.describe, self._cursor.handle

    def _annealed(
        self, effects: Effects, draw: int, width: float, with_new_parts: bool = False
    ) -> tuple[NDArray[np.int64], float]:
        """Return the best new program of a virtual search, and what it seems to gain; -inf if none was found."""
        steps = int(np.clip(_STEPS * len(self._space), _LEAST_STEPS, _MOST_STEPS))
        rules = steps, 0.5, draw, width, with_new_parts
        gain = _anneal(*self._functions(), self._best, *rules, self._proposals, effects, self._proposed, self._desk)
        return self._desk.best.copy(), float(gain)

    def _explored(self, effects: Effects) -> NDArray[np.int64]:
        """Return the best program with new parts under drawn costs, else any new one, else any candidate."""
        self._draw += 1
        for with_new_parts in (True, False):
            found, gain = self._annealed(effects, self._draw, 1.0, with_new_parts)
            if gain > -np.inf:
                return found
        return self._space.sample(1, self._rng)[0].astype(np.int64)

    def _tested(self, start: NDArray[np.int64], effects: Effects) -> NDArray[np.int64]:
        """Return a candidate with changes that may gain.

        If there are none, it has, by turns, changes of which nothing is expected, or is explored.
        """
        self._draw += 1
        tries = max(200, _TRIES * len(self._space))
        for least in (_TINY, -_TINY)[: 1 + self._draw % 2]:
            rules = tries, self._draw, self._width, least
            taken = _test(*self._functions(), start, *rules, self._proposals, effects, self._desk)
            if taken and not _is_in(self._proposed, self._desk.name[0]):
                self._width = max(self._width / 2, 1.0)
                return self._desk.config.copy()
            self._width = min(2 * self._width, _WIDEST)  # so that each change is tested, however dear it seems
        return self._explored(effects)

    def _claimed(self, row: NDArray[np.int64]) -> NDArray:
        """Return a candidate that counts as proposed from now on."""
        name = np.uint64(_name(self._memory.expect(row)))
        self._proposed = np.insert(self._proposed, np.searchsorted(self._proposed, name), name)
        return row.astype(self._space.dtype)

    def tell(self, configs: NDArray, values: NDArray[np.float64], parts: Parts) -> None:
        """Learn the costs of `(k, d)` candidates and of their parts."""
        self._memory.learn(configs, parts)
        if self._merges:
            self._caution = (
                min(2 * self._caution, 32.0) if values[0] >= self._cost else max(self._caution / 2, _LEAST_CAUTION)
            )
        self._merges = False
        i = int(values.argmin())
        if values[i] < self._cost:
            self._best, self._cost = configs[i].astype(np.int64), float(values[i])

    def diagnostics(self) -> dict[str, float]:
        """Return the number of parts that were measured."""
        return {"parts": float(len(self._memory))}


@compiled(runtime=False)
def _price(
    key_of: Callable[..., Any],
    describe: Callable[..., Any],
    handle: int,
    place: int,
    draw: int,
    width: float,
    effects: Effects,
    desk: Desk,
) -> float:
    """Return the cost of the part at a place; above draw 0 with random deviates, else a cautious one."""
    count = key_of(handle, place, effects.key)
    desk.unknown[place], desk.name[0] = 0, desk.name[0] - desk.names[place]
    desk.names[place] = np.uint64(0) if count == 0.0 else scrambled(effects.key[0])
    desk.name[0] += desk.names[place]
    if count == 0.0:
        return 0.0
    slot = find(effects.table, effects.key[0])
    if effects.table.states[slot] != EMPTY:
        return count * effects.table.costs[slot]
    desk.unknown[place] = 1
    mean, variance = effects.levels[place], 0.0
    describe(handle, place, effects.features)
    for column in range(len(effects.features)):
        mean += effects.slopes[column] * effects.features[column]
    for entry in range(effects.starts[place], effects.starts[place + 1]):
        value = effects.alike[effects.columns[entry], desk.config[effects.columns[entry]]]
        mean += effects.weights[entry, value]
        spread = effects.spreads[entry, value]
        if draw > 0 and spread > 0.0:
            mean += width * spread * normal(np.uint64(entry * 64 + value + 1), np.uint64(draw))
        variance += spread * spread
    if draw == 0:
        mean += width * variance**0.5
    return count * max(mean, 0.0)


@compiled(runtime=False)
def _start(
    change: Callable[..., Any],
    key_of: Callable[..., Any],
    describe: Callable[..., Any],
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
        desk.costs[place] = _price(key_of, describe, handle, place, draw, width, effects, desk)
        desk.claimed[place] = 0


@compiled(runtime=False)
def _try(
    change: Callable[..., Any],
    key_of: Callable[..., Any],
    describe: Callable[..., Any],
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
    moved, difference = _move(count, change, key_of, describe, handle, draw, width, effects, desk)
    return count, moved, difference


@compiled(runtime=False)
def _move(
    count: int,
    change: Callable[..., Any],
    key_of: Callable[..., Any],
    describe: Callable[..., Any],
    handle: int,
    draw: int,
    width: float,
    effects: Effects,
    desk: Desk,
) -> tuple[int, float]:
    """Make the move of `count` parameters; return how many places it changes, and the difference of the cost."""
    for i in range(count):
        desk.config[desk.columns[i]] = desk.values[i]
    moved = change(handle, desk.columns[:count], desk.values[:count], desk.touched)
    difference = 0.0
    for i in range(moved):
        place = desk.touched[i]
        desk.before[i], desk.names_before[i] = desk.costs[place], desk.names[place]
        desk.unknown_before[i] = desk.unknown[place]
        desk.costs[place] = _price(key_of, describe, handle, place, draw, width, effects, desk)
        difference += desk.costs[place] - desk.before[i]
    return moved, difference


@compiled(runtime=False)
def _undo(change: Callable[..., Any], handle: int, count: int, moved: int, desk: Desk) -> None:
    for i in range(moved):
        place = desk.touched[i]
        desk.costs[place], desk.unknown[place] = desk.before[i], desk.unknown_before[i]
        desk.name[0] += desk.names_before[i] - desk.names[place]
        desk.names[place] = desk.names_before[i]
    for i in range(count):
        desk.config[desk.columns[i]] = desk.old[i]
    change(handle, desk.columns[:count], desk.old[:count], desk.touched)


@compiled()
def _anneal(
    change: Callable[..., Any],
    key_of: Callable[..., Any],
    describe: Callable[..., Any],
    handle: int,
    start: NDArray,
    steps: int,
    heat: float,
    draw: int,
    width: float,
    with_new_parts: bool,
    moves: Proposals,
    effects: Effects,
    proposed: NDArray[np.uint64],
    desk: Desk,
) -> float:
    """Anneal from a candidate, leave the best state that was not proposed in `desk.best`, and return what it gains."""
    _start(change, key_of, describe, handle, start, draw, width, effects, desk)
    total, lowest, size, seen = 0.0, np.inf, 0.0, 0.0
    desk.best[:] = start
    for step in range(steps):
        count, moved, difference = _try(change, key_of, describe, handle, draw, width, moves, effects, desk)
        if difference != 0.0:
            size, seen = size + np.log(abs(difference)), seen + 1.0
        if total + difference < lowest - _TINY and _is_new(with_new_parts, proposed, desk):
            lowest = total + difference
            desk.best[:] = desk.config
        temperature = heat * np.exp(size / max(seen, 1.0)) * _COOLING ** (-step / steps)
        if difference <= 0.0 or uniform(desk.random) < np.exp(-difference / temperature):
            total += difference
        else:
            _undo(change, handle, count, moved, desk)
    _simplify(change, key_of, describe, handle, start, draw, width, with_new_parts, effects, proposed, desk)
    return -lowest


@compiled(runtime=False)
def _is_new(with_new_parts: bool, proposed: NDArray[np.uint64], desk: Desk) -> bool:
    """Return whether the program was not proposed before, and if wanted whether one of its parts was not measured."""
    return bool(not with_new_parts or desk.unknown.any()) and not _is_in(proposed, desk.name[0])


@compiled(runtime=False)
def _is_in(ascending: NDArray[np.uint64], name: np.uint64) -> bool:
    place = np.searchsorted(ascending, name)
    return bool(place < len(ascending) and ascending[place] == name)


@compiled(runtime=False)
def _simplify(
    change: Callable[..., Any],
    key_of: Callable[..., Any],
    describe: Callable[..., Any],
    handle: int,
    start: NDArray,
    draw: int,
    width: float,
    with_new_parts: bool,
    effects: Effects,
    proposed: NDArray[np.uint64],
    desk: Desk,
) -> None:
    """Take back from `desk.best` what gains nothing, as long as it stays a new program."""
    _start(change, key_of, describe, handle, desk.best, draw, width, effects, desk)
    for column in range(len(start)):
        if desk.best[column] == start[column]:
            continue
        desk.columns[0], desk.values[0], desk.old[0] = column, start[column], desk.best[column]
        name = desk.name[0]
        moved, difference = _move(1, change, key_of, describe, handle, draw, width, effects, desk)
        if desk.name[0] == name or (difference <= _TINY and _is_new(with_new_parts, proposed, desk)):
            desk.best[column] = start[column]
        else:
            _undo(change, handle, 1, moved, desk)


@compiled()
def _name(keys: NDArray[np.uint64]) -> np.uint64:
    """Return the name of the program that consists of parts."""
    name = np.uint64(0)
    for key in keys:
        name += scrambled(key)
    return name


@compiled()
def _test(
    change: Callable[..., Any],
    key_of: Callable[..., Any],
    describe: Callable[..., Any],
    handle: int,
    start: NDArray,
    tries: int,
    draw: int,
    width: float,
    least: float,
    moves: Proposals,
    effects: Effects,
    desk: Desk,
) -> int:
    """Add to a candidate changes that may gain, one a part, and leave it in `desk.config`; return their number."""
    _start(change, key_of, describe, handle, start, draw, width, effects, desk)
    taken = 0
    for _ in range(tries):
        count, moved, difference = _try(change, key_of, describe, handle, draw, width, moves, effects, desk)
        free, new = True, False
        for i in range(moved):
            free &= desk.claimed[desk.touched[i]] == 0
            new |= desk.unknown[desk.touched[i]] == 1
        if free and new and difference < -least:
            for i in range(moved):
                desk.claimed[desk.touched[i]] = 1
            taken += 1
        else:
            _undo(change, handle, count, moved, desk)
    return taken
