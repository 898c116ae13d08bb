"""The price of a part in a virtual search: measured, or predicted, and drawn with its uncertainty."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from .family_arrays import FamilyArrays, correct
from .model_arrays import ModelArrays, predict
from .price_table import EMPTY, KNOWN, PENDING, PREDICTED, PriceTable, find, keep
from .randomness import normal

compiled = compiled_for(__file__)


class Taste(NamedTuple):
    """What a search likes.

    Attributes:
      shift: standard deviations that are added to the logarithm of each cost: above 0, what is unsure is avoided.
      spread: the weight of a normal deviate for each part, in its standard deviations.
      risk: the chance to fail above which a part counts as failing.
      draw: the number of the draw that the deviates belong to.
      penalty: the cost of a part that fails.
      boredom: a factor for the costs of measured parts: above 1, new ones are preferred.
    """

    shift: float
    spread: float
    risk: float
    draw: int
    penalty: float
    boredom: float


class Beliefs(NamedTuple):
    """What all searches of a batch believe.

    Attributes:
      table: prices of parts; takes new predictions.
      model: predicts what is not measured.
      families: correct the predictions.
      key, features, near, told: room for `price`.
    """

    table: PriceTable
    model: ModelArrays
    families: FamilyArrays
    key: NDArray[np.uint64]
    features: NDArray[np.float64]
    near: NDArray[np.float64]
    told: NDArray[np.float64]


@compiled(runtime=False)
def price(
    key_of: Callable[..., Any], describe: Callable[..., Any], handle: int, place: int, beliefs: Beliefs, taste: Taste
) -> float:
    """Return count times cost of the part at a place; 0 if there is none."""
    count = key_of(handle, place, beliefs.key)
    if count == 0.0:
        return 0.0
    table, key = beliefs.table, beliefs.key[0]
    slot = find(table, key)
    cost, spread, risk, state = table.costs[slot], table.spreads[slot], table.risks[slot], table.states[slot]
    if state == EMPTY:
        describe(handle, place, beliefs.features)
        log = predict(beliefs.model, beliefs.features)
        correct(beliefs.families, beliefs.families.of[place], beliefs.features, beliefs.near, beliefs.told)
        cost, spread, risk = np.exp(log + beliefs.told[0]), beliefs.told[1] ** 0.5, beliefs.told[2]
        if 2 * table.filled[0] < len(table.keys):
            keep(table, slot, key, cost, spread, risk, PREDICTED)
    if risk > taste.risk:
        return count * taste.penalty
    if state in (KNOWN, PENDING):
        cost *= taste.boredom
    if spread > 0.0:
        deviate = 0.0 if state == PENDING else taste.spread * normal(key, np.uint64(taste.draw))
        cost *= np.exp(spread * (taste.shift + deviate))
    return count * cost
