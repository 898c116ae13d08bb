"""The decisions of a step as small spaces, which are searched one after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Decisions, Kind, Space

_LEAST_SHARE = 1e-9


@dataclass(frozen=True, eq=False)
class Subspace:
    """A small space of k parameters, and the m columns of the flat space that take its values.

    Attributes:
      sizes: `(k,)` number of values of each parameter.
      targets: `(m,)` columns of the flat space that it decides; the first k belong to one parameter each.
      origins: `(m,)` the parameter from which each of them takes its value.
      share: the share of the run time that it decides about.
    """

    sizes: NDArray[np.int64]
    targets: NDArray[np.int64]
    origins: NDArray[np.int64]
    share: float = 1.0

    @property
    def candidates(self) -> float:
        """Number of candidates without regard to constraints; inf beyond the range of a float."""
        with np.errstate(over="ignore"):
            return float(np.prod(self.sizes.astype(float)))

    def space(self, flat: Space) -> Space:
        """Return the small space; it keeps constraints and sequences only if it is the whole flat space."""
        if np.array_equal(self.targets, np.arange(len(flat))) and np.array_equal(self.sizes, flat.sizes):
            return flat
        kinds = flat.kinds[self.targets[: len(self.sizes)]]
        return Space(self.sizes, np.where(kinds == Kind.SLOT, Kind.CHOICE, kinds))


def merged(decided: Sequence[Decisions]) -> list[Subspace]:
    """Return the decisions of several passes as one subspace."""
    targets = np.concatenate([d.columns for d in decided])
    return [Subspace(np.concatenate([d.sizes for d in decided]), targets, np.arange(len(targets)))]


def per_node(decided: Sequence[Decisions]) -> list[Subspace]:
    """Return a subspace for each node of separable passes, largest share first; nodes with equal keys share one."""
    columns, sizes, keys = (np.concatenate([getattr(d, f) for d in decided]) for f in ("columns", "sizes", "keys"))
    nodes, shares = (np.concatenate([getattr(d, f) for d in decided]) for f in ("nodes", "share"))
    passes = np.repeat(np.arange(len(decided)), [len(d.columns) for d in decided])
    order = np.argsort(nodes, kind="stable")
    groups: dict[bytes, list[NDArray[np.int64]]] = {}
    for places in np.split(order, np.flatnonzero(np.diff(nodes[order])) + 1):
        groups.setdefault(passes[places].tobytes() + keys[places].tobytes(), []).append(places)
    parts = []
    for members in groups.values():
        origins = np.tile(np.arange(len(members[0])), len(members))
        share = sum(float(shares[places].max(initial=_LEAST_SHARE)) for places in members)
        parts.append(Subspace(sizes[members[0]], columns[np.concatenate(members)], origins, share))
    return sorted(parts, key=lambda part: -part.share)


def divide(total: float, shares: NDArray[np.float64], caps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide `total` in proportion to `(k,)` shares; an amount above the cap of one share goes to the others."""
    full = np.zeros(len(shares), bool)
    while not full.all():
        level = max(0.0, total - caps[full].sum()) / shares[~full].sum()
        over = ~full & (level * shares >= caps)
        if not over.any():
            return np.where(full, caps, level * shares)
        full |= over
    return caps
