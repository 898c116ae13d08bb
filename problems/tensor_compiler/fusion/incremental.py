"""The fusion pass after a few decisions have changed: only what they reach is looked at again.

A node's place depends on its consumers' and on the kernels that they are in, so nodes to look at wait in a queue, and
are visited in the order of a sweep. Where one has moved, the producers in front of it wait too, and the kernels that it
entered, left or is used by otherwise are gathered anew: from the result, over the producers of all that is computed.
The outcome is that of a sweep, to the last bit. What a sweep decides by the order in which a kernel fills up is kept
as follows: of two heavy operations the first in a sweep's order gets the kernel, and the other is looked at again;
where a kernel is as large as one may be, the update gives up, and a sweep has to do it.
"""

from __future__ import annotations

from numpy.typing import NDArray

from ..compiled import compiled
from ..layout.arrays import FREE, SOURCE, USER, Arrays
from .kernel_totals import Inputs, gather, touch
from .queue import clear, pop, push
from .state import FILLED, FUSED, HEAVY, KERNEL, LARGEST_KERNEL, MOST_COPIES, PLACE, REACHED, TOUCHED, State, is_heavy
from .sweep import join, legal, uses


@compiled(runtime=False)
def update(config: NDArray, flips: NDArray, graph: Arrays, inputs: Inputs, state: State) -> bool:
    """Take over the columns of a configuration that have changed; return False where a sweep has to do it.

    The kernels that have changed are touched.
    """
    gathered, state.counter[TOUCHED] = 0, 0
    for column in flips:
        state.config[column] = config[column]
        for i in range(inputs.columns[column], inputs.columns[column + 1]):
            e = inputs.decided[i]
            push(state.dirty, inputs.producer[e])
            _touch_kernels_of(graph.edge[e, USER], state)
    while state.dirty.heap[0] > 0:
        if state.counter[TOUCHED] > len(graph.kind) or not _visit(graph, inputs, state):
            _abandon(state)
            return False
        while gathered < state.counter[TOUCHED]:
            gather(state.touched[gathered], graph, inputs, state)
            gathered += 1
    return True


@compiled(runtime=False)
def _visit(graph: Arrays, inputs: Inputs, state: State) -> bool:
    """Look at the nodes that wait until none does; return False where that is beyond an update."""
    while state.dirty.heap[0] > 0:
        v = pop(state.dirty)
        if state.counter[FILLED] + MOST_COPIES + 1 > len(state.member):
            return False
        reached = uses(v, state.config, False, MOST_COPIES, graph, state)
        if _meets_full_kernel(v, reached, state):
            return False
        _move(v, join(v, reached, legal(v, reached, graph, state), graph, state), graph, inputs, state)
    return True


@compiled(runtime=False)
def _meets_full_kernel(v: int, reached: int, state: State) -> bool:
    """May v want to enter a kernel as large as one may be, or leave it?"""
    for i in range(reached):
        if state.tally[state.use[i, REACHED], FUSED] >= LARGEST_KERNEL:
            return True
    for j in range(state.span[v, 0], state.span[v, 0] + state.span[v, 1]):
        if state.tally[state.member[j, KERNEL], FUSED] >= LARGEST_KERNEL:
            return True
    return False


@compiled(runtime=False)
def _move(v: int, count: int, graph: Arrays, inputs: Inputs, state: State) -> None:
    """Replace v's memberships by the `count` that were written last."""
    start, before, behind = state.span[v, 0], state.span[v, 1], state.counter[FILLED]
    same, heavy = count == before, is_heavy(v, graph)
    for j in range(start, start + before):
        if not _among(j, behind, count, state):
            same = False
            _leave(v, state.member[j, KERNEL], state)
    for j in range(behind, behind + count):
        if not _among(j, start, before, state):
            same = False
            _enter(v, state.member[j, KERNEL], heavy, state)
    if not same:
        _keep(v, count, state)
        _push_producers(v, graph, inputs, state)


@compiled(runtime=False)
def _among(j: int, start: int, count: int, state: State) -> bool:
    """Is membership j one of those that start there?"""
    member, times = state.member, state.times
    for i in range(start, start + count):
        if member[i, KERNEL] == member[j, KERNEL] and member[i, PLACE] == member[j, PLACE] and times[i] == times[j]:
            return True
    return False


@compiled(runtime=False)
def _leave(v: int, k: int, state: State) -> None:
    """Take v out of kernel k."""
    tally = state.tally[k]
    tally[FUSED] -= 1
    if tally[HEAVY] == v:
        tally[HEAVY] = -1  # whom v has kept out is found when k is gathered
    touch(k, state)


@compiled(runtime=False)
def _enter(v: int, k: int, heavy: bool, state: State) -> None:
    """Put v into kernel k; a heavy operation behind it has to go."""
    tally = state.tally[k]
    tally[FUSED] += 1
    if heavy:
        if tally[HEAVY] >= 0:
            push(state.dirty, tally[HEAVY])
        tally[HEAVY] = v
    touch(k, state)


@compiled(runtime=False)
def _keep(v: int, count: int, state: State) -> None:
    """Make the memberships that were written last those of v: in place of the old ones if there is room."""
    behind = state.counter[FILLED]
    if count > state.span[v, 1]:
        state.span[v, 0] = behind
        state.counter[FILLED] += count
    start, state.span[v, 1] = state.span[v, 0], count
    for i in range(count):
        state.member[start + i, KERNEL] = state.member[behind + i, KERNEL]
        state.member[start + i, PLACE] = state.member[behind + i, PLACE]
        state.times[start + i] = state.times[behind + i]


@compiled(runtime=False)
def _push_producers(v: int, graph: Arrays, inputs: Inputs, state: State) -> None:
    """Let those that v takes wait, unless nothing can change for them."""
    for i in range(inputs.starts[v], inputs.starts[v + 1]):
        producer = inputs.producer[inputs.edge[i]]
        if graph.kind[producer] not in (SOURCE, FREE):
            push(state.dirty, producer)


@compiled(runtime=False)
def _touch_kernels_of(v: int, state: State) -> None:
    for j in range(state.span[v, 0], state.span[v, 0] + state.span[v, 1]):
        touch(state.member[j, KERNEL], state)


@compiled(runtime=False)
def _abandon(state: State) -> None:
    """Leave no node waiting and no kernel marked."""
    clear(state.dirty)
    for i in range(state.counter[TOUCHED]):
        state.changed[state.touched[i]] = False
