"""What compiled code believes parts to cost: a hash table of measured parts and of predictions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

compiled = compiled_for(__file__)


EMPTY, KNOWN, PREDICTED, PENDING = range(4)
_LARGEST = 1 << 20


class PriceTable(NamedTuple):
    """An open-addressing hash table; the number of slots is a power of two.

    Attributes:
      keys: `(s,)` of parts.
      costs: `(s,)` the cost that is believed.
      spreads: `(s,)` the standard deviation of its logarithm.
      risks: `(s,)` the chance that the part fails.
      states: `(s,)` `EMPTY`, `KNOWN` if measured, `PREDICTED`, or `PENDING` if a candidate with it is to be evaluated.
      filled: `(1,)` slots in use.
    """

    keys: NDArray[np.uint64]
    costs: NDArray[np.float64]
    spreads: NDArray[np.float64]
    risks: NDArray[np.float64]
    states: NDArray[np.int8]
    filled: NDArray[np.int64]


def new_table(
    keys: NDArray[np.uint64],
    costs: NDArray[np.float64],
    spreads: NDArray[np.float64],
    failed: NDArray[np.bool_],
    slots: int,
) -> PriceTable:
    """Return a table of measured parts with at least `slots` slots, and at least four for each of these parts."""
    slots = min(max(slots, 4 * len(keys)), max(_LARGEST, 4 * len(keys)))
    slots = 1 << (slots - 1).bit_length()
    costs_, spreads_, risks_ = (np.zeros(slots) for _ in range(3))
    states, filled = np.zeros(slots, np.int8), np.zeros(1, np.int64)
    table = PriceTable(np.zeros(slots, np.uint64), costs_, spreads_, risks_, states, filled)
    _measure(table, keys, costs, spreads, failed.astype(np.float64))
    return table


def is_crowded(table: PriceTable) -> bool:
    """Return whether the table is half full, so that new predictions are not kept."""
    return 2 * int(table.filled[0]) >= len(table.keys)


@compiled()
def _measure(table: PriceTable, keys: NDArray, costs: NDArray, spreads: NDArray, risks: NDArray) -> None:
    for i in range(len(keys)):
        keep(table, find(table, keys[i]), keys[i], costs[i], spreads[i], risks[i], KNOWN)


@compiled(runtime=False)
def find(table: PriceTable, key: np.uint64) -> np.uint64:
    """Return the slot that holds a key, or the empty one for it."""
    last = np.uint64(len(table.keys) - 1)
    slot = (key ^ (key >> np.uint64(32))) & last
    while table.states[slot] != EMPTY and table.keys[slot] != key:
        slot = (slot + np.uint64(1)) & last
    return slot


@compiled(runtime=False)
def keep(
    table: PriceTable, slot: np.uint64, key: np.uint64, cost: float, spread: float, risk: float, state: int
) -> None:
    """Write a part to the slot that `find` returned for it."""
    table.filled[0] += table.states[slot] == EMPTY
    table.keys[slot], table.costs[slot], table.spreads[slot] = key, cost, spread
    table.risks[slot], table.states[slot] = risk, state
