"""One sweep over a graph that fuses and times a configuration: the hot path of every fusion task.

Nodes are visited from the outputs to the inputs. The kernels that compute a node are known once its consumers' are, so
one visit decides where the node is computed, where it is read, and what that adds to each kernel. The cost is linear
in the edges, times the copies of a node, which are bounded. Compiled with numba.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .compiled import compiled
from .graph import Graph
from .opcodes import Kind
from .timing import HERTZ, LAUNCH, MEMORY, VECTOR, kernel_cycles

LARGEST_KERNEL = 256
"""Most operations in a kernel."""
MOST_COPIES = 16
"""Most kernels that compute the same node."""

# Places of work in a kernel, as bits (see `timing`); aligned: element by element all the way to the result.
_LOOP, _LEFT, _RIGHT, _ALIGNED = 1, 2, 4, 8
_FREE, _SOURCE, _ELEMENTWISE = int(Kind.FREE), int(Kind.SOURCE), int(Kind.ELEMENTWISE)
_REDUCE, _MATRIX, _OPAQUE = int(Kind.REDUCE), int(Kind.MATRIX), int(Kind.OPAQUE)

# Columns of the packed arrays; few arrays with rows that are used together are what makes the sweep fast.
_ELEMENTS, _BYTES, _OPERATIONS, _WEIGHT = range(4)  # of `node`
_USER, _COLUMN, _OPERAND = range(3)  # of `edge`
_READ, _REUSE = range(2)  # of `flow`


class Arrays(NamedTuple):
    """What the sweep reads of a graph of n nodes and m edges.

    Attributes:
      kind: `(n,)` of `Kind`.
      output: `(n,)` must the result be in memory?
      node: `(n, 4)` elements, bytes, vector operations, weight.
      matrix: `(n, 4)` as in `Graph`.
      starts: `(n + 1,)`; v's edges to its consumers are `starts[v]:starts[v + 1]`.
      edge: `(m, 3)` consumer, column of the configuration that decides it or -1, place among the operands.
      flow: `(m, 2)` bytes read if through memory, uses of each element.
    """

    kind: NDArray[np.int64]
    output: NDArray[np.bool_]
    node: NDArray[np.float64]
    matrix: NDArray[np.float64]
    starts: NDArray[np.int64]
    edge: NDArray[np.int64]
    flow: NDArray[np.float64]


def pack(graph: Graph, column: NDArray[np.int64]) -> Arrays:
    """Return the arrays of a graph; `column` `(m,)` names the column that decides each edge, -1 for none."""
    node = np.column_stack([graph.elements, graph.bytes, graph.operations, graph.weight])
    edge = np.column_stack([graph.users.astype(np.int64), column, graph.operand.astype(np.int64)])
    flow = np.column_stack([graph.read, graph.reuse])
    return Arrays(graph.kind.astype(np.int64), graph.output, node, graph.matrix, graph.user_starts, edge, flow)


class Costs(NamedTuple):
    """What computing a node once takes under a plan, with all that is fused in front of it.

    Attributes:
      read: `(n,)` bytes from memory.
      operations: `(n,)` vector operations.
    """

    read: NDArray[np.float64]
    operations: NDArray[np.float64]


# The state of a sweep. `span` `(n, 2)`: where v's memberships start, and how many there are; `member` `(r, 2)`: the
# kernel that computes v, and at which places; `times` `(r,)`: how often it needs each element. For the node at hand,
# by kernel: `use` `(n, 4)`: the node it was last seen for, the kernels reached (a list), places where the node is to
# be computed, places where it is read; `amount` `(n, 2)`: bytes of one reading, times. By kernel: `load` `(n, 6)`:
# bytes read and vector operations at each place; `tally` `(n, 3)`: operations, operands, its heavy operation or -1.
_KERNEL, _PLACE = range(2)
_SEEN, _REACHED, _COMPUTED, _TAKEN = range(4)
_MOVED, _TIMES = range(2)
_FUSED, _OPERANDS, _HEAVY = range(3)


@compiled()
def sweep(
    configs: NDArray,
    graph: Arrays,
    machine: NDArray,
    caution: float,
    costs: Costs,
    kernels: NDArray,
    seconds: NDArray,
) -> None:
    """Fuse and time each configuration.

    Args:
      configs: `(b, d)`; read, or where `caution` is positive, written with what the compiler itself decides.
      machine: `Machine.array()`.
      caution: 0, or the largest ratio of bytes read to bytes made at which the compiler copies a producer.
      costs: of the nodes under the plan that the compiler revises; empty where it decides nothing.
      kernels: `(n, 4)`, filled for the last configuration: cycles, operations, bytes read, operands of the kernel
        that computes each node; zeros for a node that is not in memory.
      seconds: `(b,)`, filled with the program's run times.
    """
    kind, output, node, matrix, starts, edge, flow = graph
    n = len(kind)
    span, use, tally = np.zeros((n, 2), np.int64), np.zeros((n, 4), np.int64), np.zeros((n, 3), np.int64)
    member, times = np.zeros((n * (MOST_COPIES + 1), 2), np.int64), np.zeros(n * (MOST_COPIES + 1))
    amount, load = np.zeros((n, 2)), np.zeros((n, 6))
    for b in range(len(configs)):
        config = configs[b]
        use[:, _SEEN] = -1
        filled, total = 0, 0.0
        for v in range(n - 1, -1, -1):
            span[v, 0] = filled
            kernels[v, 0] = 0.0
            if kind[v] != _FREE:
                reached = _uses(
                    v, config, caution > 0, kind, node, starts, edge, flow, span, member, times, use, amount
                )
                fused = _legal(v, reached, kind, output, use, tally)
                if caution > 0:
                    fused = fused and _pays(v, reached, kind, output, node, use, amount, machine, caution, costs)
                    for e in range(starts[v], starts[v + 1]):
                        if edge[e, _COLUMN] >= 0:
                            config[edge[e, _COLUMN]] = fused
                stored, filled = _enter(
                    v, reached, fused, filled, kind, output, node, member, times, use, amount, load, tally
                )
                kernels[v, 0] = stored
            span[v, 1] = filled - span[v, 0]
        for v in range(n):
            kernels[v, 1:] = 0.0
            if kernels[v, 0] > 0:
                heavy = tally[v, _HEAVY] if tally[v, _HEAVY] >= 0 else v
                operations, operands = float(tally[v, _FUSED]), float(tally[v, _OPERANDS])
                sums = node[heavy, _ELEMENTS] * 4
                cycles = kernel_cycles(machine, load[v], node[v, _BYTES], operands, operations, matrix[heavy], sums)
                kernels[v, 0], kernels[v, 1], kernels[v, 3] = cycles, operations, operands
                kernels[v, 2] = load[v, 0] + load[v, 1] + load[v, 2]
                total += cycles * node[v, _WEIGHT]
        seconds[b] = total / machine[HERTZ]


@compiled("always")
def _uses(
    v: int,
    config: NDArray,
    deciding: bool,
    kind: NDArray,
    node: NDArray,
    starts: NDArray,
    edge: NDArray,
    flow: NDArray,
    span: NDArray,
    member: NDArray,
    times: NDArray,
    use: NDArray,
    amount: NDArray,
) -> int:
    """Gather how the kernels of v's consumers use v and return how many there are."""
    reached = 0
    for e in range(starts[v], starts[v + 1]):
        c, column = edge[e, _USER], edge[e, _COLUMN]
        asked = column >= 0 and (deciding or config[column] != 0)
        straight = kind[c] == _ELEMENTWISE and node[c, _ELEMENTS] == node[v, _ELEMENTS]
        for j in range(span[c, 0], span[c, 0] + span[c, 1]):
            k, place = member[j, _KERNEL], member[j, _PLACE]
            if use[k, _SEEN] != v:
                use[k, _SEEN], use[reached, _REACHED] = v, k
                use[k, _COMPUTED], use[k, _TAKEN] = 0, 0
                amount[k, _MOVED], amount[k, _TIMES] = 0.0, 0.0
                reached += 1
            where = place & ~_ALIGNED
            if kind[c] == _MATRIX:
                where = _LEFT if edge[e, _OPERAND] == 0 else _RIGHT if edge[e, _OPERAND] == 1 else _LOOP
            if asked:
                before = use[k, _COMPUTED]
                aligned = _ALIGNED if straight and place & _ALIGNED and (before == 0 or before & _ALIGNED) else 0
                use[k, _COMPUTED] = (before & ~_ALIGNED) | where | aligned
                amount[k, _TIMES] = max(amount[k, _TIMES], times[j] * flow[e, _REUSE])
            else:
                use[k, _TAKEN] |= where
            amount[k, _MOVED] = max(amount[k, _MOVED], flow[e, _READ] * min(times[j], 1.0))
    return reached


@compiled("always")
def _legal(v: int, reached: int, kind: NDArray, output: NDArray, use: NDArray, tally: NDArray) -> bool:
    """May v be computed where it is wanted?"""
    if kind[v] in (_SOURCE, _OPAQUE) or reached > MOST_COPIES:
        return False
    for i in range(reached):
        if tally[use[i, _REACHED], _FUSED] >= LARGEST_KERNEL:
            return False
    if kind[v] != _REDUCE and kind[v] != _MATRIX:
        return True
    if reached != 1 or output[v]:
        return False
    k = use[0, _REACHED]
    return use[k, _TAKEN] == 0 and use[k, _COMPUTED] == _LOOP | _ALIGNED and tally[k, _HEAVY] < 0


@compiled("always")
def _pays(
    v: int,
    reached: int,
    kind: NDArray,
    output: NDArray,
    node: NDArray,
    use: NDArray,
    amount: NDArray,
    machine: NDArray,
    caution: float,
    costs: Costs,
) -> bool:
    """Does a roofline model say that computing v in its consumers' kernels is cheaper than through memory?"""
    if kind[v] in (_REDUCE, _MATRIX):
        return True
    stored, copies, work = output[v], 0, 0.0
    for i in range(reached):
        k = use[i, _REACHED]
        stored |= use[k, _TAKEN] != 0
        if use[k, _COMPUTED] != 0:
            copies += 1
            work += costs.operations[v] * amount[k, _TIMES]
    if copies + stored > 1 and costs.read[v] > caution * node[v, _BYTES]:
        return False
    fused = copies * costs.read[v] / machine[MEMORY] + work / machine[VECTOR]
    apart = copies * node[v, _BYTES] / machine[MEMORY]
    if not stored:
        apart += (node[v, _BYTES] + costs.read[v]) / machine[MEMORY]
        apart += machine[LAUNCH] + costs.operations[v] / machine[VECTOR]
    return fused < apart


@compiled("always")
def _enter(
    v: int,
    reached: int,
    fused: bool,
    filled: int,
    kind: NDArray,
    output: NDArray,
    node: NDArray,
    member: NDArray,
    times: NDArray,
    use: NDArray,
    amount: NDArray,
    load: NDArray,
    tally: NDArray,
) -> tuple[float, int]:
    """Add v to the kernels that compute or read it; return whether it opens its own, and the new fill of `member`."""
    heavy = kind[v] in (_REDUCE, _MATRIX)
    stored = output[v]
    for i in range(reached):
        k = use[i, _REACHED]
        computed, taken = use[k, _COMPUTED], use[k, _TAKEN]
        if not fused:
            computed, taken = 0, taken | (computed & ~_ALIGNED)
        if computed != 0:
            tally[k, _FUSED] += 1
            if heavy:
                tally[k, _HEAVY] = v
            member[filled, _KERNEL], member[filled, _PLACE], times[filled] = k, computed, amount[k, _TIMES]
            filled += 1
        if taken != 0:
            stored = True
            tally[k, _OPERANDS] += 1
        for place in range(3):
            if computed & (1 << place):
                load[k, 3 + place] += node[v, _OPERATIONS] * amount[k, _TIMES]
            if taken & (1 << place):
                load[k, place] += amount[k, _MOVED]
    if not stored or kind[v] == _SOURCE:
        return 0.0, filled
    for column in range(6):
        load[v, column] = 0.0
    load[v, 3] = node[v, _OPERATIONS]
    tally[v, _FUSED], tally[v, _OPERANDS], tally[v, _HEAVY] = 1, 0, v if heavy else -1
    member[filled, _KERNEL], member[filled, _PLACE], times[filled] = v, _LOOP | _ALIGNED, 1.0
    return 1.0, filled + 1


@compiled("always")
def effective_costs(config: NDArray, graph: Arrays) -> Costs:
    """Return what computing each node takes if everything is fused in front of it that a `(d,)` plan fuses."""
    kind, _, node, _, starts, edge, flow = graph
    read, operations = np.zeros(len(kind)), node[:, _OPERATIONS].copy()
    for v in range(len(kind)):
        if kind[v] == _FREE:
            continue
        for e in range(starts[v], starts[v + 1]):
            c, column = edge[e, _USER], edge[e, _COLUMN]
            if kind[v] not in (_REDUCE, _MATRIX) and column >= 0 and config[column] != 0:
                read[c] += read[v] * min(flow[e, _REUSE], 1.0)
                operations[c] += operations[v] * flow[e, _REUSE]
            else:
                read[c] += flow[e, _READ]
    return Costs(read, operations)
