"""Search where each cost belongs to one parameter or to two: parameters that may not differ are moved together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Space, Structure, Task

from .descent import Costs
from .iterated_search import IteratedSearch
from .options import LocalOptions
from .ties import Ties

_SHARE = 20
"""One evaluation in so many is for the ties."""


class TiedSearch:
    """Learns which parameters are tied, then searches with one parameter for each group of tied ones.

    The first twentieth of the budget is for the ties (see `Ties`), the rest for iterated search on the groups.
    """

    def __init__(self, task: Task, budget: int, rng: Generator, options: LocalOptions) -> None:
        self._task, self._budget, self._rng, self._options = task, budget, rng, options
        self._ties = Ties(task, budget // (2 * _SHARE), rng)
        self._rows = np.concatenate([task.default[None], self._ties.trials]).astype(task.space.dtype)
        self._costs = np.empty(0)
        self._search: IteratedSearch | None = None

    def ask(self, n: int) -> NDArray:
        """Return at most `n` candidates: first trials of ties, then those of the groups."""
        if len(self._costs) < len(self._rows):
            return self._rows[len(self._costs) : len(self._costs) + n]
        if self._search is None:
            self._search = self._begin(self._ties.groups(self._costs[1:]))
        rows = self._search.ask(n)
        if not len(rows) and len(self._firsts) < len(self._labels):  # the groups have no candidate left
            self._search = self._begin(np.arange(len(self._labels)))
            rows = self._search.ask(n)
        return rows[:, self._labels].astype(self._task.space.dtype)

    def _begin(self, labels: NDArray[np.int64]) -> IteratedSearch:
        """Return the search with one parameter for each group."""
        self._labels = labels
        self._firsts = np.unique(self._labels, return_index=True)[1]
        left = max(1, self._budget - len(self._costs))
        return IteratedSearch(_joined(self._task, labels, self._firsts), left, self._rng, self._options)

    def tell(self, configs: NDArray, values: Costs) -> None:
        """Learn the costs of candidates."""
        if self._search is None:
            self._costs = np.append(self._costs, values)
        else:
            self._search.tell(configs[:, self._firsts], values)

    def observe(self, configs: NDArray, values: Costs) -> None:
        """Learn of another strategy's candidates if groups can express them."""
        if self._search is not None:
            grouped = configs[:, self._firsts]
            same = (grouped[:, self._labels] == configs).all(axis=1)
            self._search.observe(grouped, np.where(same, values, np.inf))


def _joined(task: Task, labels: NDArray[np.int64], firsts: NDArray[np.int64]) -> Task:
    """Return a task with one parameter for each group; its features are the sums of those of its members."""
    declared = task.structure
    assert declared
    rows = np.repeat(np.arange(len(labels)), np.diff(declared.starts))
    pairs = np.unique(np.column_stack([labels[rows], labels[declared.neighbours]]), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    features = np.zeros((len(firsts), declared.features.shape[1]), np.float32)
    np.add.at(features, labels, declared.features)
    starts = np.searchsorted(pairs[:, 0], np.arange(len(firsts) + 1))
    structure = Structure(starts, pairs[:, 1].astype(np.int32), features, declared.feature_names)
    space = Space(task.space.sizes[firsts])
    return replace(task, space=space, default=task.default[firsts].astype(space.dtype), structure=structure)
