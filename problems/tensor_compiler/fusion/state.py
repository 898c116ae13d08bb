"""What the fusion pass knows about the last candidate: where each node is computed and read, and its kernels' load."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from ..hardware.kernel_row import DEFAULT_FLAGS, KERNEL_WIDTH, Kernel
from ..hardware.kernel_settings import SLOTS
from .columns import Amount, Counter, Known, Member, Span, Tally, Use
from .queue import Queue, new_queue

compiled = compiled_for(__file__)

LARGEST_KERNEL = 256
"""Most operations in a kernel."""
MOST_COPIES = 16
"""Most kernels that compute the same node."""


class FusionState(NamedTuple):
    """The arrays that the fusion pass on a graph of n nodes writes.

    Attributes:
      config: `(d,)` the last candidate.
      settings: `(n, 9)` what the last candidate set for the kernels, if anything.
      span: `(n, 2)` where the memberships of a node start, and how many there are; its own kernel comes last.
      member: `(r, 2)` memberships: a kernel that computes the node, and at which places.
      times: `(r,)` how often that kernel needs each element of the node.
      tally: `(n, 3)` by kernel; a node that is not in memory has no operations.
      load: `(n, 6)` by kernel: the columns READ to WORK_RIGHT of `Kernel`.
      cycles: `(n,)` of one run of each kernel, 0 for a node that is not in memory.
      sums: `(2 * size,)` cycles of all runs as a binary tree: leaf v at `size + v`, the parent of i at `i // 2`.
      use: `(n, 4)` notes on how one node is used, by kernel, or on how one kernel uses nodes, by node.
      amount: `(n, 2)` more of these notes.
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
    room = n * (MOST_COPIES + 1) + MOST_COPIES + 1
    return FusionState(
        config=np.zeros(d, np.int8),
        settings=np.zeros((n, len(SLOTS)), np.int8),
        span=np.zeros((n, len(Span)), np.int64),
        member=np.zeros((room, len(Member)), np.int64),
        times=np.zeros(room),
        tally=np.zeros((n, len(Tally)), np.int64),
        load=np.zeros((n, Kernel.WRITTEN)),
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
    """Return the state of the first n nodes, for compiled code that was given room for more; see `_part`."""
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


def _leaves(n: int) -> int:
    """Return the leaves of the tree of sums: a power of two."""
    return 1 << max(0, n - 1).bit_length()
