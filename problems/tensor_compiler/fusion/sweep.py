"""A sweep of the fusion pass over a whole graph: where each node is computed and read.

Nodes are visited from the outputs to the inputs. The kernels that compute a node follow from those of its consumers, so
one visit decides where the node is computed, where it is read, and what that adds to each kernel. The cost is linear
in the number of edges, times the number of copies of a node, which is bounded.
"""

from __future__ import annotations

from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from ..hardware.machine import Rate
from ..hlo.opcodes import Kind
from ..layout.arrays import Costs, Edge, FusionGraph, Node, Place
from .columns import Amount, Counter, Known, Member, Span, Tally, Use
from .notes import add, empty, fresh, is_heavy, note
from .state import LARGEST_KERNEL, MOST_COPIES, FusionState

compiled = compiled_for(__file__)


@compiled()
def decide(
    config: NDArray, graph: FusionGraph, machine: NDArray, caution: float, costs: Costs, state: FusionState
) -> None:
    """Write the `(d,)` configuration that the compiler chooses, given the costs of its plan so far, as if swept.

    `caution` is the largest ratio of bytes read to bytes made at which it copies a producer.
    """
    n = len(graph.kind)
    _start(state)
    state.counter[Counter.KNOWN] = Known.NOTHING
    for v in range(n - 1, -1, -1):
        reached = _open(v, config, True, graph, state)
        fused = legal(v, reached, graph, state) and _pays(v, reached, graph, machine, caution, costs, state)
        for e in range(graph.starts[v], graph.starts[v + 1]):
            if graph.edge[e, Edge.DECISION] >= 0:
                config[graph.edge[e, Edge.DECISION]] = fused
        _close(v, reached, fused, graph, state)


@compiled(runtime=False)
def sweep(graph: FusionGraph, state: FusionState) -> None:
    """Decide where each node is computed and read under `state.config`; all kernels are touched."""
    _start(state)
    for v in range(len(graph.kind) - 1, -1, -1):
        reached = _open(v, state.config, False, graph, state)
        _close(v, reached, legal(v, reached, graph, state), graph, state)


@compiled(runtime=False)
def _start(state: FusionState) -> None:
    state.counter[Counter.FILLED], state.counter[Counter.TOUCHED] = 0, 0


@compiled(runtime=False)
def _open(v: int, config: NDArray, deciding: bool, graph: FusionGraph, state: FusionState) -> int:
    """Note the uses of a node that is visited for the first time; return the number of kernels that use it."""
    empty(v, state)
    return uses(v, config, deciding, len(graph.kind), graph, state)


@compiled(runtime=False)
def _close(v: int, reached: int, fused: bool, graph: FusionGraph, state: FusionState) -> None:
    """Write v's memberships and add it to the kernels that compute or read it; touch its own kernel."""
    heavy = is_heavy(v, graph)
    filled = state.counter[Counter.FILLED]
    state.span[v, Span.START], state.span[v, Span.COUNT] = filled, join(v, reached, fused, graph, state)
    state.counter[Counter.FILLED] += state.span[v, Span.COUNT]
    for i in range(reached):
        k = state.use[i, Use.REACHED]
        use, amount = state.use[k], state.amount[k]
        add(v, k, use[Use.COMPUTED], use[Use.READ], amount[Amount.TIMES], amount[Amount.MOVED], heavy, graph, state)
    if state.span[v, Span.COUNT] > 0 and state.member[state.counter[Counter.FILLED] - 1, Member.KERNEL] == v:
        add(v, v, Place.LOOP | Place.ALIGNED, 0, 1.0, 0.0, heavy, graph, state)
        state.touched[state.counter[Counter.TOUCHED]] = v
        state.counter[Counter.TOUCHED] += 1


@compiled(runtime=False)
def uses(v: int, config: NDArray, deciding: bool, most: int, graph: FusionGraph, state: FusionState) -> int:
    """Note how the kernels of v's consumers use v; return the number of these kernels, and stop beyond `most`."""
    reached, member = 0, state.member
    if graph.kind[v] == Kind.FREE:
        return 0
    state.counter[Counter.CLOCK] += 1
    for e in range(graph.starts[v], graph.starts[v + 1]):
        c, column = graph.edge[e, Edge.CONSUMER], graph.edge[e, Edge.DECISION]
        asked = column >= 0 and (deciding or config[column] != 0)
        for j in range(state.span[c, Span.START], state.span[c, Span.START] + state.span[c, Span.COUNT]):
            k = member[j, Member.KERNEL]
            if fresh(k, state):
                state.use[reached, Use.REACHED] = k
                reached += 1
            note(k, e, asked, member[j, Member.PLACE], state.times[j], graph, state)
        if reached > most:
            break
    return reached


@compiled(runtime=False)
def legal(v: int, reached: int, graph: FusionGraph, state: FusionState) -> bool:
    """True if v may be computed in all kernels in which its consumers want it."""
    if graph.kind[v] in (Kind.SOURCE, Kind.OPAQUE) or reached > MOST_COPIES:
        return False
    for i in range(reached):
        if state.tally[state.use[i, Use.REACHED], Tally.FUSED] >= LARGEST_KERNEL:
            return False
    if not is_heavy(v, graph):
        return True
    if reached != 1 or graph.output[v]:
        return False
    k = state.use[0, Use.REACHED]
    lone = state.use[k, Use.READ] == 0 and state.use[k, Use.COMPUTED] == Place.LOOP | Place.ALIGNED
    return lone and state.tally[k, Tally.HEAVY] <= v  # one with a smaller number comes after v


@compiled(runtime=False)
def join(v: int, reached: int, fused: bool, graph: FusionGraph, state: FusionState) -> int:
    """Append v's memberships and return their number; if v is not fused, the kernels that would compute it read it."""
    use, member, filled = state.use, state.member, state.counter[Counter.FILLED]
    stored, end = graph.output[v], filled
    for i in range(reached):
        k = use[i, Use.REACHED]
        if not fused:
            use[k, Use.READ] |= use[k, Use.COMPUTED] & ~Place.ALIGNED
            use[k, Use.COMPUTED] = 0
        stored |= use[k, Use.READ] != 0
        if use[k, Use.COMPUTED] != 0:
            member[end, Member.KERNEL], member[end, Member.PLACE] = k, use[k, Use.COMPUTED]
            state.times[end] = state.amount[k, Amount.TIMES]
            end += 1
    if stored and graph.kind[v] not in (Kind.SOURCE, Kind.FREE):
        member[end, Member.KERNEL], member[end, Member.PLACE], state.times[end] = v, Place.LOOP | Place.ALIGNED, 1.0
        end += 1
    return end - filled


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
