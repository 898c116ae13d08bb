"""The programs of a fleet and what happens to them from day to day. Nothing here depends on what is tuned."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from .library import Groups, KernelLibrary
from .settings import FleetSettings


class Population:
    """P programs with m uses of kernels in all. Days have to be made one after another, from 1.

    Attributes:
      day: the last one that was made.
      version: of the compiler.
      owner: `(m,)` the program of each use.
      kernel: `(m,)` its kernel.
      fresh: `(m,)` True for the uses of programs that were compiled or started again today.
      result: `(m,)` the number of the stored result that each use runs with; -1: the compiler's own settings.
    """

    def __init__(self, library: KernelLibrary, settings: FleetSettings, seed: int) -> None:
        self._library, self._settings, self._seed = library, settings, seed
        self.day, self.version, rng = 0, 0, self._generator(0)
        bases, n = len(library.programs.starts) - 1, settings.programs
        self._popular = rng.permutation(1 / np.arange(1, bases + 1) ** settings.popularity)
        self._popular /= self._popular.sum()
        self._base, self._weight = self._bases(n, rng), self._weights(n, rng)
        self.owner, self.kernel, self._runs = self._uses(np.arange(n), rng)
        self.fresh, self.result = np.ones(len(self.owner), bool), np.full(len(self.owner), -1)

    def _generator(self, day: int) -> Generator:
        return np.random.default_rng([self._seed, day, 28])

    def next_day(self) -> None:
        """Let programs leave, arrive, change, start again and drift; and the compiler be released on its day."""
        self.day += 1
        rng, settings, n = self._generator(self.day), self._settings, self._settings.programs
        self._weight *= np.exp(rng.normal(0, settings.drift, n))
        gone = np.flatnonzero(rng.random(n) < settings.turnover)
        self._base[gone], self._weight[gone] = self._bases(len(gone), rng), self._weights(len(gone), rng)
        self._replace(gone, rng)
        changed = rng.random(n) < settings.recompiled
        self._renew(changed, rng)
        started = changed | (rng.random(n) < settings.restarts)
        started[gone] = True
        if self.day == settings.release:
            self.version += 1
            started[:] = True
        self.fresh = started[self.owner]

    def uses(self, seconds: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the `(m,)` shares of the fleet's chip time, of kernels that take `(k,)` seconds by default."""
        own = self._runs * seconds[self.kernel]
        totals = np.bincount(self.owner, own, self._settings.programs)
        return (self._weight / self._weight.sum() / totals)[self.owner] * own

    def fetch(self, latest: NDArray[np.int64]) -> None:
        """Let the programs that are fresh take the `(k,)` latest results of their kernels."""
        self.result[self.fresh] = latest[self.kernel[self.fresh]]

    def _bases(self, n: int, rng: Generator) -> NDArray[np.int64]:
        return rng.choice(len(self._popular), n, p=self._popular)

    def _weights(self, n: int, rng: Generator) -> NDArray[np.float64]:
        return (1 - rng.random(n)) ** (-1 / self._settings.skew)

    def _uses(
        self, programs: NDArray[np.int64], rng: Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Return the owners, kernels and runs of new programs: those of the catalogue, some replaced by variants."""
        known = self._library.programs
        assert known.runs is not None
        first, counts = known.starts[self._base[programs]], np.diff(known.starts)[self._base[programs]]
        owner = np.repeat(programs, counts)
        places = np.arange(len(owner)) + np.repeat(first - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
        kernel, varied = known.kernels[places], rng.random(len(owner)) < self._settings.own
        kernel[varied] = _one_of_each(self._library.variants, self._base[owner[varied]], rng)
        return owner, kernel, known.runs[places]

    def _replace(self, gone: NDArray[np.int64], rng: Generator) -> None:
        stays = ~np.isin(self.owner, gone)
        new = self._uses(gone, rng)
        self.owner, self.kernel, self._runs = (
            np.concatenate([old[stays], added])
            for old, added in zip((self.owner, self.kernel, self._runs), new, strict=True)
        )
        self.result = np.concatenate([self.result[stays], np.full(len(new[0]), -1)])

    def _renew(self, changed: NDArray[np.bool_], rng: Generator) -> None:
        places = np.flatnonzero(changed[self.owner] & (rng.random(len(self.owner)) < self._settings.renewed))
        self.kernel[places] = _one_of_each(self._library.variants, self._base[self.owner[places]], rng)


def _one_of_each(groups: Groups, chosen: NDArray[np.int64], rng: Generator) -> NDArray[np.int64]:
    """Return a random kernel of each of some groups."""
    counts = np.diff(groups.starts)[chosen]
    return groups.kernels[groups.starts[chosen] + (rng.random(len(chosen)) * counts).astype(np.int64)]
