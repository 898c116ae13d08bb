"""A priority queue of nodes, largest number first, without duplicates: the fusion pass visits nodes in this order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

compiled = compiled_for(__file__)


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
