"""Notes on how nodes are used, and the totals of kernels: what each visit of a node reads and writes in the state."""

from __future__ import annotations

from bbo_suite.compiled import compiled_for

from ..hardware.kernel_row import PLACES, Kernel
from ..hlo.opcodes import Kind
from ..layout.arrays import Edge, Flow, FusionGraph, Node, Place
from .columns import Amount, Counter, Tally, Use
from .state import FusionState

compiled = compiled_for(__file__)


@compiled(runtime=False)
def fresh(row: int, state: FusionState) -> bool:
    """Clear the notes in a row that is older than the clock; return whether it was."""
    use, amount = state.use, state.amount
    if use[row, Use.SEEN] == state.counter[Counter.CLOCK]:
        return False
    use[row, Use.SEEN], use[row, Use.COMPUTED], use[row, Use.READ] = state.counter[Counter.CLOCK], 0, 0
    amount[row, Amount.MOVED], amount[row, Amount.TIMES] = 0.0, 0.0
    return True


@compiled(runtime=False)
def note(row: int, e: int, asked: bool, place: int, times: float, graph: FusionGraph, state: FusionState) -> None:
    """Note in a row how edge e is used where its consumer is computed; `asked` if its producer shall be computed there.

    The notes do not depend on the order of the edges.
    """
    use, amount, edge = state.use, state.amount, graph.edge
    where = edge[e, Edge.PLACE] if edge[e, Edge.PLACE] else place & ~Place.ALIGNED
    if asked:
        before = use[row, Use.COMPUTED]
        aligned = edge[e, Edge.ALIGNED] & place & (before if before else Place.ALIGNED)  # all paths must be
        use[row, Use.COMPUTED] = (before & ~Place.ALIGNED) | where | aligned
        amount[row, Amount.TIMES] = max(amount[row, Amount.TIMES], times * graph.flow[e, Flow.REUSE])
    else:
        use[row, Use.READ] |= where
    amount[row, Amount.MOVED] = max(amount[row, Amount.MOVED], graph.flow[e, Flow.READ] * min(times, 1.0))


@compiled(runtime=False)
def empty(k: int, state: FusionState) -> None:
    """Make kernel k empty."""
    state.tally[k, Tally.FUSED], state.tally[k, Tally.OPERANDS], state.tally[k, Tally.HEAVY] = 0, 0, -1
    for column in range(Kernel.WRITTEN):
        state.load[k, column] = 0.0


@compiled(runtime=False)
def add(
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
        state.tally[k, Tally.OPERANDS] += 1
    for place in range(PLACES):
        if computed & (1 << place):
            state.load[k, Kernel.WORK + place] += graph.node[v, Node.WORK] * times
        if taken & (1 << place):
            state.load[k, Kernel.READ + place] += moved


@compiled(runtime=False)
def is_heavy(v: int, graph: FusionGraph) -> bool:
    """True if v is never computed twice."""
    return graph.kind[v] == Kind.REDUCE or graph.kind[v] == Kind.MATRIX
