"""Synthetic programs: many sites that passes can rewrite, some of them only after another site."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from .rewrites import Rewrites
from .simulate import simulate


@dataclass(frozen=True)
class Program:
    """The sites of a program, in the order in which every pass visits them.

    Attributes:
      rewrites: what the passes do.
      kinds: `(n,)` the kind of each site.
      weights: `(n,)` how often each site occurs.
      enablers: `(n,)` the earlier site that must be open before a site can be rewritten, -1 for none.
    """

    rewrites: Rewrites
    kinds: NDArray[np.int64]
    weights: NDArray[np.int64]
    enablers: NDArray[np.int64]

    @cached_property
    def _visits(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The sites that each pass can change, in ascending order, as compressed sparse rows."""
        changes = (self.rewrites.after != np.arange(self.rewrites.after.shape[2])).any(axis=2)[:, self.kinds]
        return np.cumsum([0, *changes.sum(axis=1)]), np.nonzero(changes)[1]

    def run(self, orders: NDArray) -> NDArray[np.int64]:
        """Return `(b,)` the instructions that are left after each of `(b, l)` orders of passes."""
        counts = np.empty(len(orders), np.int64)
        tables = (self.rewrites.after, self.rewrites.size, self.rewrites.opens)
        simulate(np.ascontiguousarray(orders), *self._visits, self.kinds, self.weights, self.enablers, *tables, counts)
        return counts

    def digest(self) -> str:
        """Return a digest of the sites and of what passes do to them."""
        tables = (self.rewrites.after, self.rewrites.size, self.rewrites.opens)
        arrays = (*tables, self.kinds, self.weights, self.enablers)
        return hashlib.sha256(b"|".join(a.astype("<i8").tobytes() for a in arrays)).hexdigest()[:16]


def draw_program(rewrites: Rewrites, sites: int, rng: Generator) -> Program:
    """Return a random program: few sites have a large weight, as in real code, and 40 % wait for an earlier site."""
    kinds = rng.integers(0, len(rewrites.size), sites)
    weights = np.minimum(1 + rng.pareto(1.2, sites) * 2, 60).astype(np.int64)
    enablers = (rng.random(sites) * np.arange(sites)).astype(np.int64)
    enablers[(rng.random(sites) < 0.6) | (np.arange(sites) == 0)] = -1
    return Program(rewrites, kinds, weights, enablers)
