"""Annealing on what parts are believed to cost: no step is an evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from .beliefs import Beliefs, Taste, price
from .price_table import EMPTY, PENDING, PREDICTED, find
from .proposals import Proposals, copy, propose
from .randomness import uniform

compiled = compiled_for(__file__)

_COOLING = 1000.0


class Room(NamedTuple):
    """The memory of a search at p places of d parameters; moves change at most w parameters.

    Attributes:
      config, best: `(d,)` the state of the search, and the best one so far.
      columns, values, old: `(w,)` of a move.
      held, before: `(p,)` count times cost of the part at each place, now and before a move.
      touched: `(p,)` places that a move changed.
      random: `(1,)` the state of the generator.
      scale: `(3,)` the sum of the logarithms of cost differences, their number, and their geometric mean.
    """

    config: NDArray[np.int64]
    best: NDArray[np.int64]
    columns: NDArray[np.int64]
    values: NDArray[np.int64]
    old: NDArray[np.int64]
    held: NDArray[np.float64]
    before: NDArray[np.float64]
    touched: NDArray[np.int64]
    random: NDArray[np.uint64]
    scale: NDArray[np.float64]


@compiled()
def anneal(
    change: Callable[..., Any],
    key_of: Callable[..., Any],
    describe: Callable[..., Any],
    handle: int,
    start: NDArray,
    others: NDArray,
    copies: NDArray,
    readings: int,
    heat: float,
    proposals: Proposals,
    beliefs: Beliefs,
    taste: Taste,
    room: Room,
) -> None:
    """Anneal from `(d,)` `start` and leave the best state in `room.best`; the cursor's candidate is `room.config`.

    Args:
      change, key_of, describe, handle: of the cursor.
      others: `(k, d)` other candidates.
      copies: `(c, 2)` the first moves: the other candidate, and the parameter, that are copied if that is better.
      readings: of the other moves: the number of parts that are priced.
      heat: initial temperature in geometric means of cost differences.
      proposals: the other moves.
      beliefs: prices, and the model that predicts what is not measured.
      taste: how unsure costs count.
      room: memory.
    """
    _go(change, handle, start, room)
    total = 0.0
    for place in range(len(room.held)):
        room.held[place] = price(key_of, describe, handle, place, beliefs, taste)
        total += room.held[place]
    lowest, step, read = total, 0, 0
    room.best[:] = start
    while step < len(copies) or read < readings:
        temperature = 0.0
        if step < len(copies):
            source, column = others[copies[step, 0]], copies[step, 1]
            count = copy(proposals, column, source, room.config, room.columns, room.values)
        else:
            temperature = heat * _COOLING ** (-read / readings)
            count = propose(proposals, room.config, room.columns, room.values, room.random)
        moved = _change(count, change, handle, room)
        difference = _price_again(moved, key_of, describe, handle, beliefs, taste, room)
        read += moved + 1 if step >= len(copies) else 0
        step += 1
        if _accepts(difference, temperature, room):
            total += difference
            for i in range(count):
                room.config[room.columns[i]] = room.values[i]
            if total < lowest:
                lowest = total
                room.best[:] = room.config
        else:
            for i in range(moved - 1, -1, -1):
                room.held[room.touched[i]] = room.before[i]
            change(handle, room.columns[:count], room.old[:count], room.touched)
    room.scale[2] = np.exp(room.scale[0] / max(1.0, room.scale[1]))


@compiled(runtime=False)
def _change(count: int, change: Callable[..., Any], handle: int, room: Room) -> int:
    """Make the move of `count` parameters in `room`, and return the number of places it touched."""
    for i in range(count):
        room.old[i] = room.config[room.columns[i]]
    moved = change(handle, room.columns[:count], room.values[:count], room.touched) if count > 0 else 0
    if moved >= 0:
        return moved
    for place in range(len(room.held)):
        room.touched[place] = place
    return len(room.held)


@compiled(runtime=False)
def _price_again(
    moved: int,
    key_of: Callable[..., Any],
    describe: Callable[..., Any],
    handle: int,
    beliefs: Beliefs,
    taste: Taste,
    room: Room,
) -> float:
    """Price the touched places again and return by how much the cost changes."""
    difference = 0.0
    for i in range(moved):
        place = room.touched[i]
        room.before[i] = room.held[place]
        room.held[place] = price(key_of, describe, handle, place, beliefs, taste)
        difference += room.held[place] - room.before[i]
    return difference


@compiled(runtime=False)
def _accepts(difference: float, heat: float, room: Room) -> bool:
    """Apply the rule of Metropolis; a heat of 1 is the geometric mean of the differences so far."""
    if difference != 0.0:
        room.scale[0] += np.log(abs(difference))
        room.scale[1] += 1.0
    return difference <= 0.0 or uniform(room.random) < np.exp(-difference / (heat * room.scale[2]))


@compiled(runtime=False)
def _go(change: Callable[..., Any], handle: int, target: NDArray, room: Room) -> None:
    """Set the cursor to a candidate."""
    count, most = 0, len(room.columns)
    for column in range(len(target)):
        if room.config[column] != target[column]:
            room.columns[count], room.values[count] = column, target[column]
            room.config[column] = target[column]
            count += 1
        if count == most or (count > 0 and column == len(target) - 1):
            change(handle, room.columns[:count], room.values[:count], room.touched)
            count = 0


@compiled()
def reserve(
    change: Callable[..., Any],
    key_of: Callable[..., Any],
    describe: Callable[..., Any],
    handle: int,
    beliefs: Beliefs,
    room: Room,
    keys: NDArray,
    places: NDArray,
    features: NDArray,
) -> int:
    """Mark the unmeasured parts of `room.best` as pending, and describe those that were not.

    Return their number, and write their `(p,)` keys, `(p,)` places and `(p, f)` features.
    """
    _go(change, handle, room.best, room)
    new = 0
    for place in range(len(room.held)):
        if key_of(handle, place, beliefs.key) > 0.0:
            slot = find(beliefs.table, beliefs.key[0])
            state = beliefs.table.states[slot]
            if state == PREDICTED:
                beliefs.table.states[slot] = PENDING
            if state in (PREDICTED, EMPTY):
                keys[new], places[new] = beliefs.key[0], place
                describe(handle, place, features[new])
                new += 1
    return new
