"""Random numbers of compiled code, from a state of 64 bits (SplitMix64, Steele et al. 2014)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

compiled = compiled_for(__file__)


@compiled(runtime=False)
def uniform(state: NDArray[np.uint64]) -> float:
    """Return a number from 0 to less than 1, and advance the `(1,)` state."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    return np.float64(_scrambled(state[0]) >> np.uint64(11)) * 2.0**-53


@compiled(runtime=False)
def below(n: int, state: NDArray[np.uint64]) -> int:
    """Return an integer from 0 to less than n, and advance the state."""
    return int(uniform(state) * n)


@compiled(runtime=False)
def normal(key: np.uint64, draw: np.uint64) -> float:
    """Return a nearly normal deviate that depends on a key and on the number of a draw: the sum of four uniforms."""
    bits = _scrambled(key ^ _scrambled(draw))
    total = 0.0
    for quarter in range(4):
        total += np.float64((bits >> np.uint64(16 * quarter)) & np.uint64(0xFFFF))
    return (total / 65535.0 - 2.0) * 3.0**0.5


@compiled(runtime=False)
def _scrambled(number: np.uint64) -> np.uint64:
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))
