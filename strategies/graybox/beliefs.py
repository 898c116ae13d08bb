"""The price of a part in a virtual search: measured, or predicted, and drawn with its uncertainty."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .compiled import compiled
from .model_arrays import ModelArrays, predict
from .price_table import EMPTY, PENDING, PREDICTED, PriceTable, find, keep
from .randomness import normal


class Beliefs(NamedTuple):
    """What a search believes.

    Attributes:
      table: prices of parts; takes new predictions.
      model: predicts what is not measured.
      draw: `(1,)` the number of the draw that deviations belong to.
      taste: `(2,)` standard deviations that are added to the logarithm of a cost: always, and times a normal
        deviate.
      key, features: `(1,)` and `(f,)` room for those of a part.
    """

    table: PriceTable
    model: ModelArrays
    draw: NDArray[np.uint64]
    taste: NDArray[np.float64]
    key: NDArray[np.uint64]
    features: NDArray[np.float64]


@compiled(runtime=False)
def price(key_of: Callable[..., Any], describe: Callable[..., Any], handle: int, place: int, beliefs: Beliefs) -> float:
    """Return count times cost of the part at a place; 0 if there is none."""
    count = key_of(handle, place, beliefs.key)
    if count == 0.0:
        return 0.0
    table, key = beliefs.table, beliefs.key[0]
    slot = find(table, key)
    cost, spread, state = table.costs[slot], table.spreads[slot], table.states[slot]
    if state == EMPTY:
        describe(handle, place, beliefs.features)
        cost, spread = np.exp(predict(beliefs.model, beliefs.features)), beliefs.model.noise[0]
        if 2 * table.filled[0] < len(table.keys):
            keep(table, slot, key, cost, spread, PREDICTED)
    if spread > 0.0:
        deviate = 0.0 if state == PENDING else beliefs.taste[1] * normal(key, beliefs.draw[0])
        cost *= np.exp(spread * (beliefs.taste[0] + deviate))
    return count * cost
