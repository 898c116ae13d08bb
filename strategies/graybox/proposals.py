"""The moves of a virtual search: one parameter, a group of parameters, or a stretch of neighbours."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Kind, Moves, Space, Structure
from bbo_suite.compiled import compiled_for

from .randomness import below, uniform

compiled = compiled_for(__file__)

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
    """

    sizes: NDArray[np.int64]
    ordered: NDArray[np.bool_]
    movable: NDArray[np.int64]
    members: NDArray[np.int64]
    starts: NDArray[np.int64]
    bonds: NDArray[np.int64]
    neighbours: NDArray[np.int32]


def proposals(space: Space, structure: Structure) -> Proposals:
    """Return the moves of a space.

    A group holds the parameters that decide one node, or the uses of one node, or those with equal features. It has two
    parameters or more, all with the same number of values.
    """
    sizes = space.sizes.astype(np.int64)
    labels: list[NDArray] = [np.unique(structure.features, axis=0, return_inverse=True)[1].reshape(-1)]
    if structure.graph is not None and structure.edges is not None:
        labels += [np.where(structure.edges >= 0, structure.graph.edges[structure.edges, side], -1) for side in (0, 1)]
    if structure.nodes is not None:
        labels.append(structure.nodes)
    found = [group for label in labels for group in _groups(label, sizes)]
    starts = np.cumsum([0, *map(len, found)])
    members = np.concatenate([np.empty(0, np.int64), *found])
    return Proposals(
        sizes,
        np.asarray(space.kinds == Kind.SCALE),
        np.asarray(Moves(space).movable, np.int64),
        members,
        starts.astype(np.int64),
        np.ascontiguousarray(structure.starts, np.int64),
        np.ascontiguousarray(structure.neighbours, np.int32),
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
