"""A sweep of the fusion pass over a whole graph: where each node is computed and read.

Nodes are visited from the outputs to the inputs. The kernels that compute a node follow from those of its consumers, so
one visit decides where the node is computed, where it is read, and what that adds to each kernel. The cost is linear
in the number of edges, times the number of copies of a node, which is bounded.
"""

from __future__ import annotations

from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from ..hardware.kernel_row import PLACES, Kernel
from ..hlo.opcodes import Kind
from ..layout.arrays import Edge, Flow, FusionGraph, Node, Place
from .guests import place_guests
from .state import (
    LARGEST_KERNEL,
    MOST_COPIES,
    MOST_READ,
    NOT_STREAMED,
    Amount,
    Counter,
    FusionState,
    Member,
    Span,
    Tally,
    Use,
)

compiled = compiled_for(__file__)


@compiled(runtime=False)
def sweep(graph: FusionGraph, state: FusionState) -> None:
    """Decide where each node is computed and read under `state.config`; all kernels are touched."""
    start_sweep(state)
    for v in range(len(graph.kind) - 1, -1, -1):
        reached = open_node(v, state.config, False, graph, state)
        close_node(v, reached, legal(v, reached, graph, state), graph, state)
    place_guests(graph, state)


@compiled(runtime=False)
def start_sweep(state: FusionState) -> None:
    """Forget all memberships and touched kernels."""
    state.counter[Counter.FILLED], state.counter[Counter.TOUCHED] = 0, 0


@compiled(runtime=False)
def open_node(v: int, config: NDArray, deciding: bool, graph: FusionGraph, state: FusionState) -> int:
    """Note the uses of a node that is visited for the first time; return the number of kernels that use it."""
    empty_kernel(v, state)
    return uses(v, config, deciding, len(graph.kind), graph, state)


@compiled(runtime=False)
def close_node(v: int, reached: int, fused: bool, graph: FusionGraph, state: FusionState) -> None:
    """Write v's memberships and add it to the kernels that compute or read it; touch its own kernel."""
    heavy = is_heavy(v, graph)
    filled = state.counter[Counter.FILLED]
    state.span[v, Span.START], state.span[v, Span.COUNT] = filled, join(v, reached, fused, graph, state)
    state.counter[Counter.FILLED] += state.span[v, Span.COUNT]
    for i in range(reached):
        k = state.use[i, Use.REACHED]
        use, amount = state.use[k], state.amount[k]
        add_node(
            v, k, use[Use.COMPUTED], use[Use.READ], amount[Amount.TIMES], amount[Amount.MOVED], heavy, graph, state
        )
    if state.span[v, Span.COUNT] > 0 and state.member[state.counter[Counter.FILLED] - 1, Member.KERNEL] == v:
        add_node(v, v, Place.LOOP | Place.ALIGNED, 0, 1.0, 0.0, heavy, graph, state)
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
            if clear_if_old(k, state):
                state.use[reached, Use.REACHED] = k
                reached += 1
            record_use(k, e, asked, member[j, Member.PLACE], state.times[j], graph, state)
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
def clear_if_old(row: int, state: FusionState) -> bool:
    """Clear the uses in a row that is older than the clock; return whether it was."""
    use, amount = state.use, state.amount
    if use[row, Use.SEEN] == state.counter[Counter.CLOCK]:
        return False
    use[row, Use.SEEN], use[row, Use.COMPUTED], use[row, Use.READ] = state.counter[Counter.CLOCK], 0, 0
    amount[row, Amount.MOVED], amount[row, Amount.TIMES] = 0.0, 0.0
    return True


@compiled(runtime=False)
def record_use(row: int, e: int, asked: bool, place: int, times: float, graph: FusionGraph, state: FusionState) -> None:
    """Note in a row how edge e is used where its consumer is computed; `asked` if its producer shall be computed there.

    The result does not depend on the order of the edges.
    """
    use, amount, edge = state.use, state.amount, graph.edge
    where = edge[e, Edge.PLACE] if edge[e, Edge.PLACE] else place & ~Place.ALIGNED
    where |= edge[e, Edge.ORDER] & Place.SHUFFLED
    if asked:
        before = use[row, Use.COMPUTED]
        aligned = edge[e, Edge.ORDER] & place & (before if before else Place.ALIGNED)  # all paths must be
        use[row, Use.COMPUTED] = (before & ~Place.ALIGNED) | where | aligned
        amount[row, Amount.TIMES] = max(amount[row, Amount.TIMES], times * graph.flow[e, Flow.REUSE])
    else:
        use[row, Use.READ] |= where
    amount[row, Amount.MOVED] = max(amount[row, Amount.MOVED], graph.flow[e, Flow.READ] * min(times, 1.0))


@compiled(runtime=False)
def empty_kernel(k: int, state: FusionState) -> None:
    """Make kernel k empty."""
    state.tally[k, Tally.FUSED], state.tally[k, Tally.OPERANDS], state.tally[k, Tally.HEAVY] = 0, 0, -1
    for column in range(Kernel.WRITTEN):
        state.load[k, column] = 0.0


@compiled(runtime=False)
def add_node(
    v: int,
    k: int,
    computed: int,
    taken: int,
    times: float,
    moved: float,
    heavy: bool,
    graph: FusionGraph,
    state: FusionState,
) -> None:
    """Add node v, computed and read at these places, to kernel k. Call in falling order: floats are summed."""
    if computed != 0:
        state.tally[k, Tally.FUSED] += 1
        if heavy:
            state.tally[k, Tally.HEAVY] = v
    if taken != 0:
        count = state.tally[k, Tally.OPERANDS]
        if count < MOST_READ:
            state.read[k, count], state.streamed[k, count] = v, moved if taken == Place.LOOP else NOT_STREAMED
        state.tally[k, Tally.OPERANDS] = count + 1
    for place in range(PLACES):
        if computed & (1 << place):
            state.load[k, Kernel.WORK + place] += graph.node[v, Node.WORK] * times
        if taken & (1 << place):
            state.load[k, Kernel.READ + place] += moved


@compiled(runtime=False)
def is_heavy(v: int, graph: FusionGraph) -> bool:
    """True if v is never computed twice."""
    return graph.kind[v] == Kind.REDUCE or graph.kind[v] == Kind.MATRIX
