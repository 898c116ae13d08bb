"""What the fusion pass knows about the last candidate: where each node is computed and read, and its kernels' load."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from ..hardware.kernel_row import DEFAULT_FLAGS, KERNEL_WIDTH, Kernel
from ..hardware.kernel_settings import SLOTS

compiled = compiled_for(__file__)


LARGEST_KERNEL = 256
"""Most operations in a kernel."""
MOST_COPIES = 16
"""Most kernels that compute the same node."""
MOST_READ = 8
"""Arrays that a kernel reads of which is known which they are."""
NOT_STREAMED = -1.0


class Span(IntEnum):
    """Columns of `FusionState.span`."""

    START = 0
    COUNT = 1


class Member(IntEnum):
    """Columns of `FusionState.member`."""

    KERNEL = 0
    PLACE = 1


class Use(IntEnum):
    """Columns of `FusionState.use`."""

    SEEN = 0  # when the row was last cleared, by the clock
    REACHED = 1  # the rows seen, a list
    COMPUTED = 2  # places where the node is to be computed
    READ = 3  # places where it is read


class Amount(IntEnum):
    """Columns of `FusionState.amount`."""

    MOVED = 0  # bytes of one reading
    TIMES = 1


class Tally(IntEnum):
    """Columns of `FusionState.tally`."""

    FUSED = 0  # operations
    OPERANDS = 1
    HEAVY = 2  # the heavy operation, or -1
    HOST = 3  # the kernel itself, or the one in which it is a guest
    FIRST = 4  # its first guest, or -1
    NEXT = 5  # the next guest of the same host, or -1


class Shared(IntEnum):
    """Columns of `FusionState.shared`."""

    BYTES = 0
    ARRAYS = 1


class Counter(IntEnum):
    """Places in `FusionState.counter`."""

    CLOCK = 0  # rows of `use` that were cleared earlier are stale
    FILLED = 1  # rows of `member` in use
    TOUCHED = 2  # kernels in `touched`
    KNOWN = 3  # of `Known`


class Known(IntEnum):
    """What is known of the last candidate."""

    NOTHING = 0
    PLAIN = 1  # it set nothing for the kernels
    TUNED = 2  # it had settings


class Queue(NamedTuple):
    """A binary heap.

    Attributes:
      heap: `(1 + n,)` the number of waiting nodes, then these nodes.
      waiting: `(n,)` True if this node is in the heap.
    """

    heap: NDArray[np.int64]
    waiting: NDArray[np.bool_]


def new_queue(n: int) -> Queue:
    """Return an empty queue for nodes 0 to n - 1."""
    return Queue(np.zeros(1 + n, np.int64), np.zeros(n, np.bool_))


@compiled(runtime=False)
def is_empty(queue: Queue) -> bool:
    """Return whether no node waits."""
    return queue.heap[0] == 0


@compiled(runtime=False)
def push(queue: Queue, v: int) -> None:
    """Add v, unless it waits already."""
    heap = queue.heap
    if queue.waiting[v]:
        return
    queue.waiting[v] = True
    heap[0] += 1
    at = heap[0]
    while at > 1 and heap[at // 2] < v:
        heap[at] = heap[at // 2]
        at //= 2
    heap[at] = v


@compiled(runtime=False)
def pop(queue: Queue) -> int:
    """Remove and return the largest node."""
    heap = queue.heap
    first, last = heap[1], heap[heap[0]]
    heap[0] -= 1
    at, child = 1, 2
    while child <= heap[0]:
        if child < heap[0] and heap[child + 1] > heap[child]:
            child += 1
        if heap[child] <= last:
            break
        heap[at] = heap[child]
        at, child = child, 2 * child
    heap[at] = last
    queue.waiting[first] = False
    return first


@compiled(runtime=False)
def clear(queue: Queue) -> None:
    """Remove all nodes."""
    for at in range(1, queue.heap[0] + 1):
        queue.waiting[queue.heap[at]] = False
    queue.heap[0] = 0


class FusionState(NamedTuple):
    """The arrays that the fusion pass on a graph of n nodes writes.

    Attributes:
      config: `(d,)` the last candidate.
      settings: `(n, 9)` what the last candidate set for the kernels, if anything.
      span: `(n, 2)` where the memberships of a node start, and how many there are; its own kernel comes last.
      member: `(r, 2)` memberships: a kernel that computes the node, and at which places.
      times: `(r,)` how often that kernel needs each element of the node.
      tally: `(n, 6)` by kernel; a node that is not in memory has no operations.
      load: `(n, 6)` by kernel: the columns READ to WORK_RIGHT of `Kernel`.
      read: `(n, MOST_READ)` by kernel: the last arrays that it reads, in falling order.
      streamed: `(n, MOST_READ)` bytes of these, `NOT_STREAMED` if it does not walk over the array element by element.
      shared: `(n, 2)` by guest: bytes and number of the arrays that its host has on the chip anyway.
      cycles: `(n,)` of one run of each kernel, 0 for a guest and for a node that is not in memory.
      sums: `(2 * size,)` cycles of all runs as a binary tree: leaf v at `size + v`, the parent of i at `i // 2`.
      use: `(n, 4)` how one node is used, by kernel, or how one kernel uses nodes, by node.
      amount: `(n, 2)` bytes and times of these uses.
      counter: `(4,)`, see `Counter`.
      touched: `(3 * n,)` list of the kernels that have changed; some are in it more than once.
      changed: `(n,)` True if this kernel is in the list and its totals are not computed again yet.
      dirty: nodes to visit again.
      inside: nodes of the kernel whose totals are being computed.
      kernel, tile, flags: of the kernel that is being timed.
    """

    config: NDArray[np.int8]
    settings: NDArray[np.int8]
    span: NDArray[np.int64]
    member: NDArray[np.int64]
    times: NDArray[np.float64]
    tally: NDArray[np.int64]
    load: NDArray[np.float64]
    read: NDArray[np.int64]
    streamed: NDArray[np.float64]
    shared: NDArray[np.float64]
    cycles: NDArray[np.float64]
    sums: NDArray[np.float64]
    use: NDArray[np.int64]
    amount: NDArray[np.float64]
    counter: NDArray[np.int64]
    touched: NDArray[np.int64]
    changed: NDArray[np.bool_]
    dirty: Queue
    inside: Queue
    kernel: NDArray[np.float64]
    tile: NDArray[np.float64]
    flags: NDArray[np.float64]


def new_state(n: int, d: int) -> FusionState:
    """Return the state before any candidate; the system provides the memory only as it is used."""
    most = n * (MOST_COPIES + 1) + MOST_COPIES + 1
    return FusionState(
        config=np.zeros(d, np.int8),
        settings=np.zeros((n, len(SLOTS)), np.int8),
        span=np.zeros((n, len(Span)), np.int64),
        member=np.zeros((most, len(Member)), np.int64),
        times=np.zeros(most),
        tally=np.zeros((n, len(Tally)), np.int64),
        load=np.zeros((n, Kernel.WRITTEN)),
        read=np.zeros((n, MOST_READ), np.int64),
        streamed=np.zeros((n, MOST_READ)),
        shared=np.zeros((n, len(Shared))),
        cycles=np.zeros(n),
        sums=np.zeros(2 * _leaves(n)),
        use=np.zeros((n, len(Use)), np.int64),
        amount=np.zeros((n, len(Amount))),
        counter=np.zeros(len(Counter), np.int64),
        touched=np.zeros(3 * n, np.int64),
        changed=np.zeros(n, np.bool_),
        dirty=new_queue(n),
        inside=new_queue(n),
        kernel=np.zeros(KERNEL_WIDTH),
        tile=np.zeros(3),
        flags=np.array(DEFAULT_FLAGS),
    )


class StateBuffer:
    """Lends the arrays of a state to one laid-out program at a time, because fresh memory costs more than a sweep."""

    def __init__(self) -> None:
        self._n = self._d = 0
        self._holder: object = None
        self._lent: FusionState

    def lend(self, holder: object, n: int, d: int) -> FusionState:
        """Return the state for a graph of n nodes and d columns; a new holder gets a state that knows nothing."""
        if n > self._n or d > self._d:
            self._n, self._d, self._holder = max(n, self._n), max(d, self._d), None
            self._whole = new_state(self._n, self._d)
        if holder is not self._holder:
            self._holder, self._lent = holder, _part(self._whole, n, d)
            self._lent.counter[Counter.KNOWN] = Known.NOTHING
        return self._lent


def _part(state: FusionState, n: int, d: int) -> FusionState:
    """Return the state of a smaller graph: arrays that are read as a whole are cut to its size."""
    sums = state.sums[: 2 * _leaves(n)]
    settings, tally, cycles = state.settings[:n], state.tally[:n], state.cycles[:n]
    return state._replace(config=state.config[:d], settings=settings, tally=tally, cycles=cycles, sums=sums)


@compiled(runtime=False)
def first_kernels(n: int, state: FusionState) -> FusionState:
    """Return the state of the first n nodes, for compiled code whose state is for more; see `_part`."""
    leaves = 1
    while leaves < n:
        leaves *= 2
    return FusionState(
        state.config,
        state.settings,
        state.span,
        state.member,
        state.times,
        state.tally,
        state.load,
        state.read,
        state.streamed,
        state.shared,
        state.cycles[:n],
        state.sums[: 2 * leaves],
        state.use,
        state.amount,
        state.counter,
        state.touched,
        state.changed,
        state.dirty,
        state.inside,
        state.kernel,
        state.tile,
        state.flags,
    )


@compiled(runtime=False)
def touch(k: int, state: FusionState) -> None:
    """Add kernel k to the list of changed kernels, unless it is marked as one."""
    if not state.changed[k]:
        state.changed[k] = True
        state.touched[state.counter[Counter.TOUCHED]] = k
        state.counter[Counter.TOUCHED] += 1


@compiled(runtime=False)
def same(a: NDArray, b: NDArray) -> bool:
    """True if two rows are equal."""
    different = np.int64(0)
    for i in range(len(a)):
        different |= a[i] ^ b[i]
    return different == 0


def _leaves(n: int) -> int:
    """Return the leaves of the tree of sums: a power of two."""
    return 1 << max(0, n - 1).bit_length()
