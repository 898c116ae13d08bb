"""Proposals: changes of one state among which the policy chooses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from .values import Values


class Proposals(NamedTuple):
    """Proposals of one batch, by the values that they set.

    Attributes:
      proposal: `(e,)` number of the proposal that sets a value.
      new, old: `(e,)` places of the value that is set and of the one that it replaces, see `Values`.
      facts: `(k, FACTS)`: its kind, and the logarithm of how many values it sets.
      open: `(k,)` may it be chosen?
    """

    proposal: NDArray[np.int64]
    new: NDArray[np.int64]
    old: NDArray[np.int64]
    facts: NDArray[np.float32]
    open: NDArray[np.bool_]

    def scores(self, worth: NDArray, weights: NDArray, bound: float) -> NDArray[np.float64]:
        """Return `(k,)` scores within a bound, given the `(c,)` worths of all values and the weights of the facts.

        What the new values are worth more than the old ones, in sum, over the square root of how many they are: sums
        would make long changes the best and the worst ones whatever the policy says.
        """
        k = len(self.open)
        total = np.bincount(self.proposal, worth[self.new] - worth[self.old], k)
        length = np.bincount(self.proposal, minlength=k)
        return bound * np.tanh((total / np.sqrt(np.maximum(length, 1)) + self.facts @ weights) / bound)


def compared(configs: NDArray, state: NDArray, kinds: NDArray[np.int64], is_open: NDArray, values: Values) -> Proposals:
    """Return `(k, d)` changes of a state as proposals."""
    proposal, columns = np.nonzero(configs != state)
    new = values.places(columns, configs[proposal, columns])
    lengths = np.bincount(proposal, minlength=len(configs))
    facts = np.column_stack([np.eye(3)[kinds], np.log1p(lengths)]).astype(np.float32)
    return Proposals(proposal, new, values.places(columns, state[columns]), facts, is_open)


def draw(logs: NDArray[np.float64], n: int, rng: Generator) -> NDArray[np.int64]:
    """Draw `n` without replacement, by Gumbel top-k (Kool et al. 2019, "Stochastic beams and where to find them")."""
    keys = logs + rng.gumbel(size=len(logs))
    return np.argsort(-keys, kind="stable")[:n]


def log_softmax(scores: NDArray[np.float64], is_open: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return log-probabilities; what is not open has none."""
    masked = np.where(is_open, scores, -np.inf)
    masked = masked - masked.max()
    return masked - np.log(np.exp(masked).sum())
