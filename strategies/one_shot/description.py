"""What the predictor sees of a task: numbers that the task declares, for each group of parameters that interact.

A task that declares nothing, such as a recorded space, is one group, described by the names and values of its
parameters. A predictor then fits other tasks with parameters of these names: the same kernel on another device.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from bbo_suite import Task

NUMBERS = 5
"""Numbers that describe a value of a parameter; see `_numbers`."""


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
    links = csr_matrix((np.ones(len(structure.neighbours), np.int8), structure.neighbours, structure.starts), (d, d))
    owner = connected_components(links, directed=False)[1]
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
    given = list(task.space.values(column))
    try:
        numbers = np.array(given, np.float64)
    except (TypeError, ValueError):
        numbers = np.arange(len(given), dtype=np.float64)
    if not np.isfinite(numbers).all() or numbers.min() < 0:
        numbers = np.arange(len(given), dtype=np.float64)
    largest, trips = numbers.max(), np.ceil(numbers.max() / np.maximum(numbers, 1e-9))
    trips = np.where(numbers > 0, trips, 1.0)
    empty = np.where(numbers > 0, 1 - largest / np.maximum(trips * numbers, 1e-9), 0.0)
    default = np.full(len(given), np.log1p(numbers[task.default[column]]))
    return np.column_stack([np.log1p(numbers), default, np.log(trips), empty, numbers == largest])
