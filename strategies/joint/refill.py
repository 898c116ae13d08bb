"""Fills in what a pass decides on graphs that have changed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Decisions, MultiPass

from .candidate import Group
from .global_store import GlobalStore


class Refill:
    """A decision that is still the same keeps its value, another gets the store's, else the compiler's default.

    Args:
      compiler: the passes.
      default: `(d,)` of the task, for what is not decided on a graph, so that equal programs are equal rows.
      keep: is there a global store?
    """

    def __init__(self, compiler: MultiPass, default: NDArray, keep: bool) -> None:
        self._compiler, self._default = compiler, default
        self._stores = {name: GlobalStore(len(default)) for name in compiler.passes} if keep else {}

    def fill(self, name: str, old: Decisions, groups: Sequence[Group], rows: NDArray) -> None:
        """Fill in the columns of a pass in the rows of groups, `(n, d)`, in place.

        Args:
          name: of the pass.
          old: what the pass decided where the rows come from; a decision survives in its column if its key is equal.
          groups: whose graphs have changed.
          rows: of the whole batch, with surviving decisions in them, and the default where `old` has no decision.
        """
        live, keys = np.zeros(len(self._default), bool), np.zeros(len(self._default), np.uint64)
        live[old.columns], keys[old.columns] = True, old.keys
        for group in groups:
            new = group.decisions
            lost = np.flatnonzero(~live[new.columns] | (keys[new.columns] != new.keys))
            gone = live.copy()
            gone[new.columns] = False
            gone = np.flatnonzero(gone)
            rows[group.members[:, None], gone] = self._default[gone]
            if len(lost):
                rows[group.members[:, None], new.columns[lost]] = self._known(name, group, lost)

    def _known(self, name: str, group: Group, lost: NDArray[np.int64]) -> NDArray:
        """Return the store's values, and the compiler's default where it has none, for these `(k,)` decisions."""
        decisions = group.decisions
        columns, values, known = decisions.columns[lost], np.zeros(len(lost), np.int64), np.zeros(len(lost), bool)
        if self._stores:
            values, known = self._stores[name].recall(columns, decisions.keys[lost])
        if name in self._compiler.automatic:
            values = np.where(known, values, self._default[columns])
        elif not known.all():  # the compiler's default may be dear
            values = np.where(known, values, self._compiler.default(name, group.graph)[lost])
        return np.minimum(values, decisions.sizes[lost] - 1)

    def learn(self, name: str, groups: Sequence[Group], rows: NDArray, costs: NDArray[np.float64]) -> None:
        """Tell the store the `(n,)` costs of a batch; of candidates on one graph only the best matters."""
        if name in self._stores:
            best = [group.members[costs[group.members].argmin()] for group in groups]
            for i in np.lexsort((best, costs[best])):  # cheapest first: ties stand, however graphs are grouped
                decisions = groups[i].decisions
                self._stores[name].learn(decisions, rows[best[i], decisions.columns], costs[best[i]])
