"""A Gaussian process of what compiling tells, which chooses the candidates that are measured: CITROEN's search."""

from __future__ import annotations

import warnings
from collections.abc import Generator as Search
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Level, Task, option

from ..mbo.whole import expected_improvement, targets
from ..regressors import best_and_last, one_thread
from .planned import Measured, Stepwise, lacking

_ROWS = 500
"""The best and the last candidates that the process learns from."""
_GROWTH = 1.3
_SHARE_OF_CHANGED = 0.8
_PARENTS = 5
_MOST_CHANGES = 4


@dataclass(frozen=True)
class CitroenOptions:
    """Options of `published:citroen`."""

    start: int = option(10, "random candidates that are measured first, after the default (ours)", low=1)
    pool: int = option(40, "candidates that are compiled before some of them are measured (ours)", low=1)
    plan: int = option(5, "candidates of a pool that are measured (ours)", low=1)


class Process:
    """A Gaussian process of costs over statistics: logarithms, scaled by their spread, with a Matern covariance."""

    def __init__(self) -> None:
        self._known, self._costs, self._due = np.empty((0, 0)), np.empty(0), 0.0
        self._kernel: Any = None

    def learn(self, statistics: NDArray[np.float64], costs: NDArray[np.float64]) -> None:
        """Add `(n, k)` statistics and `(n,)` costs."""
        new = np.log1p(np.maximum(statistics, 0))
        self._known = np.concatenate([self._known, new]) if len(self._known) else new
        self._costs = np.append(self._costs, costs)
        if len(self._costs) > _ROWS:
            kept = best_and_last(self._costs, _ROWS)
            self._known, self._costs = self._known[kept], self._costs[kept]

    def fit(self) -> bool:
        """Fit the process, its lengths only when a third more is known; return whether anything can be predicted."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

        y, spread = targets(self._costs), self._known.std(axis=0) if len(self._known) else np.empty(0)
        self._varies, self._mean = spread > 0, self._known.mean(axis=0)
        if not self._varies.any() or not y.any():
            return False
        self._spread = spread
        fresh = self._kernel is None or len(y) >= self._due
        start = ConstantKernel(1.0) * Matern(3.0, (0.1, 100.0), nu=2.5) + WhiteKernel(0.1, (1e-5, 10.0))
        model = GaussianProcessRegressor(start if fresh else self._kernel, optimizer="fmin_l_bfgs_b" if fresh else None)
        with one_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a length at its bound predicts as well
            self._model = model.fit(self._scaled(self._known), y)
        if fresh:
            self._kernel, self._due = self._model.kernel_, _GROWTH * len(y)
        self._best = float(y.min())
        return True

    def improvement(self, statistics: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the `(n,)` expected improvements of `(n, k)` statistics."""
        with one_thread():
            means, spread = self._model.predict(self._scaled(np.log1p(np.maximum(statistics, 0))), return_std=True)
        return expected_improvement(self._best - means, spread)

    def _scaled(self, known: NDArray[np.float64]) -> NDArray[np.float64]:
        varies = self._varies
        return (known[:, varies] - self._mean[varies]) / self._spread[varies] / np.sqrt(varies.sum())


class Citroen(Stepwise):
    """Bayesian optimization on what compiling tells, in the style of CITROEN (Zhao, Xia and Wang, IPDPS 2025).

    Reproduced, from the abstract: many candidates are compiled and few are measured; a Gaussian process predicts costs,
    with an uncertainty, from statistics of the compilation instead of the parameters; candidates that should not pay
    are not measured.

    Different here: the statistics are what the problem's compiler tells, such as kinds of instructions and sizes of
    functions, where CITROEN counts what each pass of LLVM did; the paper's settings were not at hand, so all are ours;
    candidates are changes of the five best ones and random ones; a candidate whose statistics equal those of one that
    was measured is measured last.

    Not reproduced: how it divides measurements among source files.
    """

    Options: ClassVar[type] = CitroenOptions
    level: ClassVar[Level] = Level.COMPILATION
    options: CitroenOptions

    def __init__(self, task: Task, budget: int, rng: Generator, options: CitroenOptions) -> None:
        if task.compiler is None:
            raise lacking(task, "citroen learns from what compiling tells", "what compiling tells")
        self._compiler, self._process = task.compiler, Process()
        self._seen, self._told = set[bytes](), dict[str, NDArray[np.float64]]()
        super().__init__(task, budget, rng, options)

    def begin(self) -> NDArray:
        """Return the random candidates of the start."""
        return self.task.space.sample(self.options.start, self.rng)

    def observe(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Learn from another strategy's candidates, too."""
        super().observe(configs, values)
        self._learn(configs, values)

    def steps(self, rows: NDArray, costs: NDArray[np.float64]) -> Search[NDArray, Measured, None]:
        """Compile a pool, measure what the process expects most of, and learn from it."""
        known, values = rows, costs
        while True:
            self._learn(rows, costs)
            best = np.argsort(values, kind="stable")[:_PARENTS]
            if not len(chosen := self._chosen(known[best])):
                return
            rows, costs = yield chosen
            known, values = np.concatenate([known[best], rows]), np.append(values[best], costs)

    def _learn(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        told = self._statistics(configs)
        works = np.isfinite(told).all(axis=1)
        self._seen.update(row.tobytes() for row in told[works])
        self._process.learn(told[works], values[works])

    def _statistics(self, configs: NDArray) -> NDArray[np.float64]:
        """Return the `(n, k)` statistics of candidates; those of the last pool are remembered."""
        digests = self.archive.digests(configs)
        missing = [i for i, digest in enumerate(digests) if digest not in self._told]
        told = (
            dict(zip([digests[i] for i in missing], self._compiler(configs[missing]), strict=True)) if missing else {}
        )
        self._told |= told
        return np.array([self._told[digest] for digest in digests]).reshape(len(configs), -1)

    def _chosen(self, parents: NDArray) -> NDArray:
        """Return what is measured next of a pool of new candidates."""
        pool = self._pool(parents)
        if not len(pool):
            return self.random(self.options.plan)
        self._told.clear()
        told = self._statistics(pool)
        works = np.isfinite(told).all(axis=1)
        scores = np.full(len(pool), -np.inf)
        if works.any() and self._process.fit():
            scores[works] = self._process.improvement(told[works])
        last = np.array([row.tobytes() in self._seen for row in told]) | ~works
        order = np.lexsort((-scores, last))
        return self.new(pool[order], self.options.plan)

    def _pool(self, parents: NDArray) -> NDArray:
        """Return different candidates that were never proposed: changes of the best, and random ones."""
        count = round(_SHARE_OF_CHANGED * self.options.pool)
        chosen = parents[self.rng.integers(0, len(parents), count)]
        changed = self.moves.mutate(chosen, self.rng.integers(1, _MOST_CHANGES + 1, count), self.rng)
        pool = np.concatenate([changed, self.task.space.sample(self.options.pool - count, self.rng)])
        pool = pool[self.task.space.allowed(pool)]
        return pool[self.archive.fresh(self.archive.digests(pool))]
