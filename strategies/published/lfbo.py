"""A classifier of good candidates that chooses among the neighbours of several incumbents: Helion's search."""

from __future__ import annotations

import functools
from collections.abc import Generator as Search
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Kind, Task, option

from ..changes import SingleChanges
from .model_search import Surrogate
from .planned import Measured, Stepwise, best_of

_RADIUS = 2
_LEAST_GAIN = 0.001
_TINY, _TIE = 1e-5, 1e-9


@dataclass(frozen=True)
class LfboOptions:
    """Options of `published:lfbo`."""

    population: int = option(100, "candidates of the first plan, the default and random ones (its code)", low=2)
    copies: int = option(5, "incumbents whose neighbours are tried (its code)", low=1, high=1000)
    generations: int = option(20, "most generations of neighbours (its code)", low=0, high=10_000)
    neighbours: int = option(200, "neighbours of an incumbent among which the forest chooses (its code)", low=1)
    selected: float = option(0.1, "share of them that is measured (its code)", low=0, high=1)
    best: float = option(0.1, "share of measured candidates that count as good (its code)", low=0, high=1)
    patience: int = option(1, "generations without a gain that an incumbent survives (its code)", low=0, high=1000)
    similarity: float = option(1.0, "penalty for leaves shared with chosen ones (its code)", low=0, high=100)
    descent: int = option(10, "most rounds of the last descent over single changes (its code)", low=0, high=10_000)


class GoodForest(Surrogate):
    """A random forest that predicts how probably a candidate belongs to the best; 100 trees, log loss, as in Helion.

    The walks end at the numbers of nodes, because two candidates that share leaves are alike.
    """

    growth: ClassVar[float] = 0.0
    _chances: NDArray[np.float64]

    def _fit(self, x: NDArray[np.float32], y: NDArray[np.float64]) -> None:
        from sklearn.ensemble import RandomForestClassifier

        good, seed = y > 0, int(self._rng.integers(2**31))
        self._trees = None
        if not good.all():
            model = RandomForestClassifier(criterion="log_loss", random_state=seed)
            model.fit(x, good, sample_weight=np.where(good, y, 1.0))
            self._grow(model.estimators_)
            assert self._trees is not None
            self._chances = 1 - self._trees.value  # which is a share of bad candidates
            self._trees = self._trees._replace(value=np.arange(len(self._chances), dtype=np.float64))

    def scores(self, leaves: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the `(n,)` probabilities of candidates that reach `(t, n)` leaves."""
        return self._chances[leaves.astype(np.int64)].mean(axis=0)

    def path(self, tree: int, config: NDArray) -> list[int]:
        """Return the parameters that a tree compares on the way of a `(d,)` candidate, each once."""
        trees, columns = self._trees, {}
        assert trees is not None
        node = trees.roots[tree]
        while (column := int(trees.feature[node])) >= 0:
            columns[column] = True
            node = (trees.left if config[column] <= trees.threshold[node] else trees.right)[node]
        return list(columns)

    def chances(self, configs: NDArray, trees: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the `(n,)` probabilities of candidates, each by a tree of its own."""
        return self._chances[self.leaf_of(configs, trees).astype(np.int64)]


def excess(costs: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """Return by how much `(n,)` costs are below a quantile, with a mean of 1 among the good ones; 0 for the others."""
    limit = float(np.quantile(costs[np.isfinite(costs)], share))
    with np.errstate(invalid="ignore"):
        gains = np.where(costs <= limit, np.maximum(limit - costs, _TINY * (abs(limit) or 1.0)), 0.0)
    return gains / gains[gains > 0].mean()


class Lfbo(Stepwise):
    """A classifier of good candidates among the neighbours of incumbents, in the style of Helion (PyTorch, 2026).

    Reproduced, from `surrogate_pattern_search.py` of its repository and its pull requests 1521, 3518 and 3524, after
    likelihood-free Bayesian optimization (Song et al. 2022): the default and random candidates come first; a random
    forest learns, after each generation and from all candidates, which are the best tenth, weighted by how much better
    they are, and failures count as bad; in each generation the neighbours of five incumbents are scored, and a tenth of
    them is measured, chosen one by one with a penalty for common leaves; a neighbour sets, one after another, the
    parameters that a random tree compares on the incumbent's way to what this tree likes best, at most two steps away;
    in the first generation neighbours are random. An incumbent without a gain of a thousandth in two generations is
    given up. When all are, a descent over all single changes follows. Then the search ends.

    Different here: trees see the indices of parameters, where Helion sees choices one by one; random neighbours have
    one to three changes, where Helion also changes a block size and the number of warps; constraints are kept; where
    trees lead nowhere, as in permutations, neighbours are random.

    Not reproduced: its kernels, pairs of block sizes in the descent, and that it measures good candidates again.
    """

    Options: ClassVar[type] = LfboOptions
    options: LfboOptions

    def __init__(self, task: Task, budget: int, rng: Generator, options: LfboOptions) -> None:
        super().__init__(task, budget, rng, options)
        self._changes = SingleChanges(task.space)
        self._forest = GoodForest(task.space, functools.partial(excess, share=options.best), rng)

    def begin(self) -> NDArray:
        """Return the rest of the first plan."""
        return self.task.space.sample(self.options.population - 1, self.rng)

    def remember(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Fit the forest to all candidates so far."""
        self._forest.learn(configs, values)

    def steps(self, rows: NDArray, costs: NDArray[np.float64]) -> Search[NDArray, Measured, None]:
        """Try neighbours of the best candidates, then descend from the best of all."""
        while not np.isfinite(costs).any():
            if not len(more := self.random(self.options.population)):
                return
            rows, costs = yield more
        first = np.argsort(costs, kind="stable")[: min(self.options.copies, int(np.isfinite(costs).sum()))]
        states = [(rows[[i]], costs[[i]]) for i in first]
        patience = np.full(len(states), self.options.patience)
        for generation in range(self.options.generations):
            live = np.flatnonzero(patience >= 0).tolist()
            picks = {i: found for i in live if len(found := self._picks(states[i][0][0], generation > 0))}
            if not picks:
                break
            rows, costs = yield np.concatenate(list(picks.values()))
            ends = np.cumsum([len(found) for found in picks.values()])[:-1]
            for i, configs, values in zip(picks, np.split(rows, ends), np.split(costs, ends), strict=True):
                before, states[i] = states[i], best_of(states[i], (configs, values))
                patience[i] -= not _gains(before, states[i])
        yield from self._descent(min(states, key=lambda state: float(state[1][0])))

    def _descent(self, state: Measured) -> Search[NDArray, Measured, None]:
        """Measure all single changes of a candidate and move to the best of them, until none gains."""
        for _ in range(self.options.descent):
            row, scales = state[0][0], self.task.space.kinds == Kind.SCALE
            rows = self._changes.of(row, self.moves.movable)
            steps = np.abs(rows[:, scales].astype(np.int64) - row[scales])
            if not len(rows := self.new(rows[(steps <= 1).all(axis=1)])):
                break
            before, state = state, best_of(state, (yield rows))
            if not _gains(before, state):
                break

    def _picks(self, row: NDArray, guided: bool) -> NDArray:
        """Return the neighbours of a `(d,)` incumbent that are measured."""
        rows = self._fresh(self._guided(row)) if guided and self._forest.is_fitted else row[None][:0]
        if not len(rows):
            counts = self.rng.integers(1, _RADIUS + 2, self.options.neighbours)
            rows = self._fresh(self.moves.mutate(np.repeat(row[None], len(counts), axis=0), counts, self.rng))
        return self.new(rows[self._chosen(rows)])

    def _fresh(self, rows: NDArray) -> NDArray:
        return rows[self.archive.fresh(self.archive.digests(rows))]

    def _guided(self, row: NDArray) -> NDArray:
        """Return neighbours that random trees like."""
        paths = [self._forest.path(tree, row) for tree in range(self._forest.size)]
        columns = np.full((len(paths), max(map(len, paths))), -1)
        for tree, path in enumerate(paths):
            columns[tree, : len(path)] = path
        trees = self.rng.integers(0, len(paths), self.options.neighbours)
        rows = np.repeat(row[None], len(trees), axis=0)
        for step in columns.T:
            places = np.flatnonzero(step[trees] >= 0)
            rows[places] = self._liked(rows[places], step[trees[places]], trees[places])
        return rows

    def _liked(self, rows: NDArray, columns: NDArray[np.int64], trees: NDArray[np.int64]) -> NDArray:
        """Set parameter `columns[k]` of each row to a near value that tree `trees[k]` likes best."""
        k, children = self._near(rows, columns)
        chances = self._forest.chances(children, trees[k]) + _TIE * self.rng.random(len(k))
        order = np.lexsort((chances, k))
        return children[order[np.flatnonzero(np.diff(k[order], append=-1))]]

    def _near(self, rows: NDArray, columns: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray]:
        """Return all near values of parameter `columns[k]` of each row: the k, and the allowed `(n, d)` candidates."""
        space = self.task.space
        scales, sizes = space.kinds[columns] == Kind.SCALE, space.sizes[columns]
        counts = np.where(scales, 2 * _RADIUS + 1, sizes)
        k = np.repeat(np.arange(len(rows)), counts)
        offsets = np.arange(len(k)) - np.repeat(np.cumsum(counts) - counts, counts)
        values = offsets + np.where(scales, rows[np.arange(len(rows)), columns].astype(np.int64) - _RADIUS, 0)[k]
        inside = (values >= 0) & (values < sizes[k])
        k, values = k[inside], values[inside]
        children = rows[k]
        children[np.arange(len(k)), columns[k]] = values
        allowed = space.allowed(children)
        return k[allowed], children[allowed]

    def _chosen(self, rows: NDArray) -> NDArray[np.int64]:
        """Return the places of the rows that are measured: the likely good ones that share few leaves."""
        count = min(len(rows), max(1, int(self.options.selected * len(rows))))
        if not self._forest.is_fitted:
            return self.rng.permutation(len(rows))[:count]
        leaves = self._forest.leaves(rows)
        chances, shared, chosen = self._forest.scores(leaves), np.zeros(len(rows)), np.empty(0, np.int64)
        for _ in range(count):
            scores = chances - self.options.similarity * shared / max(1, len(chosen))
            scores[chosen] = -np.inf
            chosen = np.append(chosen, np.argmax(scores))
            shared += (leaves == leaves[:, chosen[-1:]]).mean(axis=0)
        return chosen


def _gains(before: Measured, after: Measured) -> bool:
    """Return true if a state costs at least a thousandth less than before."""
    return bool(before[1][0] - after[1][0] >= _LEAST_GAIN * abs(before[1][0]) and after is not before)
