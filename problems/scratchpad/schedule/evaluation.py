"""Candidates as schedules: which groups there are, in which order, what stays between them, and their times."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from .arrays import ORDERS, Arrays, Column
from .group import MOST, Group, fit_tile, gather, key, latency, set_tile, working_set

compiled = compiled_for(__file__)

FEATURES = (
    "operations",
    "slices",
    "width",
    "height",
    "depth",
    "order",
    "result",
    "working set",
    "work",
    "kept",
    "keeps",
)


class Schedule(NamedTuple):
    """The groups of a candidate, each at the place of the operation whose result leaves.

    Attributes:
      needed: whether there is such a group.
      readers: the only group that loads the result, -1 if none does, -2 if several do.
      sizes: how many operations each group may have.
      retained: the tensor that is in fast memory in full before the group runs, or -1.
      retains: whether the group leaves its result there.
      times: the time of each group.
    """

    needed: NDArray[np.bool_]
    readers: NDArray[np.int64]
    sizes: NDArray[np.int64]
    retained: NDArray[np.int64]
    retains: NDArray[np.bool_]
    times: NDArray[np.float64]


def new_schedule(operations: int) -> Schedule:
    """Return a schedule without groups."""
    numbers = [np.zeros(operations, kind) for kind in (bool, np.int64, np.int64, np.int64, bool, np.float64)]
    return Schedule(*numbers)


@compiled()
def build(root: int, config: NDArray, graph: Arrays, schedule: Schedule, group: Group) -> None:
    """Compute the group of an operation again, as the schedule has it."""
    gather(root, config, graph, group, schedule.sizes[root])
    fit_tile(config, graph, group)


@compiled()
def _add_group(root: int, config: NDArray, graph: Arrays, schedule: Schedule, group: Group) -> None:
    """Form a group that fits; if the smallest tile does not, the operation that joined last leaves."""
    schedule.sizes[root] = MOST
    gather(root, config, graph, group, MOST)
    while not fit_tile(config, graph, group) and group.counts[0] > 1:
        schedule.sizes[root] = group.counts[0] - 1
        gather(root, config, graph, group, schedule.sizes[root])
    for place in range(group.counts[1]):
        made = graph.producers[group.tensors[place]]
        if made >= 0 and schedule.readers[made] != root:
            schedule.needed[made] = True
            schedule.readers[made] = root if schedule.readers[made] == -1 else -2
    schedule.retained[root], schedule.retains[root] = -1, False
    schedule.times[root] = latency(graph, group, -1, False)


@compiled()
def _try_to_keep(root: int, after: int, config: NDArray, graph: Arrays, schedule: Schedule, group: Group) -> None:
    """Leave the result of a group in fast memory for the next one, if only that one reads it and both fit."""
    tensor = graph.outputs[root]
    if working_set(graph, group, -1, True) > graph.hardware[0]:
        return
    own = latency(graph, group, -1, True)
    build(after, config, graph, schedule, group)
    if working_set(graph, group, tensor, schedule.retains[after]) <= graph.hardware[0]:
        schedule.retained[after], schedule.retains[root], schedule.times[root] = tensor, True, own
        schedule.times[after] = latency(graph, group, tensor, schedule.retains[after])
    build(root, config, graph, schedule, group)


@compiled()
def decode(config: NDArray, graph: Arrays, schedule: Schedule, group: Group) -> float:
    """Set the schedule of a candidate and return its time; every candidate is feasible."""
    after, total = -1, 0.0
    for op in range(len(graph.outputs)):
        schedule.needed[op], schedule.readers[op] = graph.final[op], -1
    for op in range(len(graph.outputs) - 1, -1, -1):
        if schedule.needed[op]:
            _add_group(op, config, graph, schedule, group)
            keep = graph.columns[op, Column.KEEP]
            if keep >= 0 and config[keep] == 1 and schedule.readers[op] == after:
                _try_to_keep(op, after, config, graph, schedule, group)
            after = op
    for op in range(len(graph.outputs)):
        if schedule.needed[op]:
            total += schedule.times[op]
    return total


@compiled()
def evaluate(configs: NDArray, graph: Arrays, schedule: Schedule, group: Group, values: NDArray) -> None:
    """Write the `(n,)` times of `(n, d)` candidates."""
    for i in range(len(configs)):
        values[i] = decode(configs[i], graph, schedule, group)


@compiled()
def write_groups(
    configs: NDArray,
    graph: Arrays,
    schedule: Schedule,
    group: Group,
    starts: NDArray,
    keys: NDArray,
    costs: NDArray,
    features: NDArray,
) -> None:
    """Write the groups of `(n, d)` candidates, in the order in which they run: `starts` first, then a row for each."""
    count = 0
    for i in range(len(configs)):
        decode(configs[i], graph, schedule, group)
        for op in range(len(graph.outputs)):
            if schedule.needed[op]:
                build(op, configs[i], graph, schedule, group)
                keys[count] = key(graph, group, schedule.retained[op], schedule.retains[op])
                costs[count] = schedule.times[op]
                _describe(graph, group, schedule.retained[op], schedule.retains[op], features[count])
                count += 1
        starts[i + 1] = count


@compiled()
def _describe(graph: Arrays, group: Group, retained: int, retains: bool, features: NDArray) -> None:
    result, work = graph.outputs[group.ops[0]], 0.0
    for place in range(group.counts[0]):
        work += graph.costs[group.ops[place]]
    features[0], features[1] = group.counts[0], group.counts[1]
    for i in range(4):
        features[2 + i] = group.tile[i]
    features[6] = float(graph.sizes[result, 0]) * graph.sizes[result, 1]
    features[7] = working_set(graph, group, retained, retains)
    features[8], features[9], features[10] = work, retained >= 0, retains


@compiled()
def choose_alone(default: NDArray, graph: Arrays, group: Group) -> None:
    """Write into `default` the tile and the order that make each operation fastest when it runs alone."""
    for op in range(len(graph.outputs)):
        gather(op, default, graph, group, 1)
        columns, best = graph.columns[op], np.inf
        deepest = _last(graph, columns[Column.DEPTH])
        for width in range(_last(graph, columns[Column.WIDTH]), -1, -1):
            for height in range(_last(graph, columns[Column.HEIGHT]), -1, -1):
                for depth in range(deepest, -1, -1):
                    set_tile(graph, group, width, height, depth)
                    if working_set(graph, group, -1, False) > graph.hardware[0]:
                        continue
                    for order in range(1, len(ORDERS)):
                        group.tile[3] = order
                        time = latency(graph, group, -1, False)
                        if time < best:
                            best = time
                            default[columns[Column.WIDTH]], default[columns[Column.HEIGHT]] = width, height
                            default[columns[Column.ORDER]] = order
                            if columns[Column.DEPTH] >= 0:
                                default[columns[Column.DEPTH]] = depth


@compiled(runtime=False)
def _last(graph: Arrays, column: int) -> int:
    """Return the last index of a column; the first value of 0 ends its row."""
    if column < 0:
        return 0
    last = graph.values.shape[1] - 1
    while graph.values[column, last] == 0:
        last -= 1
    return last
