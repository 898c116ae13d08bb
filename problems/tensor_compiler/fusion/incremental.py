"""Incremental update of the fusion pass: after a few decisions have changed, only the affected nodes are visited.

A node's place depends on the places of its consumers and on their kernels. Nodes wait in a queue and are visited in the
order of a sweep. When a node has moved, its producers are queued, and the totals of the kernels that it entered,
left or is used by are computed again. The result equals that of a sweep to the last bit. Some decisions of a sweep
depend on the order in which a kernel fills up. Of two heavy operations, the first in the order of a sweep gets the
kernel, and the other is visited again. If a kernel has reached its largest size, the update gives up and a sweep is
needed.
"""

from __future__ import annotations

from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from ..hlo.opcodes import Kind
from ..layout.arrays import Edge, FusionGraph
from .columns import Counter, Member, Span, Tally, Use
from .kernel_totals import IncomingEdges, recompute_totals, touch
from .notes import is_heavy
from .queue import clear, is_empty, pop, push
from .state import LARGEST_KERNEL, MOST_COPIES, FusionState
from .sweep import join, legal, uses

compiled = compiled_for(__file__)


@compiled(runtime=False)
def update(config: NDArray, flips: NDArray, graph: FusionGraph, inputs: IncomingEdges, state: FusionState) -> bool:
    """Apply the changed columns of a configuration; return False if a sweep is needed.

    Changed kernels are touched.
    """
    gathered, state.counter[Counter.TOUCHED] = 0, 0
    for column in flips:
        state.config[column] = config[column]
        for i in range(inputs.columns[column], inputs.columns[column + 1]):
            e = inputs.decided[i]
            push(state.dirty, inputs.producer[e])
            _touch_kernels_of(graph.edge[e, Edge.CONSUMER], state)
    while not is_empty(state.dirty):
        if state.counter[Counter.TOUCHED] > len(graph.kind) or not _visit(graph, inputs, state):
            _abandon(state)
            return False
        while gathered < state.counter[Counter.TOUCHED]:
            recompute_totals(state.touched[gathered], graph, inputs, state)
            gathered += 1
    return True


@compiled(runtime=False)
def _visit(graph: FusionGraph, inputs: IncomingEdges, state: FusionState) -> bool:
    """Visit the waiting nodes until none is left; return False if a sweep is needed."""
    while not is_empty(state.dirty):
        v = pop(state.dirty)
        if state.counter[Counter.FILLED] + MOST_COPIES + 1 > len(state.member):
            return False
        reached = uses(v, state.config, False, MOST_COPIES, graph, state)
        if _meets_full_kernel(v, reached, state):
            return False
        _move(v, join(v, reached, legal(v, reached, graph, state), graph, state), graph, inputs, state)
    return True


@compiled(runtime=False)
def _meets_full_kernel(v: int, reached: int, state: FusionState) -> bool:
    """True if v may enter or leave a kernel of the largest size."""
    for i in range(reached):
        if state.tally[state.use[i, Use.REACHED], Tally.FUSED] >= LARGEST_KERNEL:
            return True
    for j in range(state.span[v, Span.START], state.span[v, Span.START] + state.span[v, Span.COUNT]):
        if state.tally[state.member[j, Member.KERNEL], Tally.FUSED] >= LARGEST_KERNEL:
            return True
    return False


@compiled(runtime=False)
def _move(v: int, count: int, graph: FusionGraph, inputs: IncomingEdges, state: FusionState) -> None:
    """Replace v's memberships by the last `count` that were written."""
    start, before, behind = state.span[v, Span.START], state.span[v, Span.COUNT], state.counter[Counter.FILLED]
    same, heavy = count == before, is_heavy(v, graph)
    for j in range(start, start + before):
        if not _among(j, behind, count, state):
            same = False
            _leave(v, state.member[j, Member.KERNEL], state)
    for j in range(behind, behind + count):
        if not _among(j, start, before, state):
            same = False
            _enter(v, state.member[j, Member.KERNEL], heavy, state)
    if not same:
        _keep(v, count, state)
        _push_producers(v, graph, inputs, state)


@compiled(runtime=False)
def _among(j: int, start: int, count: int, state: FusionState) -> bool:
    """True if membership j equals one of the `count` from `start` on."""
    member, times, kernel, place = (
        state.member,
        state.times,
        state.member[j, Member.KERNEL],
        state.member[j, Member.PLACE],
    )
    for i in range(start, start + count):
        if member[i, Member.KERNEL] == kernel and member[i, Member.PLACE] == place and times[i] == times[j]:
            return True
    return False


@compiled(runtime=False)
def _leave(v: int, k: int, state: FusionState) -> None:
    """Take v out of kernel k."""
    tally = state.tally[k]
    tally[Tally.FUSED] -= 1
    if tally[Tally.HEAVY] == v:
        tally[Tally.HEAVY] = -1  # an operation that v kept out is found when the totals of k are computed
    touch(k, state)


@compiled(runtime=False)
def _enter(v: int, k: int, heavy: bool, state: FusionState) -> None:
    """Put v into kernel k; if v is heavy, it displaces a heavy operation that is already there."""
    tally = state.tally[k]
    tally[Tally.FUSED] += 1
    if heavy:
        if tally[Tally.HEAVY] >= 0:
            push(state.dirty, tally[Tally.HEAVY])
        tally[Tally.HEAVY] = v
    touch(k, state)


@compiled(runtime=False)
def _keep(v: int, count: int, state: FusionState) -> None:
    """Store the memberships written last as those of v, in place of the old ones if they fit."""
    behind = state.counter[Counter.FILLED]
    if count > state.span[v, Span.COUNT]:
        state.span[v, Span.START] = behind
        state.counter[Counter.FILLED] += count
    start, state.span[v, Span.COUNT] = state.span[v, Span.START], count
    for i in range(count):
        state.member[start + i, Member.KERNEL] = state.member[behind + i, Member.KERNEL]
        state.member[start + i, Member.PLACE] = state.member[behind + i, Member.PLACE]
        state.times[start + i] = state.times[behind + i]


@compiled(runtime=False)
def _push_producers(v: int, graph: FusionGraph, inputs: IncomingEdges, state: FusionState) -> None:
    """Queue the producers of v, except those that are never fused."""
    for i in range(inputs.starts[v], inputs.starts[v + 1]):
        producer = inputs.producer[inputs.edge[i]]
        if graph.kind[producer] not in (Kind.SOURCE, Kind.FREE):
            push(state.dirty, producer)


@compiled(runtime=False)
def _touch_kernels_of(v: int, state: FusionState) -> None:
    for j in range(state.span[v, Span.START], state.span[v, Span.START] + state.span[v, Span.COUNT]):
        touch(state.member[j, Member.KERNEL], state)


@compiled(runtime=False)
def _abandon(state: FusionState) -> None:
    """Leave no node waiting and no kernel marked."""
    clear(state.dirty)
    for i in range(state.counter[Counter.TOUCHED]):
        state.changed[state.touched[i]] = False
