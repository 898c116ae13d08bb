"""The fusion pass: a boolean per producer-consumer edge, with the semantics of XLA's instruction fusion.

A producer that is fused into some of its consumers is computed again in each of their kernels, and stored once if any
consumer reads it from memory. Heavy operations (matrix products, reductions) are never computed twice. Illegal fusions
are skipped, and the producer goes to memory; the candidate stays valid. A kernel that reads what another one makes may
join it, which then has several results; this follows from the decisions (see `guests`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Parts
from bbo_suite.parts.parts import concatenated

from ..hardware.kernel_row import KERNEL_WIDTH, Kernel
from ..hardware.kernel_settings import SLOTS
from ..hardware.machine import Machine, Rate
from ..layout.arrays import Edge, FusionGraph, Node
from ..layout.layout_pass import LaidOutProgram
from .default_fusion import choose, new_plan_memory
from .evaluation import evaluate
from .guests import kernels_of
from .incremental import NO_EDGES, IncomingEdges, inputs
from .kernels import describe_kernels, kernel_keys
from .state import Counter, FusionState, Known, Member, Span, StateBuffer, Tally


@dataclass(frozen=True)
class Kernels:
    """The kernels of a configuration: one for each node whose result is in memory and that is no guest of another one.

    Attributes:
      result: `(k,)` the node that each kernel computes.
      cycles: `(k,)` of one run of the kernel.
      runs: `(k,)` how often each runs.
      operations: `(k,)` nodes fused in each.
      read: `(k,)` bytes that one pass reads from memory.
      operands: `(k,)` arrays read.
      rows: `(k, KERNEL_WIDTH)` everything that the timing depends on, with the columns of `Kernel`.
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
      columns: `(d,)` those of the pass's columns that decide something in this layout, ascending; a configuration
        has a column for each.
      arrays: the graph of the program; its decisions are numbered as in `columns`.
      analytical: the machine of the data sheet, by which the compiler chooses.

    Args:
      laid: the program.
      machine: what it runs on.
      buffer: shared by programs that are evaluated one at a time; by default the pass has its own.
    """

    def __init__(self, laid: LaidOutProgram, machine: Machine, buffer: StateBuffer | None = None) -> None:
        column = laid.arrays.edge[:, Edge.DECISION]
        live = np.bincount(column + 1)[1:] > 0
        self.columns = np.flatnonzero(live)
        edge = laid.arrays.edge.copy()
        edge[:, Edge.DECISION] = np.append(np.where(live, np.cumsum(live) - 1, -1), -1)[column]
        self.arrays = laid.arrays._replace(edge=edge)
        self._buffer = buffer or StateBuffer()
        self._machine, self.analytical = machine.array(), machine.analytical_model().array()

    @cached_property
    def inputs(self) -> IncomingEdges:
        """The edges of the graph by consumer and by column."""
        return inputs(self.arrays, len(self.columns))

    @property
    def state(self) -> FusionState:
        """What is known of the last candidate."""
        return self._buffer.lend(self, len(self.arrays.kind), len(self.columns))

    def seconds(self, configs: NDArray) -> NDArray[np.float64]:
        """Return the `(n,)` run times of the program under `(n, d)` configurations."""
        return self._evaluate(configs, self._machine)[0]

    def tuned_seconds(self, configs: NDArray, settings: NDArray) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the run times under configurations that also set tiles and flags, and the kernels that overflow.

        Args:
          configs: `(b, d)`.
          settings: `(b, n, 9)`, for the kernel of each node of the graph: 0 for the compiler's choice, i for the i-th
            other value of a slot (see `kernel_settings.override`). They are ignored for a node that is not in memory,
            and for a kernel that no tile fits.

        Returns:
          `(b,)` seconds, inf if the settings make the windows of a kernel overflow; and `(b,)` the first node with
          such a kernel, or -1.
        """
        return self._evaluate(configs, self._machine, settings)

    def seconds_of_parts(self, configs: NDArray) -> tuple[NDArray[np.float64], Parts]:
        """Return the `(n,)` run times of the program and the kernels of each configuration."""
        found = [(self.seconds(config[None])[0], self.last_parts()) for config in configs]
        return np.array([seconds for seconds, _ in found]), concatenated([parts for _, parts in found])

    def last_parts(self, settings: NDArray | None = None) -> Parts:
        """Return the kernels of the configuration that was evaluated last, with its `(n, 9)` settings if it had any."""
        places = kernels_of(self.state)
        keys, none = np.empty(len(places), np.uint64), np.zeros((len(places), len(SLOTS)), np.int8)
        kernel_keys(places, none if settings is None else settings[places], self.arrays, self.state, keys)
        costs = self.state.cycles[places] / self._machine[Rate.HERTZ]
        return Parts(np.array([0, len(places)]), keys, self.arrays.node[places, Node.RUNS], costs)

    def kernels(self, config: NDArray) -> Kernels:
        """Return the kernels that one `(d,)` configuration makes."""
        self.seconds(config[None])
        result = kernels_of(self.state)
        rows = np.empty((len(result), KERNEL_WIDTH))
        describe_kernels(result, self.arrays, self.state, rows)
        counts = rows[:, [Kernel.OPERATIONS, Kernel.OPERANDS]].astype(np.int64)
        runs, read = self.arrays.node[result, Node.RUNS], rows[:, Kernel.READ : Kernel.WORK].sum(axis=1)
        return Kernels(result, self.state.cycles[result], runs, counts[:, 0], read, counts[:, 1], rows)

    def last_program(self) -> FusedProgram:
        """Return the kernels of the configuration that was evaluated last."""
        return fused_program(self.arrays, self.state)

    def default(self) -> NDArray[np.int8]:
        """Return the `(d,)` configuration that the compiler chooses on its own (see `default_fusion.choose`)."""
        plans = new_plan_memory(len(self.arrays.kind), len(self.columns))
        choose(self.arrays, self.inputs, self.analytical, plans, self.state)
        return plans.best

    def _evaluate(
        self, configs: NDArray, machine: NDArray, settings: NDArray | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return `(b,)` seconds on a machine, and `(b,)` nodes whose kernel overflows, or -1."""
        b = len(configs)
        tuned = np.empty((b, 0, len(SLOTS))) if settings is None else settings
        rows, tuned = (np.require(array, np.int8, ["C", "W"]) for array in (configs, tuned))
        seconds, overflowing = np.empty(b), np.empty(b, np.int64)
        state = self.state
        alone = b == 1 and state.counter.item(Counter.KNOWN) == Known.NOTHING  # a sweep, which ignores the inputs
        inputs = NO_EDGES if alone else self.inputs
        evaluate(rows, tuned, self.arrays, inputs, machine, self.analytical, state, seconds, overflowing)
        return seconds, overflowing


class CandidateKernels(NamedTuple):
    """The k kernels of a candidate.

    Attributes:
      laid: the program.
      fusion: the fusion pass, for the machine of the analytical model; it has seen the candidate last.
      rows: `(k, KERNEL_WIDTH)` with the columns of `Kernel`.
      result, runs: `(k,)` the node that each kernel computes, and how often it runs.
      values: `(k, 9)` settings, in the order of `SLOTS`; None for the compiler's own.
    """

    laid: LaidOutProgram
    fusion: Fusion
    rows: NDArray[np.float64]
    result: NDArray[np.int64]
    runs: NDArray[np.float64]
    values: NDArray[np.float64] | None = None


def candidate_kernels(laid: LaidOutProgram, fusion: Fusion, config: NDArray) -> CandidateKernels:
    """Return the kernels that `(d,)` fusion decisions make, with the compiler's own settings."""
    kernels = fusion.kernels(config)
    return CandidateKernels(laid, fusion, kernels.rows, kernels.result, kernels.runs)


@dataclass(frozen=True)
class FusedProgram:
    """The kernels of one candidate, in the order in which they run.

    Attributes:
      result: `(k,)` the node that each kernel stores; its guests store theirs in the same kernel.
      cycles: `(k,)` of all its runs.
      starts, members: kernel i computes the nodes `members[starts[i]:starts[i + 1]]`, ascending.
      edges: `(m, 2)` numbers of kernels: the second reads what the first stores.
    """

    result: NDArray[np.int64]
    cycles: NDArray[np.float64]
    starts: NDArray[np.int64]
    members: NDArray[np.int64]
    edges: NDArray[np.int64]


def fused_program(graph: FusionGraph, state: FusionState) -> FusedProgram:
    """Return the kernels of the last candidate that was evaluated."""
    n = len(graph.kind)
    result, stored = kernels_of(state), np.flatnonzero(state.tally[:, Tally.FUSED])
    place = np.full(n, -1)
    place[stored] = np.searchsorted(result, state.tally[stored, Tally.HOST])
    nodes, kernels = spread(np.arange(n), state.span[:n, Span.START], state.span[:n, Span.COUNT])
    kernels = place[state.member[kernels, Member.KERNEL]]
    members = np.unique(kernels * n + nodes)  # a host and its guest may compute the same node
    starts = np.searchsorted(members, np.arange(len(result) + 1) * n)
    cycles = state.cycles[result] * graph.node[result, Node.RUNS]
    return FusedProgram(result, cycles, starts, members % n, _edges(graph, nodes, kernels, place))


def _edges(graph: FusionGraph, nodes: NDArray, kernels: NDArray, place: NDArray) -> NDArray[np.int64]:
    """Return the pairs of kernels between which data goes through memory."""
    n = len(graph.kind)
    producers = np.repeat(np.arange(n), np.diff(graph.starts))
    first = np.searchsorted(nodes, np.arange(n + 1))
    users = graph.edge[:, Edge.CONSUMER]
    producer, where = spread(producers, first[users], np.diff(first)[users])
    reader = kernels[where]
    inside = np.isin(producer * len(place) + reader, nodes * len(place) + kernels)
    through = (place[producer] >= 0) & ~inside
    return np.unique(np.column_stack([place[producer], reader])[through], axis=0)


def spread(values: NDArray, starts: NDArray, counts: NDArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return each value as often as its count says, with the places `starts`, `starts + 1`, ... beside it."""
    ends = np.cumsum(counts)
    return np.repeat(values, counts), np.arange(ends[-1] if len(ends) else 0) + np.repeat(
        starts - ends + counts, counts
    )
