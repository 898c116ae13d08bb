"""A workload of the contest as a search problem."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Space, Structure
from bbo_suite.compiled import compiled_for

from ..model import Groups, Model
from .group import MOST, Group, fit_tile, gather, key, latency, new_group, set_tile, working_set
from .workload import ORDERS, PUBLISHED, SOURCE, Arrays, Column, arrays, read, structure

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
def choose_alone(ops: NDArray, default: NDArray, graph: Arrays, group: Group) -> None:
    """Write into `default` the tile and the order that make each of some operations fastest when it runs alone."""
    for op in ops:
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


def _alike(graph: Arrays) -> NDArray[np.int64]:
    """Return for each operation the first one that has the same best tile and order when it runs alone.

    Thousands of operations of a network are the same, and each tries thousands of tiles.
    """
    first: dict[object, int] = {}
    depths, starts, inputs = graph.columns[:, Column.DEPTH], graph.starts.tolist(), graph.inputs.tolist()
    sizes = list(map(tuple, graph.sizes.tolist()))
    found = []
    for op, (output, cost, depth) in enumerate(zip(graph.outputs, graph.costs, graph.depths, strict=True)):
        read = inputs[starts[op] : starts[op + 1]]
        deepest = graph.values[depths[op]].tobytes() if depths[op] >= 0 else b""
        key = (*(sizes[t] for t in read), *map(read.index, read), sizes[output], cost, depth, deepest)
        found.append(first.setdefault(key, op))
    return np.array(found)


def _default(graph: Arrays, d: int) -> NDArray[np.int64]:
    """Return the `(d,)` candidate in which each operation runs alone, with the tile and the order that suit it best."""
    default, alike = np.zeros(d, np.int64), _alike(graph)
    choose_alone(np.unique(alike), default, graph, new_group())
    for column in (Column.WIDTH, Column.HEIGHT, Column.DEPTH, Column.ORDER):
        has = graph.columns[:, column] >= 0
        default[graph.columns[has, column]] = default[graph.columns[alike[has], column]]
    return default


@compiled(runtime=False)
def _last(graph: Arrays, column: int) -> int:
    """Return the last index of a column; the first value of 0 ends its row."""
    if column < 0:
        return 0
    last = graph.values.shape[1] - 1
    while graph.values[column, last] == 0:
        last -= 1
    return last


_VERSION = "1"
_MOST_TILES = 1 << 16


class ScheduleModel(Model):
    """Groups of operations, the tile of each group, the order of its tiles, and whether its result stays.

    A group computes one result that leaves. An operation joins the group of each operation that takes it in, and runs
    on its own, too, if another one reads its result from memory. Groups run in the order of the file. What a candidate
    wants and the hardware cannot do is repaired, so that every candidate is feasible: an operation does not join, a
    tile gets smaller, a result does not stay.

    Raises:
      UserError: the file cannot be used.
    """

    unit = "time"

    def __init__(self, path: Path) -> None:
        self._workload = read(path)
        self._graph, names, values, self._owners = arrays(self._workload)
        kinds = np.where([": order" in name or len(v) == 2 for name, v in zip(names, values, strict=True)], 0, 1)
        shown = [ORDERS if ": order" in name else v for name, v in zip(names, values, strict=True)]
        self.space = Space([len(v) for v in values], kinds.astype(np.int8), names=names, values=shown)
        self._schedule, self._group = new_schedule(len(self._workload.order)), new_group()
        self.default = _default(self._graph, len(values)).astype(self.space.dtype)
        self.content = f"{_VERSION}|{self._workload.digest()}"
        self._published = PUBLISHED.get(self._workload.digest(), {})
        self.published_in = SOURCE if self._published else ""
        self.groups = Groups(FEATURES, len(self._graph.outputs), self._write_groups)

    def write_costs(self, configs: NDArray[np.int64], values: NDArray[np.float64]) -> None:
        """Write the time of each schedule."""
        evaluate(configs, self._graph, self._schedule, self._group, values)

    def _write_groups(self, configs: NDArray[np.int64], *arrays: NDArray) -> None:
        write_groups(configs, self._graph, self._schedule, self._group, *arrays)

    def structure(self) -> Structure:
        """Return that decisions about one operation interact, and about two of which one reads the other."""
        return structure(self._graph, self._owners, self.groups)

    def paste(self, config: NDArray) -> str:
        """Return the schedule as the contest wants it; an order of too many tiles is left out."""
        rows: dict[str, list[object]] = {}
        for group in self.schedule(config):
            for name, value in group.items():
                rows.setdefault(name, []).append(value)
        return json.dumps(rows)

    def schedule(self, config: NDArray) -> list[dict[str, object]]:
        """Return the groups of a candidate, as the contest writes them."""
        graph, schedule, group = self._graph, self._schedule, self._group
        config = config.astype(np.int64)
        decode(config, graph, schedule, group)
        found: list[dict[str, object]] = []
        for root in np.flatnonzero(schedule.needed).tolist():
            build(root, config, graph, schedule, group)
            width, height, depth, order = group.tile.tolist()
            result = int(graph.outputs[root])
            across, down = (-(-int(n) // size) for n, size in zip(graph.sizes[result], (width, height), strict=True))
            members = sorted(group.ops[: group.counts[0]].tolist())
            found.append(
                {
                    "subgraphs": [self._workload.order[op] for op in members],
                    "granularities": [width, height, depth],
                    "tensors_to_retain": [result] if schedule.retains[root] else [],
                    "traversal_orders": _traversal(order, across, down),
                    "subgraph_latencies": float(schedule.times[root]),
                }
            )
        return found

    def usage(self) -> str:
        """Return where the format comes from."""
        return "a solution in the format of the MLSys 2026 contest; our reading of its rules is in the documentation"

    def facts(self) -> dict[str, str]:
        """Return the size of the graph and of the memory."""
        workload = self._workload
        return {
            "operations": f"{len(workload.outputs):,}",
            "capacity": f"{workload.capacity:,} elements",
            "bandwidth": f"{workload.bandwidth:,} elements per unit of time",
        }

    def baselines(self) -> dict[str, float]:
        """Return the costs that teams of the contest published for this graph."""
        return dict(self._published)


def _traversal(order: int, across: int, down: int) -> list[int] | None:
    """Return the numbers of the tiles, which count along rows, in the order in which they are visited."""
    if order == 0 or across * down > _MOST_TILES:
        return None
    tiles = np.arange(across * down).reshape(down, across)
    lines = tiles if order < 3 else tiles.T.copy()
    if order in (2, 4):
        lines[1::2] = lines[1::2, ::-1].copy()
    return [int(tile) for tile in lines.ravel()]
