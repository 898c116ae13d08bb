"""Groups of parameters that interact: what the predictor sees of them, and the search for the best settings of one.

What it sees are numbers that the task declares. A task that declares nothing, such as a recorded space, is one group,
described by the names and values of its parameters. A predictor then fits other tasks with parameters of these names:
the same kernel on another device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Enumeration, Moves, Space, Task

from ..graphs import components, pairs

NUMBERS = 5
"""Numbers that describe a value of a parameter; see `_numbers`."""
Score = Callable[[NDArray], NDArray[np.float32]]
"""Takes `(n, p)` candidates and returns their `(n,)` predicted costs, inf for those that are forbidden."""

_GENERATION, _PARENTS = 1024, 128


@dataclass(frozen=True)
class Group:
    """Parameters that interact with each other and with no others, such as the settings of one kernel.

    Attributes:
      columns: `(p,)` the parameters, ascending.
      features: `(f,)` the mean of their declared features.
      values: `(p, v, NUMBERS)` what describes each value of each parameter, 0 beyond the last.
    """

    columns: NDArray[np.int64]
    features: NDArray[np.float32]
    values: NDArray[np.float32]

    def content(self) -> bytes:
        """Return what is equal for groups that the predictor cannot tell apart."""
        return self.features.tobytes() + str(self.values.shape).encode() + self.values.tobytes()


def feature_names(task: Task) -> tuple[str, ...]:
    """Return the names of what describes a group of the task."""
    if task.structure is None:
        return tuple(f"values of {task.space.name(i)}" for i in range(len(task.space)))
    return tuple(task.structure.feature_names)


def groups(task: Task) -> list[Group]:
    """Return the groups of a task, in the order of their first parameters."""
    d, structure = len(task.space), task.structure
    if structure is None:
        return [_group(task, np.log(task.space.sizes)[None], np.arange(d))]
    owner = components(d, *pairs(structure.starts, structure.neighbours))
    order = np.argsort(owner, kind="stable")
    members = np.split(order, np.flatnonzero(np.diff(owner[order])) + 1)
    features = structure.features
    return [_group(task, features[columns], columns) for columns in sorted(members, key=lambda columns: columns[0])]


def _group(task: Task, features: NDArray, columns: NDArray[np.int64]) -> Group:
    widest = int(task.space.sizes[columns].max())
    values = np.zeros((len(columns), widest, NUMBERS), np.float32)
    for place, column in enumerate(columns):
        values[place, : task.space.sizes[column]] = _numbers(task, int(column))
    return Group(columns, features.mean(axis=0).astype(np.float32), values)


def _numbers(task: Task, column: int) -> NDArray[np.float64]:
    """Return `(v, NUMBERS)` for the values of a parameter.

    The logarithms of the value and of the default; how often the value fits into the largest one, as a logarithm, as
    the trip count of a loop; the share of the last trip that is empty; whether it is the largest value. A value that
    is no number counts as its index.
    """
    own = list(task.space.values(column))
    try:
        numbers = np.array(own, np.float64)
    except (TypeError, ValueError):
        numbers = np.arange(len(own), dtype=np.float64)
    if not np.isfinite(numbers).all() or numbers.min() < 0:
        numbers = np.arange(len(own), dtype=np.float64)
    largest, trips = numbers.max(), np.ceil(numbers.max() / np.maximum(numbers, 1e-9))
    trips = np.where(numbers > 0, trips, 1.0)
    empty = np.where(numbers > 0, 1 - largest / np.maximum(trips * numbers, 1e-9), 0.0)
    default = np.full(len(own), np.log1p(numbers[task.default[column]]))
    return np.column_stack([np.log1p(numbers), default, np.log(trips), empty, numbers == largest])


def ranked(space: Space, start: NDArray, score: Score, queries: int, rng: Generator) -> NDArray:
    """Return `(k, p)` different candidates in the order of their predicted costs, the best first.

    A space of no more than `queries` candidates is enumerated. A larger one is searched by evolution: the best of all
    so far are the parents of the next generation.

    Args:
      start: `(p,)` a candidate to start from.
      queries: predictions that may be asked for.
    """
    if space.cardinality <= queries:
        rows = Enumeration(space, rng).rows(0, space.cardinality)
        return _sorted(rows, score(rows))[0]
    rows = _different(np.vstack([start[None], space.sample(_GENERATION - 1, rng)]))
    rows, costs = _sorted(rows, score(rows))
    moves = Moves(space)
    for _ in range(queries // _GENERATION - 1):
        new = _different(np.vstack([rows, _children(rows[:_PARENTS], moves, rng)]))[len(rows) :]
        rows, costs = _sorted(np.vstack([rows, new]), np.concatenate([costs, score(new)]))
    return rows[np.isfinite(costs)]


def _sorted(rows: NDArray, costs: NDArray[np.float32]) -> tuple[NDArray, NDArray[np.float32]]:
    order = np.argsort(costs, kind="stable")
    order = order[np.isfinite(costs[order])]
    return rows[order], costs[order]


def _different(rows: NDArray) -> NDArray:
    """Return the rows without repetitions, in their order."""
    rows = np.ascontiguousarray(rows)
    keys = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))[:, 0]
    return rows[np.sort(np.unique(keys, return_index=True)[1])]


def _children(parents: NDArray, moves: Moves, rng: Generator) -> NDArray:
    """Return crossovers of two parents that are drawn in favour of the best, changed in one to three places."""
    mothers, fathers = (np.floor(len(parents) * rng.random(_GENERATION) ** 2).astype(int) for _ in range(2))
    children = moves.cross(parents[mothers], parents[fathers], rng)
    return moves.mutate(children, rng.integers(1, 4, _GENERATION), rng)
