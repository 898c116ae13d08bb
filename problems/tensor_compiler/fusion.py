"""The fusion pass: a boolean per producer-consumer edge, with the semantics of XLA's instruction fusion.

A producer fused into some of its consumers is computed again in each of their kernels, and is in memory once if any
consumer takes it from there. Heavy operations (matrix products, reductions) are never computed twice. What is illegal
is refused, and the producer goes to memory: an error of no candidate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .fusion_arrays import COLUMN, WEIGHT, Costs, effective_costs
from .fusion_sweep import sweep
from .kernel_settings import SLOTS
from .layout import Laid
from .machine import Machine
from .timing import KERNEL_WIDTH, OPERANDS, OPERATIONS, READ, WORK

_CAUTIOUS, _BOLD = 0.6, np.inf
_REVISIONS = 8


@dataclass(frozen=True)
class Kernels:
    """What a configuration makes of a graph: one kernel for each node whose result lies in memory.

    Attributes:
      result: `(k,)` the node that each kernel computes.
      cycles: `(k,)` of one run of the kernel.
      runs: `(k,)` how often each runs.
      operations: `(k,)` nodes that are fused in it.
      read: `(k,)` bytes that one pass reads from memory.
      operands: `(k,)` arrays read.
      rows: `(k, KERNEL_WIDTH)` all that its timing depends on (see `timing`).
    """

    result: NDArray[np.int64]
    cycles: NDArray[np.float64]
    runs: NDArray[np.float64]
    operations: NDArray[np.int64]
    read: NDArray[np.float64]
    operands: NDArray[np.int64]
    rows: NDArray[np.float64]


class Fusion:
    """The pass on one laid-out program and machine.

    Attributes:
      columns: `(d,)` those of the pass's columns over all layouts that decide something here, ascending; a
        configuration has a column for each.
      arrays: of the program, with the edges' columns counted in these.
    """

    def __init__(self, laid: Laid, machine: Machine) -> None:
        column = laid.arrays.edge[:, COLUMN]
        live = np.bincount(column + 1)[1:] > 0
        self.columns = np.flatnonzero(live)
        edge = laid.arrays.edge.copy()
        edge[:, COLUMN] = np.append(np.where(live, np.cumsum(live) - 1, -1), -1)[column]
        self.arrays = laid.arrays._replace(edge=edge)
        self._machine, self._on_paper = machine.array(), machine.on_paper().array()

    def seconds(self, configs: NDArray) -> NDArray[np.float64]:
        """Return the `(n,)` run times of the program under `(n, d)` configurations."""
        return self._sweep(configs, self._machine)[0]

    def tuned_seconds(self, configs: NDArray, settings: NDArray) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the run times under configurations that also set tiles and flags, and what overflows.

        Args:
          configs: `(b, d)`.
          settings: `(b, n, 9)`, for the kernel whose result is each node of the graph: 0 for the compiler's choice, i
            for the i-th value of a slot (see `kernel_settings`). A node that is not in memory ignores it, and so does
            a kernel that no tile of the compiler fits.

        Returns:
          `(b,)` seconds, inf where the windows of a kernel overflow as they are set; and `(b,)` the first
          node of such a kernel, or -1.
        """
        seconds, _, overflowing = self._sweep(configs, self._machine, settings)
        return seconds, overflowing

    def kernels(self, config: NDArray) -> Kernels:
        """Return the kernels that one `(d,)` configuration makes."""
        found = self._sweep(config[None], self._machine)[1]
        result = np.flatnonzero(found[:, 0])
        cycles, rows = found[result, 0], found[result, 1:]
        counts = rows[:, [OPERATIONS, OPERANDS]].astype(np.int64)
        runs, read = self.arrays.node[result, WEIGHT], rows[:, READ:WORK].sum(axis=1)
        return Kernels(result, cycles, runs, counts[:, 0], read, counts[:, 1], rows)

    def default(self) -> NDArray[np.int8]:
        """Return the `(d,)` configuration that the compiler chooses on its own.

        It walks from the outputs to the inputs, as XLA's instruction fusion does, and fuses a producer into all its
        consumers where a roofline model says that this pays. First it copies a producer only where that reads little;
        then it revises its plan with the inputs that each producer really has under it, until nothing changes. Of its
        plans it takes the best by the machine on paper; nothing of the machine's second-order effects is used.
        """
        config = np.zeros((1, len(self.columns)), np.int8)
        costs = effective_costs(config[0], self.arrays)
        best, best_seconds = config[0], np.inf
        for caution in [_CAUTIOUS] + [_BOLD] * _REVISIONS:
            before = config.copy()
            self._sweep(config, self._on_paper, None, caution, costs)
            if caution == _BOLD and (config == before).all():
                break
            seconds = float(self._sweep(config, self._on_paper)[0][0])
            if seconds < best_seconds:
                best, best_seconds = config[0].copy(), seconds
            costs = effective_costs(config[0], self.arrays)
        return best

    def _sweep(
        self,
        configs: NDArray,
        machine: NDArray,
        settings: NDArray | None = None,
        caution: float = 0.0,
        costs: Costs | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
        """Return `(b,)` seconds, the last configuration's kernels, and `(b,)` nodes whose kernel overflows, or -1.

        `caution` lets the compiler decide itself: then the configurations, `int8` in C order, are written.
        """
        rows = np.require(configs, np.int8, ["C", "W"])
        b, n, empty = len(rows), len(self.arrays.kind), np.empty(0)
        seconds, kernels, overflowing = np.empty(b), np.empty((n, 1 + KERNEL_WIDTH)), np.empty(b, np.int64)
        tuned = np.empty((b, 0, len(SLOTS)), np.int8) if settings is None else np.require(settings, np.int8, ["C", "W"])
        decided = costs or Costs(empty, empty)
        sweep(rows, self.arrays, machine, self._on_paper, caution, decided, tuned, kernels, seconds, overflowing)
        return seconds, kernels, overflowing
