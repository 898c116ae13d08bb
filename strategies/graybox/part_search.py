"""The search for candidates that are good by the estimated costs of their parts."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Parts, Space, Structure
from bbo_suite.parts.cursor import Cursor
from bbo_suite.parts.parts import concatenated
from bbo_suite.parts.table import TableDecomposition

from ..archive import Archive
from .options import GrayBoxOptions
from .part_costs import Acquisition, PartCosts, Posterior
from .pretraining import PartsOfOthers
from .virtual_search import WIDEST, Workspace, anneal, mark_pending, proposals

BATCH = 20
_WIDER, _WIDEST_DRAWS = 3.0, 27.0
"""Draws become so many times wider while searches find no new parts."""
_NEIGHBOURS = 40
"""Attempts to find a candidate that was not proposed before."""
_LEAST_READINGS = 3000
"""Also where decisions are few: an improvement may need several changes at once, and shorter searches miss it."""
_MOST_COPIES = 4000
_MOST_READINGS = 100_000
_LONG, _SHORT_READINGS = 5, 10_000
"""Where layouts are decided, how many searches of a batch are long after the first one, and how many parts the others
read. On fusion alone, short ones lost 5 % of the gain, so all are long there."""
PASSES, FIRST_PASSES = 20, 100
"""Moves of a long search that compile the whole program, as one takes as long as a hundred others. The other searches
of a batch start from the end of the first one, which makes more of them."""
_CAUTION = 2.0
_SAFE, _RISKY = 0.03, 0.3
_PENALTY = 10.0
_EXPLORERS, _EXPLOITATION_PENALTY = 3.0, 2.0
"""Where parts are apart, one candidate tries something new in all of them, and a failure of one hides no other: so many
times more candidates explore, and measured parts count as so many times dearer to them."""


class PartSearch:
    """Virtual searches from the best candidate so far.

    Args:
      space: of the candidates.
      default: the first candidate.
      structure: with a decomposition that has a cursor.
      options: see `GrayBoxOptions`.
      rng: draws everything.
    """

    def __init__(
        self, space: Space, default: NDArray, structure: Structure, options: GrayBoxOptions, rng: Generator
    ) -> None:
        assert structure.parts is not None
        self._parts = structure.parts
        self._apart = isinstance(structure.parts, TableDecomposition) and structure.parts.is_separable
        self._space, self._options, self._rng = space, options, rng
        self._best, self._cost = default.astype(np.int64), np.inf
        self._others = np.empty((0, len(default)), np.int64)
        self._draw, self._spread, self._archive = 0, 1.0, Archive(space, rng)
        self._own: Parts | None = None
        self._random, self._scale = rng.integers(2**63, size=1, dtype=np.uint64), np.zeros(3)
        self._cursor = self._followed()
        self._proposals = proposals(space, structure, self._cursor.whole)
        readings = min(options.sweeps * (self._proposals.sizes - 1).sum(), _MOST_READINGS)
        self._readings = max(_LEAST_READINGS, int(readings))
        self._part_costs = PartCosts(self._parts, families(self._cursor), options, rng)
        width, places = self._cursor.width, self._cursor.places
        self._new = np.empty(places, np.uint64), np.empty(places, np.int64), np.empty((places, width))
        self._workspace = self._new_workspace(places)

    def _followed(self) -> Cursor:
        cursor = self._parts.cursor(self._best)
        assert cursor is not None
        return cursor

    def _new_workspace(self, places: int) -> Workspace:
        columns, values, old = (np.zeros(WIDEST, np.int64) for _ in range(3))
        costs, old_costs = (np.zeros(places) for _ in range(2))
        config, best = self._best.copy(), self._best.copy()
        return Workspace(
            config, best, columns, values, old, costs, old_costs, np.zeros(places, np.int64), self._random, self._scale
        )

    def ask(self, n: int) -> NDArray:
        """Return at most 20 candidates: first the default, then the ends of searches.

        The first search of a batch avoids what is unsure, and starts with what is better in the last batch; some long
        ones start from its end. A short one starts from the end of a long one, and with what is better in another.
        """
        penalty = _PENALTY * self._cost if np.isfinite(self._cost) else 1.0
        posterior = self._part_costs.posterior(penalty)
        if np.isinf(self._cost):
            self._remember(posterior)
            return self._best[None].astype(self._space.dtype)
        n = min(n, BATCH)
        cautious = Acquisition(_CAUTION, 0.0, _SAFE, 0, penalty, 1.0)
        ends = [self._end(self._best, self._others, posterior, cautious, 1.0, FIRST_PASSES)]
        fresh = [self._fresh(ends[0], posterior)]
        explorers = round((_EXPLORERS if self._apart else 1.0) * self._options.explore * n)
        for place in range(1, n):
            ends.append(self._next_end(ends, posterior, self._acquisition(place >= n - explorers, penalty)))
            fresh.append(self._fresh(ends[-1], posterior))
        self._part_costs.grow(posterior)
        return np.array(fresh, self._space.dtype)

    def _acquisition(self, explores: bool, penalty: float) -> Acquisition:
        """Return what the next search of a batch prefers."""
        risk, exploitation_penalty = (1.0, _EXPLOITATION_PENALTY) if explores and self._apart else (_RISKY, 1.0)
        self._draw += 1
        spread = self._spread if self._options.draws else 0.0
        return Acquisition(-float(explores), spread, risk, self._draw, penalty, exploitation_penalty)

    def _next_end(
        self, ends: list[NDArray[np.int64]], posterior: Posterior, acquisition: Acquisition
    ) -> NDArray[np.int64]:
        """Return the end of a long search from a batch's first end, or of a short one from those of two long ones."""
        is_long = len(ends) <= _LONG or not self._cursor.whole
        share = 1.0 if is_long else min(1.0, _SHORT_READINGS / self._readings)
        start, others = ends[0], self._others[:0]
        if share < 1.0:
            one, other = 1 + self._rng.choice(_LONG, 2, replace=False)
            start, others = ends[one], ends[other][None]
        return self._end(start, others, posterior, acquisition, share, int(share * PASSES))

    def _copies(self, start: NDArray, others: NDArray, most: int) -> NDArray[np.int64]:
        """Return which parameters of which of `(k, d)` other candidates may improve a start, at most so many."""
        copies = np.argwhere(others != start)
        chosen = self._rng.permutation(len(copies))[:most]
        return np.ascontiguousarray(copies[chosen])

    def _end(
        self,
        start: NDArray,
        others: NDArray,
        posterior: Posterior,
        acquisition: Acquisition,
        share: float,
        passes: int,
    ) -> NDArray[np.int64]:
        """Return the end of a search; after one that draws but finds no new parts, the next draws are wider.

        Args:
          start, others: its start, and `(k, d)` candidates of which it takes what is better.
          share: how long it is, of the longest.
          passes: moves that compile the whole program, at most.
        """
        cursor, workspace, options = self._cursor, self._workspace, self._options
        copies = self._copies(start, others, int(share * _MOST_COPIES))
        anneal(
            *(cursor.change, cursor.key, cursor.describe, cursor.handle, start, others, copies),
            *(int(share * self._readings), passes, options.heat),
            *(self._proposals, posterior, acquisition, workspace),
        )
        new = self._remember(posterior)
        if acquisition.spread:
            self._spread = 1.0 if new else min(_WIDER * self._spread, _WIDEST_DRAWS)
        return workspace.best.copy()

    def _fresh(self, end: NDArray[np.int64], posterior: Posterior) -> NDArray[np.int64]:
        """Return the end of a search, or a neighbour if it was proposed before: the same again would tell nothing."""
        fresh = end
        for changes in range(_NEIGHBOURS + 1):
            if len(self._archive.claim(fresh[None], 1)) or changes == _NEIGHBOURS:
                break
            fresh = self._neighbour(end, 1 + changes // 10)
        if fresh is not end:
            self._workspace.best[:] = fresh
            self._remember(posterior)
        return fresh

    def _neighbour(self, config: NDArray[np.int64], changes: int) -> NDArray[np.int64]:
        """Return a candidate with some parameters drawn anew."""
        columns = self._rng.choice(self._proposals.movable, changes)
        drawn = config.copy()
        drawn[columns] = self._rng.integers(0, self._proposals.sizes[columns])
        return drawn

    def _remember(self, posterior: Posterior) -> int:
        """Remember the parts of the end of a search, which will be measured; return how many are new."""
        cursor, (keys, places, features) = self._cursor, self._new
        functions = cursor.change, cursor.key, cursor.describe, cursor.handle
        count = mark_pending(*functions, posterior, self._workspace, keys, places, features)
        self._part_costs.memory.remember(keys[:count], features[:count], posterior.families.of[places[:count]])
        return count

    def tell(self, configs: NDArray, values: NDArray[np.float64], parts: Parts) -> None:
        """Learn the costs of `(k, d)` candidates and of their parts, and continue from the one that seems best."""
        self._part_costs.learn(parts)
        self._others = configs.astype(np.int64)
        everything = parts if self._own is None else concatenated([parts, self._own])
        totals = self._part_costs.totals(everything)
        totals[: len(values)][np.isinf(values)] = np.inf
        i = int(totals.argmin())
        self._cost = float(totals[i])
        if i < len(configs):
            self._best, self._own = self._others[i], parts.of_candidate(i)

    def learn_before(self, others: PartsOfOthers) -> None:
        """Learn from the parts of other programs, before the first measurement."""
        self._part_costs.learn_before(others)

    def measured(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the `(m, f)` features and `(m,)` log costs of the parts that were measured and work."""
        return self._part_costs.measured()

    def diagnostics(self) -> dict[str, float]:
        """Return the scores of the models and the number of parts that were measured."""
        return self._part_costs.diagnostics()


def families(cursor: Cursor) -> NDArray[np.int64]:
    """Return the `(p,)` families of places: places with equal parts under the default are alike."""
    keys, counts, _ = cursor.parts()
    alone = np.arange(cursor.places, dtype=np.uint64)
    return np.unique(np.where(counts != 0, keys, alone), return_inverse=True)[1].reshape(-1)
