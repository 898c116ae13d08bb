"""Annealing on the estimated costs of parts: no step is an evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Kind, Moves, Space, Structure
from bbo_suite.compiled import compiled_for

from ..graphs import decided_nodes
from .part_costs import EMPTY, PENDING, PREDICTED, Acquisition, Posterior, find, part_cost, scrambled

compiled = compiled_for(__file__)


_COOLING = 1000.0


class Workspace(NamedTuple):
    """The memory of a search at p places of d parameters; moves change at most w parameters.

    Attributes:
      config, best: `(d,)` the state of the search, and the best one so far.
      columns, values, old: `(w,)` of a move.
      costs, old_costs: `(p,)` count times cost of the part at each place, now and before a move.
      touched: `(p,)` places that a move changed.
      random: `(1,)` the state of the generator.
      scale: `(3,)` the sum of the logarithms of cost differences, their number, and their geometric mean.
    """

    config: NDArray[np.int64]
    best: NDArray[np.int64]
    columns: NDArray[np.int64]
    values: NDArray[np.int64]
    old: NDArray[np.int64]
    costs: NDArray[np.float64]
    old_costs: NDArray[np.float64]
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
    passes: int,
    heat: float,
    proposals: Proposals,
    posterior: Posterior,
    acquisition: Acquisition,
    workspace: Workspace,
) -> None:
    """Anneal from `(d,)` `start` and leave the best state in `workspace.best`; the cursor is at `workspace.config`.

    Args:
      change, key_of, describe, handle: of the cursor.
      others: `(k, d)` other candidates.
      copies: `(c, 2)` the first moves: the other candidate, and the parameter, that are copied if that is better.
      readings: of the other moves: the number of parts whose costs are read.
      passes: of the first and of the other moves: how many may compile the whole program; the rest of such moves is
        left out, evenly.
      heat: initial temperature in geometric means of cost differences.
      proposals: the other moves.
      posterior: costs, and the model that predicts what is not measured.
      acquisition: how unsure costs count.
      workspace: the memory of the search.
    """
    _move_cursor(change, handle, start, workspace)
    total = 0.0
    for place in range(len(workspace.costs)):
        workspace.costs[place] = part_cost(key_of, describe, handle, place, posterior, acquisition)
        total += workspace.costs[place]
    lowest, step, read, passed, copied = total, 0, 0, 0, 0
    workspace.best[:] = start
    while step < len(copies) or read < readings:
        temperature, is_copy = 0.0, step < len(copies)
        if is_copy:
            source, column = others[copies[step, 0]], copies[step, 1]
            count = copy(proposals, column, source, workspace.config, workspace.columns, workspace.values)
        else:
            temperature = heat * _COOLING ** (-read / readings)
            count = propose(proposals, workspace.config, workspace.columns, workspace.values, workspace.random)
        step += 1
        if _compiles_all(count, proposals, workspace):
            if passed >= (passes if is_copy else copied + passes * (read + 1) / readings):
                read += 0 if is_copy else 1
                continue
            passed += 1
            copied += is_copy
        moved = _change(count, change, handle, workspace)
        read += 0 if is_copy else moved + 1
        difference = _cost_again(moved, key_of, describe, handle, posterior, acquisition, workspace)
        if _accepts(difference, temperature, workspace):
            total += difference
            for i in range(count):
                workspace.config[workspace.columns[i]] = workspace.values[i]
            if total < lowest:
                lowest = total
                workspace.best[:] = workspace.config
        else:
            for i in range(moved - 1, -1, -1):
                workspace.costs[workspace.touched[i]] = workspace.old_costs[i]
            change(handle, workspace.columns[:count], workspace.old[:count], workspace.touched)
    workspace.scale[2] = np.exp(workspace.scale[0] / max(1.0, workspace.scale[1]))


@compiled(runtime=False)
def _change(count: int, change: Callable[..., Any], handle: int, workspace: Workspace) -> int:
    """Make the move of `count` parameters in `workspace`, and return the number of places it touched."""
    for i in range(count):
        workspace.old[i] = workspace.config[workspace.columns[i]]
    moved = change(handle, workspace.columns[:count], workspace.values[:count], workspace.touched) if count > 0 else 0
    if moved >= 0:
        return moved
    for place in range(len(workspace.costs)):
        workspace.touched[place] = place
    return len(workspace.costs)


@compiled(runtime=False)
def _compiles_all(count: int, proposals: Proposals, workspace: Workspace) -> bool:
    """Return whether the move of `count` parameters in `workspace` compiles the whole program."""
    whole = False
    for i in range(count):
        whole |= proposals.whole[workspace.columns[i]]
    return whole


@compiled(runtime=False)
def _cost_again(
    moved: int,
    key_of: Callable[..., Any],
    describe: Callable[..., Any],
    handle: int,
    posterior: Posterior,
    acquisition: Acquisition,
    workspace: Workspace,
) -> float:
    """Read the costs of the touched places again and return by how much the cost changes."""
    difference = 0.0
    for i in range(moved):
        place = workspace.touched[i]
        workspace.old_costs[i] = workspace.costs[place]
        workspace.costs[place] = part_cost(key_of, describe, handle, place, posterior, acquisition)
        difference += workspace.costs[place] - workspace.old_costs[i]
    return difference


@compiled(runtime=False)
def _accepts(difference: float, heat: float, workspace: Workspace) -> bool:
    """Apply the rule of Metropolis; a heat of 1 is the geometric mean of the differences so far."""
    if difference != 0.0:
        workspace.scale[0] += np.log(abs(difference))
        workspace.scale[1] += 1.0
    return difference <= 0.0 or uniform(workspace.random) < np.exp(-difference / (heat * workspace.scale[2]))


@compiled(runtime=False)
def _move_cursor(change: Callable[..., Any], handle: int, target: NDArray, workspace: Workspace) -> None:
    """Set the cursor to a candidate."""
    count, most = 0, len(workspace.columns)
    for column in range(len(target)):
        if workspace.config[column] != target[column]:
            workspace.columns[count], workspace.values[count] = column, target[column]
            workspace.config[column] = target[column]
            count += 1
        if count == most or (count > 0 and column == len(target) - 1):
            change(handle, workspace.columns[:count], workspace.values[:count], workspace.touched)
            count = 0


@compiled()
def mark_pending(
    change: Callable[..., Any],
    key_of: Callable[..., Any],
    describe: Callable[..., Any],
    handle: int,
    posterior: Posterior,
    workspace: Workspace,
    keys: NDArray,
    places: NDArray,
    features: NDArray,
) -> int:
    """Mark the unmeasured parts of `workspace.best` as pending, and describe those that were not.

    Return their number, and write their `(p,)` keys, `(p,)` places and `(p, f)` features.
    """
    _move_cursor(change, handle, workspace.best, workspace)
    new = 0
    for place in range(len(workspace.costs)):
        if key_of(handle, place, posterior.key) > 0.0:
            slot = find(posterior.table, posterior.key[0])
            state = posterior.table.states[slot]
            if state == PREDICTED:
                posterior.table.states[slot] = PENDING
            if state in (PREDICTED, EMPTY):
                keys[new], places[new] = posterior.key[0], place
                describe(handle, place, features[new])
                new += 1
    return new


WIDEST = 256
_LARGEST_GROUP = 32
_STRETCH = 8


class Proposals(NamedTuple):
    """What moves may change.

    Attributes:
      sizes: `(d,)` numbers of values.
      ordered: `(d,)` whether values are ordered.
      movable: parameters with two values or more.
      members, starts: group g, `members[starts[g]:starts[g + 1]]`, is set to one value by a move.
      bonds, neighbours: as `Structure.starts` and `Structure.neighbours`.
      whole: `(d,)` whether a parameter is in `Cursor.whole`.
    """

    sizes: NDArray[np.int64]
    ordered: NDArray[np.bool_]
    movable: NDArray[np.int64]
    members: NDArray[np.int64]
    starts: NDArray[np.int64]
    bonds: NDArray[np.int64]
    neighbours: NDArray[np.int32]
    whole: NDArray[np.bool_]


def proposals(space: Space, structure: Structure, whole: range) -> Proposals:
    """Return the moves of a space.

    A group holds the parameters that decide one node, or the uses of one node, or those with equal features. It has two
    parameters or more, all with the same number of values.
    """
    sizes = space.sizes.astype(np.int64)
    alike = np.unique(structure.features, axis=0, return_inverse=True)[1].reshape(-1)
    found = [group for label in (alike, *decided_nodes(structure)) for group in _groups(label, sizes)]
    starts = np.cumsum([0, *map(len, found)])
    is_whole = np.zeros(len(sizes), bool)
    is_whole[whole.start : whole.stop] = True
    members = np.concatenate([np.empty(0, np.int64), *found])
    return Proposals(
        sizes,
        np.asarray(space.kinds == Kind.SCALE),
        np.asarray(Moves(space).movable, np.int64),
        members,
        starts.astype(np.int64),
        np.ascontiguousarray(structure.starts, np.int64),
        np.ascontiguousarray(structure.neighbours, np.int32),
        is_whole,
    )


def _groups(label: NDArray, sizes: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the places of each pair of label and size; none for a negative label."""
    known = np.flatnonzero((label >= 0) & (sizes > 1))
    order = known[np.lexsort((sizes[known], label[known]))]
    change = (np.diff(label[order]) != 0) | (np.diff(sizes[order]) != 0)
    split = np.split(order, np.flatnonzero(change) + 1)
    return [group for group in split if 2 <= len(group) <= _LARGEST_GROUP]


@compiled(runtime=False)
def propose(moves: Proposals, config: NDArray, columns: NDArray, values: NDArray, random: NDArray) -> int:
    """Write a move and return how many parameters it changes, at least one.

    Half of the moves change one parameter, the others set a group, or a stretch of neighbours, to one value.
    """
    kind, count = uniform(random), 0
    if kind < 0.4 and len(moves.starts) > 1:
        group = below(len(moves.starts) - 1, random)
        value = below(moves.sizes[moves.members[moves.starts[group]]], random)
        for i in range(moves.starts[group], moves.starts[group + 1]):
            count = _set(moves.members[i], value, config, columns, values, count)
    elif kind < 0.5:
        first = below(len(moves.movable), random)
        value = below(moves.sizes[moves.movable[first]], random)
        for i in range(first, min(first + 2 + below(_STRETCH, random), len(moves.movable))):
            if value < moves.sizes[moves.movable[i]]:
                count = _set(moves.movable[i], value, config, columns, values, count)
    if count == 0:
        column = moves.movable[below(len(moves.movable), random)]
        count = _set(column, _other(config[column], column, moves, random), config, columns, values, 0)
    return count


@compiled(runtime=False)
def _other(value: int, column: int, moves: Proposals, random: NDArray) -> int:
    """Return another value of a parameter; of a scale, a neighbouring one half of the time."""
    size = moves.sizes[column]
    if moves.ordered[column] and uniform(random) < 0.5:
        value += 1 if uniform(random) < 0.5 else -1
        return 1 if value < 0 else size - 2 if value == size else value
    return (value + 1 + below(size - 1, random)) % size


@compiled(runtime=False)
def copy(moves: Proposals, column: int, source: NDArray, config: NDArray, columns: NDArray, values: NDArray) -> int:
    """Write the move that sets a parameter and those that it interacts with as in `source`; return how many change."""
    count = _set(column, source[column], config, columns, values, 0)
    for i in range(moves.bonds[column], moves.bonds[column + 1]):
        other = moves.neighbours[i]
        count = _set(other, source[other], config, columns, values, count)
    return count


@compiled(runtime=False)
def _set(column: int, value: int, config: NDArray, columns: NDArray, values: NDArray, count: int) -> int:
    """Add a change to a move unless the parameter has the value; return the number of changes."""
    if config[column] == value or count == len(columns):
        return count
    columns[count], values[count] = column, value
    return count + 1


@compiled(runtime=False)
def uniform(state: NDArray[np.uint64]) -> float:
    """Return a number from 0 to less than 1, and advance the `(1,)` state."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    return np.float64(scrambled(state[0]) >> np.uint64(11)) * 2.0**-53


@compiled(runtime=False)
def below(n: int, state: NDArray[np.uint64]) -> int:
    """Return an integer from 0 to less than n, and advance the state."""
    return int(uniform(state) * n)
