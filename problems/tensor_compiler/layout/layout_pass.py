"""The layout pass: a layout for each important operation spreads over the program, with copies where two meet."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from ..graph.graph import ProgramGraph, Tables
from ..hardware.machine import Machine
from ..hlo.opcodes import Kind
from .arrays import Edge, Flow, FusionGraph, GraphArrays, Node, Place, graph_arrays
from .laid_out import Fixed, Plan, fill, number_nodes
from .propagation import UNPINNED, Rates, spread
from .variables import Variables, variables

compiled = compiled_for(__file__)


@dataclass(frozen=True)
class LaidOutProgram:
    """A program after the layout pass.

    Attributes:
      arrays: the graph that the fusion pass reads; its decisions are columns of the layout pass that made it.
      origin: `(n',)` the node of the first graph that each node is, `-1 - u` for a copy of u.
      graph: the first graph.
    """

    arrays: FusionGraph
    origin: NDArray[np.int64]
    graph: ProgramGraph

    def name(self, node: int) -> str:
        """Return the name of a node."""
        v = int(self.origin[node])
        return self.graph.names[v] if v >= 0 else f"copy of {self.graph.names[-1 - v]}"

    def opcode(self, node: int) -> str:
        """Return the opcode of a node."""
        v = int(self.origin[node])
        return self.graph.opcodes[v] if v >= 0 else "copy"


class Source(NamedTuple):
    """What the pass reads.

    Attributes:
      nodes: `(p,)` the operations whose layouts are decided.
      variables, program, fixed, tables: of the program.
    """

    nodes: NDArray[np.int64]
    variables: Variables
    program: GraphArrays
    fixed: Fixed
    tables: Tables


class Target(NamedTuple):
    """What the pass writes, and the memory that it works on.

    Attributes:
      pins, chosen: `(k,)` given and chosen states of variables.
      rates: of propagation.
      state: `(n,)` of the nodes.
      seen, owner: `(2, most)` for the layouts of a node.
      filled: a number for each node.
      plan: of the laid-out program.
      arrays: the laid-out program; of its first axes only what is filled counts.
    """

    pins: NDArray[np.int64]
    chosen: NDArray[np.int64]
    rates: Rates
    state: NDArray[np.int64]
    seen: NDArray[np.int64]
    owner: NDArray[np.int64]
    filled: NDArray[np.int64]
    plan: Plan
    arrays: FusionGraph


class LayoutPass:
    """The pass on one graph and machine.

    Attributes:
      nodes: `(p,)` the operations whose layouts a configuration decides, in order of its columns.
      options: `(p,)` the number of layouts of each.
      variables: those that propagation decides.
      source: what compiled code needs of the pass to lay the program out in place.
      fused: `(f,)` the edges of the graph that the fusion pass decides in some layout: its first f columns.
      copied: `(c,)` the nodes that the fusion pass may fuse into their copies: its next c columns.
    """

    def __init__(self, graph: ProgramGraph, machine: Machine) -> None:
        self.graph, tables = graph, graph.tables
        self.nodes = np.flatnonzero(graph.tuned)
        counts = np.diff(tables.first)
        self.options = counts[graph.signature[self.nodes]]
        self.fused, self.copied = _fusible_edges(graph), _may_be_copied(graph)
        program = graph_arrays(graph)
        self.variables = variables(graph, program, machine)
        self.source = Source(self.nodes, self.variables, program, _fixed(graph, self.fused, self.copied), tables)

    @cached_property
    def _target(self) -> Target:
        """Memory for the program in any layout, used again because fresh memory costs more than writing to it."""
        return new_target(self.graph, self.source)

    def fusion_name(self, column: int) -> str:
        """Return the name of a decision of the fusion pass."""
        names = self.graph.names
        if column >= len(self.fused):
            return f"{names[self.copied[column - len(self.fused)]]} -> its copies"
        edge = self.fused[column]
        return f"{names[self.graph.producers[edge]]} -> {names[self.graph.users[edge]]}"

    def default(self) -> NDArray[np.int8]:
        """Return the `(p,)` configuration that the compiler chooses on its own."""
        self._lay_out(np.full(len(self.nodes), UNPINNED))
        return self._target.state[self.nodes].astype(np.int8)

    def states(self, config: NDArray) -> NDArray[np.int64]:
        """Return the `(n,)` states that nodes are in under a `(p,)` configuration."""
        self._lay_out(config)
        return self._target.state.copy()

    def apply(self, config: NDArray) -> LaidOutProgram:
        """Return the program laid out under a `(p,)` configuration."""
        n, arrays = self._lay_out(config), self._target.arrays
        m = arrays.starts[n]
        laid = arrays._replace(
            kind=arrays.kind[:n].copy(),
            output=arrays.output[:n].copy(),
            node=arrays.node[:n].copy(),
            row=arrays.row[:n].copy(),
            starts=arrays.starts[: n + 1].copy(),
            edge=arrays.edge[:m].copy(),
            flow=arrays.flow[:m].copy(),
        )
        return LaidOutProgram(laid, self._target.plan.origin[:n].copy(), self.graph)

    def _lay_out(self, config: NDArray) -> int:
        return lay_out(np.require(config, np.int64, ["C", "W"]), self.source, self._target)


def _fixed(graph: ProgramGraph, fused: NDArray, copied: NDArray) -> Fixed:
    """Return the facts that hold in all layouts; the fusion pass has columns for edges first, then for copied nodes."""
    column, copying = np.full(len(graph.users), -1), np.full(len(graph), -1)
    column[fused] = np.arange(len(fused))
    copying[copied] = len(fused) + np.arange(len(copied))
    early = (graph.kind == Kind.SOURCE) & (np.bincount(graph.users, minlength=len(graph)) == 0)
    node = np.column_stack([graph.elements, graph.weight, graph.element_bytes, early])
    edge = np.column_stack([column, _where(graph), _order(graph)]).astype(np.int64)
    return Fixed(node, copying, edge, graph.reuse)


def _fusible_edges(graph: ProgramGraph) -> NDArray[np.int64]:
    """Return the edges that some configuration can fuse in some layout.

    A light producer can be fused into any consumer that computes. A heavy one can be fused only into an element-wise
    consumer with the same number of elements, because a reduction cannot be computed tile by tile any further.
    """
    producer, consumer = graph.kind[graph.producers], graph.kind[graph.users]
    light = (producer >= Kind.ELEMENTWISE) & (producer <= Kind.MOVE)
    heavy = (producer == Kind.REDUCE) | (producer == Kind.MATRIX)
    third = (consumer == Kind.MATRIX) & (graph.operand > 1)
    computes = (consumer >= Kind.ELEMENTWISE) & (consumer <= Kind.MATRIX) & ~third
    return np.flatnonzero((light & computes) | (heavy & (_aligned(graph) > 0)))


def _may_be_copied(graph: ProgramGraph) -> NDArray[np.int64]:
    """Return the light nodes that can have copies: those whose results can have several layouts."""
    light = (graph.kind >= Kind.ELEMENTWISE) & (graph.kind <= Kind.MOVE)
    return np.flatnonzero(light & (graph.tables.same_minor[graph.signature] > 0))


def _where(graph: ProgramGraph) -> NDArray[np.int64]:
    """Return the place of work to which an edge into a matrix product leads, 0 for other edges."""
    places = np.array([Place.LEFT, Place.RIGHT, Place.LOOP])[np.minimum(graph.operand, 2)]
    return np.where(graph.kind[graph.users] == Kind.MATRIX, places, 0)


def _aligned(graph: ProgramGraph) -> NDArray[np.int64]:
    """Return `Place.ALIGNED` for edges whose element-wise consumer has as many elements, 0 for others."""
    same = graph.elements[graph.users] == graph.elements[graph.producers]
    return np.where((graph.kind[graph.users] == Kind.ELEMENTWISE) & same, Place.ALIGNED, 0)


def _order(graph: ProgramGraph) -> NDArray[np.int64]:
    """Return `Place.ALIGNED` as `_aligned`, 0 for what a reduction walks over, `Place.SHUFFLED` for other edges."""
    reduces = (np.array(graph.opcodes) == "reduce")[graph.users] & (graph.reuse <= 1)
    aligned = _aligned(graph)
    return np.where(aligned | reduces, aligned, Place.SHUFFLED)


def new_target(graph: ProgramGraph, source: Source) -> Target:
    """Return memory for the program in any layout; the system provides it only as it is used."""
    n, k, tables, plan = len(graph), len(source.variables.firsts) - 1, graph.tables, new_plan(graph)
    nodes, edges, most = len(plan.whole), len(plan.whole) + len(graph.users), int(tables.layouts.max())
    kind, row, filled = (np.empty(nodes, np.int64) for _ in range(3))
    node, flow = np.empty((nodes, len(Node))), np.empty((edges, len(Flow)))
    edge = np.empty((edges, len(Edge)), np.int64)
    rates = Rates(np.empty_like(source.variables.costs), np.empty(most, np.int64), np.empty(most), np.empty(most + 1))
    pins, chosen, state = np.empty(k, np.int64), np.empty(k, np.int64), np.empty(n, np.int64)
    arrays = FusionGraph(kind, plan.output, node, row, tables.loops, tables.tiles, plan.starts, edge, flow)
    return Target(pins, chosen, rates, state, np.empty(most, np.int64), np.empty(most, np.int64), filled, plan, arrays)


def new_plan(graph: ProgramGraph) -> Plan:
    """Return memory for a plan with all possible copies: one for each edge and output."""
    n, m = len(graph), len(graph.users)
    most = 2 * n + m
    numbers, taken, whole = np.empty(n, np.int64), np.empty(m, np.int64), np.empty(most)
    origin, layout, source = (np.empty(most, np.int64) for _ in range(3))
    return Plan(numbers, taken, whole, origin, layout, source, np.empty(most, bool), np.empty(most + 1, np.int64))


@compiled()
def lay_out(config: NDArray, source: Source, target: Target) -> int:
    """Lay a program out and return the number of nodes that `target.arrays` then has.

    Args:
      config: `(p,)` the choices; `UNPINNED` leaves one to propagation.
      source, target: what is read and written.
    """
    target.pins[:] = UNPINNED
    for i in range(len(source.nodes)):
        target.pins[source.variables.of[source.nodes[i]]] = config[i]
    spread(target.pins, source.variables, target.rates, target.chosen)
    for v in range(len(target.state)):
        target.state[v] = target.chosen[source.variables.of[v]]
    target.seen[:] = -1
    n = number_nodes(target.state, source.program, source.tables, target.seen, target.owner, target.plan)
    fill(n, target.state, source.program, source.fixed, source.tables, target.plan, target.filled, target.arrays)
    return n


@compiled(runtime=False)
def first_nodes(n: int, arrays: FusionGraph) -> FusionGraph:
    """Return the graph of the first n nodes."""
    return FusionGraph(
        arrays.kind[:n],
        arrays.output,
        arrays.node,
        arrays.row,
        arrays.loops,
        arrays.tiles,
        arrays.starts,
        arrays.edge,
        arrays.flow,
    )
