"""The compiler's own choice of the fusion: the best of a few plans, of which the costly decisions are tried again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from ..hardware.machine import Rate
from ..hlo.opcodes import Kind
from ..layout.arrays import Edge, Flow, FusionGraph, Node
from .evaluation import fuse_again
from .guests import place_guests
from .incremental import IncomingEdges
from .kernels import put_cycles, time_kernels
from .state import Amount, Counter, FusionState, Known, Span, Use, same
from .sweep import close_node, is_heavy, legal, open_node, start_sweep, sweep

compiled = compiled_for(__file__)


_CAUTIOUS, _BOLD = 0.6, np.inf
_REVISIONS = 8
_SHARE = 1e-3
"""A decision is tried again if it is about an array that takes this share of the time to be moved once."""


class Costs(NamedTuple):
    """What it takes to compute a node once under a plan, with everything that is fused in front of it.

    Attributes:
      read: `(n,)` bytes from memory.
      operations: `(n,)` vector operations.
    """

    read: NDArray[np.float64]
    operations: NDArray[np.float64]


class PlanMemory(NamedTuple):
    """Memory for the plans of a graph of n nodes and d decisions.

    Attributes:
      best: `(d,)` the best plan so far.
      last: `(d,)` the plan made last.
      before: `(d,)` the one before.
      columns: `(d,)` memory for the columns of one producer.
      touched, cycles: `(3 * n,)` kernels that a change of the plan has touched, and their cycles before it.
      costs: of the nodes under a plan.
    """

    best: NDArray[np.int8]
    last: NDArray[np.int8]
    before: NDArray[np.int8]
    columns: NDArray[np.int64]
    touched: NDArray[np.int64]
    cycles: NDArray[np.float64]
    costs: Costs


def new_plan_memory(n: int, d: int) -> PlanMemory:
    """Return memory for plans."""
    best, last, before = np.zeros((3, d), np.int8)
    touched, cycles = np.empty(3 * n, np.int64), np.empty(3 * n)
    return PlanMemory(best, last, before, np.zeros(d, np.int64), touched, cycles, Costs(np.empty(n), np.empty(n)))


@compiled()
def choose(
    graph: FusionGraph, inputs: IncomingEdges, analytical: NDArray, plans: PlanMemory, state: FusionState
) -> None:
    """Write the configuration that the compiler chooses on its own to `plans.best`, and sweep the graph with it.

    The compiler walks from the outputs to the inputs, as XLA's instruction fusion does, and fuses a producer into all
    its consumers if a roofline model predicts a gain. Its first plan copies a producer only if that reads few bytes.
    It then revises the plan with the costs of each producer under it, until nothing changes. In the best of these
    plans, it tries costly decisions the other way (see `_reconsider`). Plans are timed for the machine of the data
    sheet; second-order effects are not used.
    """
    state.config[:], plans.last[:] = 1, 1  # if little is computed twice, fusing everything is hard to beat
    sweep(graph, state)
    best = np.inf
    for plan in range(2 + _REVISIONS):
        if plan == 1:
            plans.last[:] = 0
        if plan > 0:
            _copy(plans.last, plans.before)
            effective_costs(plans.last, graph, plans.costs)
            decide(plans.last, graph, analytical, _BOLD if plan > 1 else _CAUTIOUS, plans.costs, state)
        if plan > 1 and same(plans.last, plans.before):
            break
        seconds = _seconds(graph, analytical, state)
        if seconds < best:
            best = seconds
            _copy(plans.last, plans.best)
    _copy(plans.best, state.config)
    if not same(plans.best, plans.last):
        sweep(graph, state)
    _reconsider(graph, inputs, analytical, plans, state)
    state.counter[Counter.KNOWN] = Known.NOTHING  # kernels were timed by the analytical model


@compiled(runtime=False)
def _reconsider(
    graph: FusionGraph, inputs: IncomingEdges, analytical: NDArray, plans: PlanMemory, state: FusionState
) -> None:
    """Reverse the best plan for one producer after the other where the time of all kernels falls.

    XLA's priority fusion compares the times with and without a fusion in the same way, by its model of whole kernels.
    They include what guests save, which the choice of producers in a plan does not.
    """
    seconds = _seconds(graph, analytical, state)
    least = _SHARE * seconds * analytical[Rate.HERTZ] * analytical[Rate.MEMORY]
    for v in range(len(graph.kind) - 1, -1, -1):
        if not _may_gain(v, least, graph, plans, state):
            continue
        count = _reverse(v, graph, plans)
        known = _try(count, graph, inputs, analytical, plans, state)
        found = state.sums[1] / analytical[Rate.HERTZ]
        if found < seconds:
            seconds = found
        else:
            _reverse(v, graph, plans)
            _take_back(count, known, graph, inputs, analytical, plans, state)


@compiled(runtime=False)
def _may_gain(v: int, least: float, graph: FusionGraph, plans: PlanMemory, state: FusionState) -> bool:
    """True if v is decided, not simply fused into its only place, and it or a consumer has the least bytes."""
    decided, fused, most = 0, True, graph.node[v, Node.BYTES] * graph.node[v, Node.RUNS]
    for e in range(graph.starts[v], graph.starts[v + 1]):
        c, column = graph.edge[e, Edge.CONSUMER], graph.edge[e, Edge.DECISION]
        if column >= 0:
            decided += 1
            fused &= plans.best[column] != 0
            most = max(most, graph.node[c, Node.BYTES] * graph.node[c, Node.RUNS])
    lone = decided == 1 or state.span[v, Span.COUNT] == 1
    return decided > 0 and not (fused and lone) and most >= least


@compiled(runtime=False)
def _reverse(v: int, graph: FusionGraph, plans: PlanMemory) -> int:
    """Fuse v nowhere in the best plan if it was fused everywhere, else everywhere; return the number of columns."""
    count, fused = 0, True
    for e in range(graph.starts[v], graph.starts[v + 1]):
        column = graph.edge[e, Edge.DECISION]
        if column >= 0:
            plans.columns[count] = column
            fused &= plans.best[column] != 0
            count += 1
    for i in range(count):
        plans.best[plans.columns[i]] = not fused
    return count


@compiled(runtime=False)
def _try(
    count: int,
    graph: FusionGraph,
    inputs: IncomingEdges,
    analytical: NDArray,
    plans: PlanMemory,
    state: FusionState,
) -> int:
    """Time the plan after the first `count` of `plans.columns` have changed.

    Return how many kernels it touched; they are noted with their cycles before. All may have changed if that is -1.
    """
    state.counter[Counter.KNOWN] = Known.PLAIN
    updated, touched = fuse_again(plans.columns[:count], plans.best, graph, inputs, state), -1
    if updated:
        touched = state.counter[Counter.TOUCHED]
        for i in range(touched):
            plans.touched[i], plans.cycles[i] = state.touched[i], state.cycles[state.touched[i]]
    time_kernels(not updated, False, graph, analytical, analytical, state)
    return touched


@compiled(runtime=False)
def _take_back(
    count: int,
    touched: int,
    graph: FusionGraph,
    inputs: IncomingEdges,
    analytical: NDArray,
    plans: PlanMemory,
    state: FusionState,
) -> None:
    """Fuse as before a try; kernels get the cycles that were noted, so that they need not be timed."""
    updated = fuse_again(plans.columns[:count], plans.best, graph, inputs, state)
    if touched < 0 or not updated:
        time_kernels(not updated, False, graph, analytical, analytical, state)
        return
    for i in range(touched):
        put_cycles(plans.touched[i], plans.cycles[i], True, graph, state)


@compiled(runtime=False)
def _copy(source: NDArray, target: NDArray) -> None:
    for i in range(len(source)):  # an assignment of an array takes seconds to compile
        target[i] = source[i]


@compiled(runtime=False)
def _seconds(graph: FusionGraph, analytical: NDArray, state: FusionState) -> float:
    time_kernels(True, False, graph, analytical, analytical, state)
    return state.sums[1] / analytical[Rate.HERTZ]


@compiled()
def decide(
    config: NDArray, graph: FusionGraph, machine: NDArray, caution: float, costs: Costs, state: FusionState
) -> None:
    """Write the `(d,)` configuration that the compiler chooses, given the costs of its plan so far, as if swept.

    `caution` is the largest ratio of bytes read to bytes made at which it copies a producer.
    """
    n = len(graph.kind)
    start_sweep(state)
    state.counter[Counter.KNOWN] = Known.NOTHING
    for v in range(n - 1, -1, -1):
        reached = open_node(v, config, True, graph, state)
        fused = legal(v, reached, graph, state) and _pays(v, reached, graph, machine, caution, costs, state)
        for e in range(graph.starts[v], graph.starts[v + 1]):
            if graph.edge[e, Edge.DECISION] >= 0:
                config[graph.edge[e, Edge.DECISION]] = fused
        close_node(v, reached, fused, graph, state)
    place_guests(graph, state)


@compiled(runtime=False)
def _pays(
    v: int, reached: int, graph: FusionGraph, machine: NDArray, caution: float, costs: Costs, state: FusionState
) -> bool:
    """True if a roofline model says that computing v in its consumers' kernels is cheaper than going through memory."""
    if is_heavy(v, graph):
        return True
    stored, copies, work, size = graph.output[v], 0, 0.0, graph.node[v, Node.BYTES]
    for i in range(reached):
        k = state.use[i, Use.REACHED]
        stored |= state.use[k, Use.READ] != 0
        if state.use[k, Use.COMPUTED] != 0:
            copies += 1
            work += costs.operations[v] * state.amount[k, Amount.TIMES]
    if copies + stored > 1 and costs.read[v] > caution * size:
        return False
    fused = copies * costs.read[v] / machine[Rate.MEMORY] + work / machine[Rate.VECTOR]
    apart = copies * size / machine[Rate.MEMORY]
    if not stored:
        apart += (size + costs.read[v]) / machine[Rate.MEMORY]
        apart += machine[Rate.LAUNCH] + costs.operations[v] / machine[Rate.VECTOR]
    return fused < apart


@compiled(runtime=False)
def effective_costs(config: NDArray, graph: FusionGraph, costs: Costs) -> None:
    """Write what it takes to compute each node under a `(d,)` plan, with everything that is fused in front of it."""
    read, operations = costs.read, costs.operations
    for v in range(len(graph.kind)):
        read[v], operations[v] = 0.0, graph.node[v, Node.WORK]
    for v in range(len(graph.kind)):
        if graph.kind[v] == Kind.FREE:
            continue
        for e in range(graph.starts[v], graph.starts[v + 1]):
            c, column = graph.edge[e, Edge.CONSUMER], graph.edge[e, Edge.DECISION]
            if graph.kind[v] not in (Kind.REDUCE, Kind.MATRIX) and column >= 0 and config[column] != 0:
                read[c] += read[v] * min(graph.flow[e, Flow.REUSE], 1.0)
                operations[c] += operations[v] * graph.flow[e, Flow.REUSE]
            else:
                read[c] += graph.flow[e, Flow.READ]
