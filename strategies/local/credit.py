"""Which operator is worth its evaluations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

_LEAST, _MEMORY = 0.05, 0.8


class Credit:
    """Probability matching (Fialho et al. 2010, Analyzing bandit-based adaptive operator selection mechanisms).

    Each operator comes with a probability that grows with what it gained per evaluation lately, and that never falls
    below a twentieth. Each comes once before any comes again.
    """

    def __init__(self, operators: Sequence[str]) -> None:
        self._operators = list(operators)
        self._gain, self._spent = np.zeros(len(operators)), np.zeros(len(operators))

    def choose(self, rng: Generator) -> str:
        """Return an operator."""
        if (self._spent == 0).any():
            return self._operators[int(np.argmin(self._spent != 0))]
        rates = self._gain / self._spent
        k, total = len(rates), rates.sum()
        chances = _LEAST + (1 - _LEAST * k) * (rates / total if total > 0 else np.full(k, 1 / k))
        return self._operators[int(rng.choice(k, p=chances / chances.sum()))]

    def learn(self, operator: str, gain: float, spent: int) -> None:
        """Count a relative gain for so many evaluations; what was before counts a fifth less."""
        i = self._operators.index(operator)
        self._gain[i] = _MEMORY * self._gain[i] + gain
        self._spent[i] = _MEMORY * self._spent[i] + max(1, spent)
