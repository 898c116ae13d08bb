"""Operator selection by what each operator gained per evaluation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from ..adaptive_moves import OperatorCredit, probability_matching, proportions

_LEAST, _MEMORY = 0.05, 0.8


class OperatorSelection:
    """Probability matching (Fialho et al. 2010, Analyzing bandit-based adaptive operator selection mechanisms).

    The probability of an operator grows with its recent gain per evaluation and never falls below a twentieth. Each
    operator is chosen once before any is chosen again.
    """

    def __init__(self, operators: Sequence[str]) -> None:
        self._operators = list(operators)
        self._credit = OperatorCredit(len(operators))

    def choose(self, rng: Generator) -> str:
        """Return an operator."""
        gains, spent = self._credit.gains, self._credit.trials
        if (spent == 0).any():
            return self._operators[int(np.argmin(spent != 0))]
        chances = probability_matching(proportions(gains / spent), _LEAST)
        return self._operators[int(rng.choice(len(chances), p=chances / chances.sum()))]

    def learn(self, operator: str, gain: float, spent: int) -> None:
        """Add a relative gain and the evaluations that it took; earlier ones then count a fifth less."""
        self._credit.learn(self._operators.index(operator), gain, max(1, spent), _MEMORY)
