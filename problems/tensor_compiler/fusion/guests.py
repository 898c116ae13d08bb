"""Kernels with several results: a kernel that walks over an array while another one makes it is a guest of that one.

As in XLA's multi-output fusion, an element-wise kernel or a reduction joins the kernel that makes what it reads: the
host has the array on the chip, so the guest reads only what the host does not, and starts no kernel. A guest may have
guests, which have the same host.

A host runs earlier than its guests would. So a guest may read only what its host makes, and what is in memory before
the host runs, by the order of the nodes. Then no kernel waits for itself, whichever guests there are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from ..hardware.kernel_row import Kernel
from ..hlo.opcodes import Kind
from ..layout.arrays import Edge, FusionGraph, Node
from .state import (
    LARGEST_KERNEL,
    MOST_READ,
    Counter,
    FusionState,
    Member,
    Shared,
    Span,
    Tally,
    is_empty,
    pop,
    push,
    touch,
)

compiled = compiled_for(__file__)


_MOST_BYTES = 24.0
"""Most bytes for each element of a product that its kernel reads and writes beside the product's operands."""


def kernels_of(state: FusionState) -> NDArray[np.int64]:
    """Return the nodes that have a kernel of their own, ascending."""
    tally = state.tally
    return np.flatnonzero((tally[:, Tally.FUSED] > 0) & (tally[:, Tally.HOST] == np.arange(len(tally))))


@compiled(runtime=False)
def is_kernel(v: int, state: FusionState) -> bool:
    """True if v is in memory and has a kernel of its own."""
    return state.tally[v, Tally.FUSED] > 0 and state.tally[v, Tally.HOST] == v


@compiled(runtime=False)
def place_guests(graph: FusionGraph, state: FusionState) -> None:
    """Find the host of each kernel, after a sweep."""
    for g in range(len(graph.kind)):
        tally = state.tally[g]
        tally[Tally.HOST], tally[Tally.FIRST], tally[Tally.NEXT] = g, -1, -1
        if tally[Tally.FUSED] > 0:
            _enter(g, _host(g, graph, state), state)


@compiled(runtime=False)
def place_guests_again(graph: FusionGraph, state: FusionState) -> None:
    """Find the hosts that have changed since the last candidate; kernels whose guests change are touched, too.

    Kernels wait in ascending order, because hosts are decided before their guests.
    """
    last, waiting = len(graph.kind) - 1, state.dirty
    for i in range(state.counter[Counter.TOUCHED]):
        state.changed[state.touched[i]] = True
        push(waiting, last - state.touched[i])
    while not is_empty(waiting):
        g = last - pop(waiting)
        before = state.tally[g, Tally.HOST]
        if before != g:
            _leave(g, before, state)
        host = _host(g, graph, state) if state.tally[g, Tally.FUSED] > 0 else g
        _enter(g, host, state)
        if host == before and not state.changed[g]:
            continue
        touch(g, state)
        touch(host, state)
        _push_readers_of_results(host, g, graph, state)  # of g, too, which is there now
        if before != host:
            touch(before, state)
            _push_readers_of_results(before, g, graph, state)
    for i in range(state.counter[Counter.TOUCHED]):
        state.changed[state.touched[i]] = False


@compiled(runtime=False)
def _host(g: int, graph: FusionGraph, state: FusionState) -> int:
    """Return the host of a kernel, or the kernel itself if it is no guest; hosts of smaller numbers are known."""
    tally = state.tally[g]
    newest, heavy = _newest(g, graph, state), tally[Tally.HEAVY]
    if newest < 0 or graph.kind[g] == Kind.OPAQUE or (heavy >= 0 and graph.kind[heavy] == Kind.MATRIX):
        return g
    made = state.read[g, newest]
    if not _streams(g, newest, graph, state) or graph.node[made, Node.RUNS] != graph.node[g, Node.RUNS]:
        return g
    if heavy >= 0 and graph.node[made, Node.ELEMENTS] <= graph.node[heavy, Node.ELEMENTS]:
        return g  # it goes into what follows on the reduction
    host = state.tally[made, Tally.HOST]
    known = min(tally[Tally.OPERANDS], MOST_READ)
    for i in range(newest + 1, known):
        a = state.read[g, i]
        late = graph.node[a, Node.EARLY] == 0 and a >= host
        if late and (not _streams(g, i, graph, state) or state.tally[a, Tally.HOST] != host):
            return g
    if known < tally[Tally.OPERANDS] and state.read[g, known - 1] >= host:
        return g
    return host if _fits(g, host, graph, state) else g


@compiled(runtime=False)
def _newest(g: int, graph: FusionGraph, state: FusionState) -> int:
    """Return the place in `read` of the array that is ready last, or -1."""
    for i in range(min(state.tally[g, Tally.OPERANDS], MOST_READ)):
        if graph.node[state.read[g, i], Node.EARLY] == 0:
            return i
    return -1


@compiled(runtime=False)
def _streams(g: int, i: int, graph: FusionGraph, state: FusionState) -> bool:
    """True if a kernel walks over the i-th array it reads element by element, and that array is made tile by tile."""
    a = state.read[g, i]
    if state.streamed[g, i] < 0 or state.tally[a, Tally.FUSED] == 0:
        return False
    heavy = state.tally[a, Tally.HEAVY]
    return _may_be_shared(a, graph) and (heavy < 0 or graph.kind[heavy] == Kind.MATRIX)


@compiled(runtime=False)
def _may_be_shared(a: int, graph: FusionGraph) -> bool:
    """True if some kernel makes array a tile by tile in the order of its loop."""
    kind = graph.kind[a]
    return kind == Kind.ELEMENTWISE or kind == Kind.BROADCAST or kind == Kind.MATRIX


@compiled(runtime=False)
def _fits(g: int, host: int, graph: FusionGraph, state: FusionState) -> bool:
    """True if a host has room for one more guest; if so, note what they share."""
    _note_shared(g, host, graph, state)
    operations, moved, heavy = 0, 0.0, state.tally[host, Tally.HEAVY]
    k = host
    while k >= 0:
        operations += state.tally[k, Tally.FUSED]
        moved += _moved(k, graph, state) - (state.shared[k, Shared.BYTES] if k != host else 0.0)
        k = _following(k, host, g, state)
    operations += state.tally[g, Tally.FUSED]
    moved += _moved(g, graph, state) - state.shared[g, Shared.BYTES]
    if heavy >= 0 and graph.kind[heavy] == Kind.MATRIX:
        elements = graph.node[host, Node.BYTES] / graph.node[host, Node.ELEMENT_BYTES]
        if moved > _MOST_BYTES * elements:
            return False
    return operations <= LARGEST_KERNEL


@compiled(runtime=False)
def _moved(k: int, graph: FusionGraph, state: FusionState) -> float:
    """Return the bytes that kernel k reads and writes tile by tile of its result."""
    return state.load[k, Kernel.READ] + graph.node[k, Node.BYTES]


@compiled(runtime=False)
def _following(k: int, host: int, g: int, state: FusionState) -> int:
    """Return the kernel after k among a host and its guests in front of g, or -1."""
    following = state.tally[k, Tally.FIRST] if k == host else state.tally[k, Tally.NEXT]
    return following if following < g else -1


@compiled(runtime=False)
def _note_shared(g: int, host: int, graph: FusionGraph, state: FusionState) -> None:
    """Write what a guest reads that its host, or a guest in front of it, makes or walks over as well."""
    moved, arrays = 0.0, 0
    for i in range(min(state.tally[g, Tally.OPERANDS], MOST_READ)):
        a = state.read[g, i]
        if state.streamed[g, i] >= 0 and _is_on_chip(a, g, host, state):
            moved += state.streamed[g, i]
            arrays += 1
    state.shared[g, Shared.BYTES], state.shared[g, Shared.ARRAYS] = moved, arrays


@compiled(runtime=False)
def _is_on_chip(a: int, g: int, host: int, state: FusionState) -> bool:
    """True if a host or a guest of it in front of g makes or walks over array a."""
    k = host
    while k >= 0:
        if k == a:
            return True
        for i in range(min(state.tally[k, Tally.OPERANDS], MOST_READ)):
            if state.read[k, i] <= a:
                if state.read[k, i] == a and state.streamed[k, i] >= 0:
                    return True
                break
        k = _following(k, host, g, state)
    return False


@compiled(runtime=False)
def _enter(g: int, host: int, state: FusionState) -> None:
    """Make g a guest of a host, in ascending order, unless it is its own."""
    state.tally[g, Tally.HOST] = host
    if host == g:
        return
    k, following = host, state.tally[host, Tally.FIRST]
    while 0 <= following < g:
        k, following = following, state.tally[following, Tally.NEXT]
    state.tally[g, Tally.NEXT] = following
    state.tally[k, Tally.FIRST if k == host else Tally.NEXT] = g


@compiled(runtime=False)
def _leave(g: int, host: int, state: FusionState) -> None:
    """Take g out of its host."""
    k, following = host, state.tally[host, Tally.FIRST]
    while following != g:
        k, following = following, state.tally[following, Tally.NEXT]
    state.tally[k, Tally.FIRST if k == host else Tally.NEXT] = state.tally[g, Tally.NEXT]
    state.tally[g, Tally.NEXT] = -1


@compiled(runtime=False)
def _push_readers_of_results(host: int, g: int, graph: FusionGraph, state: FusionState) -> None:
    """Queue the kernels behind g that may be guests because of what a host and its guests make."""
    _push_readers(host, g, graph, state)
    k = state.tally[host, Tally.FIRST]
    while k >= 0:
        _push_readers(k, g, graph, state)
        k = state.tally[k, Tally.NEXT]


@compiled(runtime=False)
def _push_readers(a: int, g: int, graph: FusionGraph, state: FusionState) -> None:
    """Queue the kernels behind g whose newest array is a."""
    last = len(graph.kind) - 1
    if state.tally[a, Tally.FUSED] == 0 or not _may_be_shared(a, graph):
        return
    for e in range(graph.starts[a], graph.starts[a + 1]):
        c = graph.edge[e, Edge.CONSUMER]
        for j in range(state.span[c, Span.START], state.span[c, Span.START] + state.span[c, Span.COUNT]):
            k = state.member[j, Member.KERNEL]
            if k > g:
                newest = _newest(k, graph, state)
                if newest >= 0 and state.read[k, newest] == a:
                    push(state.dirty, last - k)
