"""How changes are chosen, given what the models predict."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_strategies.mbo.arms import Arms
from bbo_strategies.mbo.neighbours import ModelNeighbours
from bbo_suite import Moves

Floats = NDArray[np.float64]
_POOL = 4
"""A change is chosen by leaves among this many times as many as are wanted."""
_SINGLES, _LAST, _LIKELY = 4_000, 0.9, 0.5
"""Single changes that are looked at in the last part of the budget, where that begins, and how likely each runs."""


class HitArms(Arms):
    """Shares by the number of improving candidates instead of their gains."""

    def credit(self, makers: list[str], gains: Floats) -> None:
        """Credit each gain alike."""
        super().credit(makers, (gains > 0).astype(np.float64))


class Diverse(ModelNeighbours):
    """Takes a change by its acquisition, in standard deviations, less its largest share of leaves with one taken."""

    def _chosen(self, state: NDArray, n: int) -> NDArray:
        """Return up to `n` changes: the most different of more; those that are left may be proposed again."""
        claim = self._random.claim_rows
        self._random.claim_rows = lambda visited, _: np.arange(min(len(visited), _POOL * n))
        pool = super()._chosen(state, n)
        self._random.claim_rows = claim
        forest = self._ensemble.members.get("forest")
        if len(pool) > n and forest is not None:
            features = np.ascontiguousarray(self._features.of(state, pool), np.float32)
            leaves = np.stack([tree.apply(features) for tree in forest.trees], axis=1)
            value = -self._ensemble.predict(features).mean(axis=0)
            pool = pool[_spread(value / (value.std() or 1.0), leaves)]
        return pool[claim(pool, n)]


def _spread(value: Floats, leaves: NDArray) -> list[int]:
    """Return the order in which `(m,)` values are taken, given `(m, trees)` leaves."""
    taken, shared = list[int](), np.zeros(len(value))
    while len(taken) < len(value):
        taken.append(int(np.argmax(np.where(np.isin(np.arange(len(value)), taken), -np.inf, value - shared))))
        shared = np.maximum(shared, (leaves == leaves[taken[-1]]).mean(axis=1))
    return taken


class LastSingles(ModelNeighbours):
    """Proposes nothing but single changes of the state in the last tenth of the budget, best first."""

    def draw(self, state: NDArray, n: int) -> NDArray:
        """Return as usual, or the best of up to `_SINGLES` single changes by the models."""
        if self._arms.progress < _LAST or not self._ensemble.members:
            return super().draw(state, n)
        copies, ones = np.repeat(state[None], _SINGLES, axis=0), np.ones(_SINGLES, np.int64)
        singles = np.unique(Moves(self._space).mutate(copies, ones, self._rng), axis=0)
        singles = singles[(singles != state).any(axis=1) & (self.chances(state, singles) > _LIKELY)]
        order = np.argsort(self._ensemble.predict(self._features.of(state, singles)).mean(axis=0), kind="stable")
        chosen = singles[order[self._random.claim_rows(singles[order], n)]]
        others = self._random.draw(state, n - len(chosen))
        self._makers = ["model"] * len(chosen) + ["changes"] * len(others)
        return np.concatenate([chosen, others])
