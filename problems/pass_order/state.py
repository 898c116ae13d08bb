"""What is known of a module on its way through the passes: its cost, its operations, and how they are connected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import ClassVar, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from bbo_suite import product, sequence
from bbo_suite.supervised import LiveProblem

STATE = "state"
"""A child answers a request `(STATE, actions)` with the fields of a `State`."""
ROUNDS, BUCKETS = 2, 64
NEIGHBOURHOODS = ROUNDS * BUCKETS
Operation = tuple[Hashable, str, Sequence[Hashable]]
"""A name, a kind, and the names of the operands; names that no operation has are ignored."""


class State(NamedTuple):
    """A module after some passes.

    Attributes:
      cost: that of the candidate with these passes, so with what the compiler must still run.
      kinds: the number of operations of each kind, before that.
      neighbourhoods: `(NEIGHBOURHOODS,)` their surroundings, see `neighbourhoods`.
      labels: `(n,)` the kind of each operation, hashed into `BUCKETS`.
      edges: `(m, 2)` an operation and one that uses its result.
    """

    cost: float
    kinds: dict[str, int]
    neighbourhoods: NDArray[np.float32]
    labels: NDArray[np.uint8]
    edges: NDArray[np.int32]


class PassOrderProblem(LiveProblem):
    """A problem whose candidates are sequences of passes.

    Attributes:
      actions: the values of a slot; the first does nothing.
      slots: the length of a sequence.
      opcodes: the kinds of operations that are distinguished.
    """

    actions: ClassVar[tuple[str, ...]]
    slots: ClassVar[int]
    opcodes: ClassVar[tuple[str, ...]]

    def _choose_sequences(self, default: str) -> None:
        """Set the space of all sequences, and the default: one action, and then nothing."""
        self.space = product(sequence("pass", self.slots, self.actions))
        self.default = np.zeros(self.slots, np.int64)
        self.default[0] = self.actions.index(default)

    def request(self, config: NDArray) -> tuple[str, ...]:
        """Return the names of a candidate's actions, without those that do nothing."""
        return tuple(self.actions[i] for i in config.tolist() if i)

    def state(self, passes: tuple[str, ...]) -> State:
        """Return the module after passes.

        Raises:
          UserError: the compiler failed, crashed or hung. The next call has a new process.
        """
        return State(*self.query((STATE, passes)))


def described(operations: Iterable[Operation]) -> tuple[dict[str, int], NDArray, NDArray, NDArray]:
    """Return the fields of a state but the cost."""
    listed = list(operations)
    places = {name: place for place, (name, _, _) in enumerate(listed)}
    edges = [(places[o], i) for i, (_, _, operands) in enumerate(listed) for o in operands if o in places]
    labels = np.array([crc32(kind.encode()) % BUCKETS for _, kind, _ in listed], np.uint8)
    kinds = dict(Counter(kind for _, kind, _ in listed))
    return kinds, neighbourhoods(listed), labels, np.array(edges, np.int32).reshape(-1, 2)


def neighbourhoods(operations: Sequence[Operation]) -> NDArray[np.float32]:
    """Return how many operations have each surrounding, of one and of two steps, hashed into buckets.

    A surrounding is an operation's kind and those of its operands, in any order, and so on (Weisfeiler and Leman 1968).
    The hash is the same in every process.
    """
    counts = np.zeros((ROUNDS, BUCKETS), np.float32)
    labels = {name: crc32(kind.encode()) for name, kind, _ in operations}
    for row in counts:
        labels = {
            name: crc32(repr((labels[name], sorted(labels[o] for o in operands if o in labels))).encode())
            for name, _, operands in operations
        }
        np.add.at(row, np.array(list(labels.values()), np.int64) % BUCKETS, 1)
    return counts.ravel()
