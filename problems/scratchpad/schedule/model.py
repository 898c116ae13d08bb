"""A workload of the contest as a search problem."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Space, Structure

from ..model import Groups, Model
from .arrays import ORDERS, arrays, structure
from .evaluation import FEATURES, build, choose_alone, decode, evaluate, new_schedule, write_groups
from .group import new_group
from .workload import PUBLISHED, SOURCE, read

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
        default = np.zeros(len(values), np.int64)
        choose_alone(default, self._graph, self._group)
        self.default = default.astype(self.space.dtype)
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
