"""Which changes to make of a candidate: of one parameter or of a run of them, as often as each pays."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Moves

_LONGEST, _TAIL = 50, 1.5
_LEAST, _MOST = 0.05, 0.8
_REMEMBERED = 500


class Changes:
    """Single changes, and runs: parameters that follow one another take one value.

    Neighbours in a problem's list of parameters tend to be neighbours in the program, and what pays is often to decide
    a stretch of it alike. A run is 2 to 50 parameters long, by a power law as in Doerr et al. 2017 ("Fast genetic
    algorithms"). The share of runs follows their success, by probability matching (Thierens 2005, "An adaptive pursuit
    strategy", section 2): in proportion to how often, lately, each kind was better than what it was a change of.
    """

    def __init__(self, moves: Moves, rng: Generator) -> None:
        self._moves, self._rng = moves, rng
        chances = np.arange(2, _LONGEST + 1) ** -_TAIL
        self._chances = np.cumsum(chances / chances.sum())
        self._better, self._tried = np.ones(2), np.full(2, 2.0)  # of single changes, of runs

    @property
    def share(self) -> float:
        """The share of runs among the next changes."""
        rates = self._better / self._tried
        return float(np.clip(rates[1] / rates.sum(), _LEAST, _MOST))

    def change(self, configs: NDArray, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Change in place, for each k, row `rows[k]` at or from movable parameter `columns[k]`; return which as runs."""
        runs = self._rng.random(len(rows)) < self.share
        self._moves.change(configs, rows, columns, self._rng)
        lengths = 2 + np.searchsorted(self._chances[:-1], self._rng.random(int(runs.sum())))
        self._moves.spread(configs, rows[runs], columns[runs], lengths)
        return runs

    def learn(self, runs: NDArray[np.bool_], better: NDArray[np.bool_]) -> None:
        """Take in `(k,)` changes: which were runs, and which cost less than what they were a change of."""
        self._tried += np.bincount(runs, minlength=2)
        self._better += np.bincount(runs[better], minlength=2)
        if self._tried.sum() > _REMEMBERED:
            self._better, self._tried = self._better * 0.95, self._tried * 0.95
