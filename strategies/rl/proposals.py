"""Proposals: the changes of one state among which the policy chooses, and which of them are new."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from .parameter_values import ParameterValues


class Proposals(NamedTuple):
    """The k proposals of one batch, as the e values that they set.

    Attributes:
      proposal: `(e,)` the proposal that sets a value.
      new, old: `(e,)` places of the value that is set and of the one that it replaces, see `ParameterValues`.
      facts: `(k, FACTS)` the operator of each proposal (one-hot), and the logarithm of how many values it sets.
      open: `(k,)` true if the proposal may be chosen.
    """

    proposal: NDArray[np.int64]
    new: NDArray[np.int64]
    old: NDArray[np.int64]
    facts: NDArray[np.float32]
    open: NDArray[np.bool_]

    def scores(self, preferences: NDArray, weights: NDArray, bound: float) -> NDArray[np.float64]:
        """Return `(k,)` scores within a bound, given the `(c,)` preferences for values and the weights of the facts.

        The score is the sum of the preferences for new values over old ones, divided by the square root of their
        number: with plain sums long changes would always be the best and the worst.
        """
        k = len(self.open)
        total = np.bincount(self.proposal, preferences[self.new] - preferences[self.old], k)
        length = np.bincount(self.proposal, minlength=k)
        return bound * np.tanh((total / np.sqrt(np.maximum(length, 1)) + self.facts @ weights) / bound)


def proposals_of(
    configs: NDArray, state: NDArray, operators: NDArray[np.int64], is_open: NDArray, values: ParameterValues
) -> Proposals:
    """Return `(k, d)` changes of a state, made by `(k,)` operators, as proposals."""
    proposal, columns = np.nonzero(configs != state)
    new = values.places(columns, configs[proposal, columns])
    lengths = np.bincount(proposal, minlength=len(configs))
    facts = np.column_stack([np.eye(3)[operators], np.log1p(lengths)]).astype(np.float32)
    return Proposals(proposal, new, values.places(columns, state[columns]), facts, is_open)


def draw(logs: NDArray[np.float64], n: int, rng: Generator) -> NDArray[np.int64]:
    """Draw `n` without replacement, by Gumbel top-k (Kool et al. 2019, "Stochastic beams and where to find them")."""
    keys = logs + rng.gumbel(size=len(logs))
    return np.argsort(-keys, kind="stable")[:n]


def log_softmax(scores: NDArray[np.float64], is_open: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the `(k,)` log-probabilities; -inf for what is not open."""
    masked = np.where(is_open, scores, -np.inf)
    masked = masked - masked.max()
    return masked - np.log(np.exp(masked).sum())


class VisitedSet:
    """The candidates that were proposed, as 64-bit Zobrist keys (Zobrist 1970, with sums instead of exclusive or).

    A key is a sum of random numbers, so the time to hash a change of a state grows with the number of changed
    parameters.
    """

    def __init__(self, d: int, rng: Generator) -> None:
        self._numbers = rng.integers(0, 1 << 64, d, dtype=np.uint64)
        self._known: set[int] = set()

    def keys(self, configs: NDArray, state: NDArray) -> NDArray[np.uint64]:
        """Return `(k,)` keys of changes of a state."""
        rows, columns = np.nonzero(configs != state)
        change = configs[rows, columns].astype(np.int64) - state[columns]
        keys = np.full(len(configs), (state.astype(np.uint64) * self._numbers).sum())
        np.add.at(keys, rows, change.astype(np.uint64) * self._numbers[columns])
        return keys

    def new(self, keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Return `(k,)` booleans: true for keys that were not added before, each key once."""
        first = np.zeros(len(keys), bool)
        first[np.unique(keys, return_index=True)[1]] = True
        return first & np.array([key not in self._known for key in keys.tolist()])

    def add(self, keys: NDArray[np.uint64]) -> None:
        """Add keys to the set."""
        self._known.update(keys.tolist())
