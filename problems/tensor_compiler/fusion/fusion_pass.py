"""The fusion pass: a boolean per producer-consumer edge, with the semantics of XLA's instruction fusion.

A producer fused into some of its consumers is computed again in each of their kernels, and is in memory once if any
consumer takes it from there. Heavy operations (matrix products, reductions) are never computed twice. What is illegal
is refused, and the producer goes to memory: an error of no candidate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..hardware.kernel_row import KERNEL_WIDTH, Kernel
from ..hardware.kernel_settings import SLOTS
from ..hardware.machine import Machine
from ..layout.arrays import Edge, Node, effective_costs
from ..layout.layout_pass import LaidOutProgram
from .evaluation import evaluate
from .kernel_timing import describe_kernels
from .kernel_totals import NO_EDGES, IncomingEdges, inputs
from .state import Counter, FusionState, Known, StateBuffer, Tally
from .sweep import decide

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

    Args:
      laid: the program.
      machine: what it runs on.
      memory: shared by programs of which one is evaluated at a time; its own when left out.
    """

    def __init__(self, laid: LaidOutProgram, machine: Machine, memory: StateBuffer | None = None) -> None:
        column = laid.arrays.edge[:, Edge.DECISION]
        live = np.bincount(column + 1)[1:] > 0
        self.columns = np.flatnonzero(live)
        edge = laid.arrays.edge.copy()
        edge[:, Edge.DECISION] = np.append(np.where(live, np.cumsum(live) - 1, -1), -1)[column]
        self.arrays = laid.arrays._replace(edge=edge)
        self._memory = memory or StateBuffer()
        self._machine, self._on_paper = machine.array(), machine.on_paper().array()

    @cached_property
    def _inputs(self) -> IncomingEdges:
        return inputs(self.arrays, len(self.columns))

    @property
    def _state(self) -> FusionState:
        return self._memory.lend(self, len(self.arrays.kind), len(self.columns))

    def seconds(self, configs: NDArray) -> NDArray[np.float64]:
        """Return the `(n,)` run times of the program under `(n, d)` configurations."""
        return self._evaluate(configs, self._machine)[0]

    def tuned_seconds(self, configs: NDArray, settings: NDArray) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the run times under configurations that also set tiles and flags, and what overflows.

        Args:
          configs: `(b, d)`.
          settings: `(b, n, 9)`, for the kernel whose result is each node of the graph: 0 for the compiler's choice, i
            for the i-th value of a slot (see `kernel_choices`). A node that is not in memory ignores it, and so does
            a kernel that no tile of the compiler fits.

        Returns:
          `(b,)` seconds, inf where the windows of a kernel overflow as they are set; and `(b,)` the first
          node of such a kernel, or -1.
        """
        return self._evaluate(configs, self._machine, settings)

    def kernels(self, config: NDArray) -> Kernels:
        """Return the kernels that one `(d,)` configuration makes."""
        self.seconds(config[None])
        result = np.flatnonzero(self._state.tally[:, Tally.FUSED])
        rows = np.empty((len(result), KERNEL_WIDTH))
        describe_kernels(result, self.arrays, self._state, rows)
        counts = rows[:, [Kernel.OPERATIONS, Kernel.OPERANDS]].astype(np.int64)
        runs, read = self.arrays.node[result, Node.RUNS], rows[:, Kernel.READ : Kernel.WORK].sum(axis=1)
        return Kernels(result, self._state.cycles[result], runs, counts[:, 0], read, counts[:, 1], rows)

    def default(self) -> NDArray[np.int8]:
        """Return the `(d,)` configuration that the compiler chooses on its own.

        It walks from the outputs to the inputs, as XLA's instruction fusion does, and fuses a producer into all its
        consumers where a roofline model says that this pays. First it copies a producer only where that reads little;
        then it revises its plan with the inputs that each producer really has under it, until nothing changes. Of its
        plans it takes the best by the machine on paper; nothing of the machine's second-order effects is used.
        """
        config = np.zeros(len(self.columns), np.int8)
        costs = effective_costs(config, self.arrays)
        best = np.ones_like(config)  # where little is ever computed twice, everything fused is hard to beat
        best_seconds = float(self._evaluate(best[None], self._on_paper)[0][0])
        for caution in [_CAUTIOUS] + [_BOLD] * _REVISIONS:
            before = config.copy()
            decide(config, self.arrays, self._on_paper, caution, costs, self._state)
            if caution == _BOLD and (config == before).all():
                break
            seconds = float(self._evaluate(config[None], self._on_paper)[0][0])
            if seconds < best_seconds:
                best, best_seconds = config.copy(), seconds
            costs = effective_costs(config, self.arrays)
        self._state.counter[Counter.KNOWN] = Known.NOTHING  # the machine changes
        return best

    def _evaluate(
        self, configs: NDArray, machine: NDArray, settings: NDArray | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return `(b,)` seconds on a machine, and `(b,)` nodes whose kernel overflows, or -1."""
        b = len(configs)
        tuned = np.empty((b, 0, len(SLOTS))) if settings is None else settings
        rows, tuned = (np.require(array, np.int8, ["C", "W"]) for array in (configs, tuned))
        seconds, overflowing = np.empty(b), np.empty(b, np.int64)
        state = self._state
        alone = b == 1 and state.counter[Counter.KNOWN] == Known.NOTHING  # a sweep, which does not look at the inputs
        given = NO_EDGES if alone else self._inputs
        evaluate(rows, tuned, self.arrays, given, machine, self._on_paper, state, seconds, overflowing)
        return seconds, overflowing
