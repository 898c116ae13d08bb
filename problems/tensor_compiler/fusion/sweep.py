"""A sweep of the fusion pass over a whole graph: where each node is computed and read.

Nodes are visited from the outputs to the inputs. The kernels that compute a node are known once its consumers' are, so
one visit decides where the node is computed, where it is read, and what that adds to each kernel. The cost is linear
in the edges, times the copies of a node, which are bounded. Compiled with numba.
"""

from __future__ import annotations

from numpy.typing import NDArray

from ..compiled import compiled
from ..hardware.timing import LAUNCH, MEMORY, VECTOR
from ..layout.arrays import ALIGNED, BYTES, COLUMN, FREE, LOOPING, OPAQUE, SOURCE, USER, Arrays, Costs
from .state import (
    CLOCK,
    COMPUTED,
    FILLED,
    FUSED,
    HEAVY,
    KERNEL,
    KNOWN,
    LARGEST_KERNEL,
    MOST_COPIES,
    MOVED,
    PLACE,
    REACHED,
    TAKEN,
    TIMES,
    TOUCHED,
    UNKNOWN,
    State,
    add,
    empty,
    fresh,
    is_heavy,
    note,
)


@compiled()
def decide(config: NDArray, graph: Arrays, machine: NDArray, caution: float, costs: Costs, state: State) -> None:
    """Write the `(d,)` configuration that the compiler chooses itself where `costs` are those of its plan so far.

    `caution` is the largest ratio of bytes read to bytes made at which it copies a producer.
    """
    n = len(graph.kind)
    state.counter[KNOWN], state.counter[FILLED] = UNKNOWN, 0
    for v in range(n - 1, -1, -1):
        reached = _open(v, config, True, graph, state)
        fused = legal(v, reached, graph, state) and _pays(v, reached, graph, machine, caution, costs, state)
        for e in range(graph.starts[v], graph.starts[v + 1]):
            if graph.edge[e, COLUMN] >= 0:
                config[graph.edge[e, COLUMN]] = fused
        _close(v, reached, fused, graph, state)


@compiled(runtime=False)
def sweep(graph: Arrays, state: State) -> None:
    """Decide where each node is computed and read under `state.config`; all kernels are touched."""
    state.counter[FILLED], state.counter[TOUCHED] = 0, 0
    for v in range(len(graph.kind) - 1, -1, -1):
        reached = _open(v, state.config, False, graph, state)
        _close(v, reached, legal(v, reached, graph, state), graph, state)
        if state.tally[v, FUSED] > 0:
            state.touched[state.counter[TOUCHED]] = v
            state.counter[TOUCHED] += 1


@compiled(runtime=False)
def _open(v: int, config: NDArray, deciding: bool, graph: Arrays, state: State) -> int:
    """Gather the uses of a node that nothing is known of yet."""
    empty(v, state)
    return uses(v, config, deciding, len(graph.kind), graph, state)


@compiled(runtime=False)
def _close(v: int, reached: int, fused: bool, graph: Arrays, state: State) -> None:
    """Write v's memberships and add it to the kernels that compute or read it."""
    heavy = is_heavy(v, graph)
    filled = state.counter[FILLED]
    state.span[v, 0], state.span[v, 1] = filled, join(v, reached, fused, graph, state)
    state.counter[FILLED] += state.span[v, 1]
    for i in range(reached):
        k = state.use[i, REACHED]
        use, amount = state.use[k], state.amount[k]
        add(v, k, use[COMPUTED], use[TAKEN], amount[TIMES], amount[MOVED], heavy, graph, state)
    if state.span[v, 1] > 0 and state.member[state.counter[FILLED] - 1, KERNEL] == v:
        add(v, v, LOOPING | ALIGNED, 0, 1.0, 0.0, heavy, graph, state)


@compiled(runtime=False)
def uses(v: int, config: NDArray, deciding: bool, most: int, graph: Arrays, state: State) -> int:
    """Note how the kernels of v's consumers use v and return how many there are; stop beyond `most`."""
    reached, member = 0, state.member
    if graph.kind[v] == FREE:
        return 0
    state.counter[CLOCK] += 1
    for e in range(graph.starts[v], graph.starts[v + 1]):
        c, column = graph.edge[e, USER], graph.edge[e, COLUMN]
        asked = column >= 0 and (deciding or config[column] != 0)
        for j in range(state.span[c, 0], state.span[c, 0] + state.span[c, 1]):
            k = member[j, KERNEL]
            if fresh(k, state):
                state.use[reached, REACHED] = k
                reached += 1
            note(k, e, asked, member[j, PLACE], state.times[j], graph, state)
        if reached > most:
            break
    return reached


@compiled(runtime=False)
def legal(v: int, reached: int, graph: Arrays, state: State) -> bool:
    """May v be computed where it is wanted?"""
    if graph.kind[v] in (SOURCE, OPAQUE) or reached > MOST_COPIES:
        return False
    for i in range(reached):
        if state.tally[state.use[i, REACHED], FUSED] >= LARGEST_KERNEL:
            return False
    if not is_heavy(v, graph):
        return True
    if reached != 1 or graph.output[v]:
        return False
    k = state.use[0, REACHED]
    lone = state.use[k, TAKEN] == 0 and state.use[k, COMPUTED] == LOOPING | ALIGNED
    return lone and state.tally[k, HEAVY] <= v  # one with a smaller number comes after v


@compiled(runtime=False)
def join(v: int, reached: int, fused: bool, graph: Arrays, state: State) -> int:
    """Write v's memberships behind the others and return how many; where v is not fused, what is computed is read."""
    use, member, filled = state.use, state.member, state.counter[FILLED]
    stored, end = graph.output[v], filled
    for i in range(reached):
        k = use[i, REACHED]
        if not fused:
            use[k, TAKEN] |= use[k, COMPUTED] & ~ALIGNED
            use[k, COMPUTED] = 0
        stored |= use[k, TAKEN] != 0
        if use[k, COMPUTED] != 0:
            member[end, KERNEL], member[end, PLACE], state.times[end] = k, use[k, COMPUTED], state.amount[k, TIMES]
            end += 1
    if stored and graph.kind[v] not in (SOURCE, FREE):
        member[end, KERNEL], member[end, PLACE], state.times[end] = v, LOOPING | ALIGNED, 1.0
        end += 1
    return end - filled


@compiled(runtime=False)
def _pays(v: int, reached: int, graph: Arrays, machine: NDArray, caution: float, costs: Costs, state: State) -> bool:
    """Does a roofline model say that computing v in its consumers' kernels is cheaper than through memory?"""
    if is_heavy(v, graph):
        return True
    stored, copies, work, size = graph.output[v], 0, 0.0, graph.node[v, BYTES]
    for i in range(reached):
        k = state.use[i, REACHED]
        stored |= state.use[k, TAKEN] != 0
        if state.use[k, COMPUTED] != 0:
            copies += 1
            work += costs.operations[v] * state.amount[k, TIMES]
    if copies + stored > 1 and costs.read[v] > caution * size:
        return False
    fused = copies * costs.read[v] / machine[MEMORY] + work / machine[VECTOR]
    apart = copies * size / machine[MEMORY]
    if not stored:
        apart += (size + costs.read[v]) / machine[MEMORY]
        apart += machine[LAUNCH] + costs.operations[v] / machine[VECTOR]
    return fused < apart
