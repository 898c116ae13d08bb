"""Fills in the decisions of a pass on graphs that have changed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Decisions, MultiPass

from .candidate import Group
from .global_store import GlobalStore


class Refill:
    """An unchanged decision keeps its value; any other takes the store's value or else the compiler's default.

    Args:
      compiler: the passes.
      default: `(d,)` the task's default, for columns that a graph does not decide, so that equal programs have equal
        rows.
      keep: whether to keep a global store.
    """

    def __init__(self, compiler: MultiPass, default: NDArray, keep: bool) -> None:
        self._compiler, self._default = compiler, default
        self._stores = {name: GlobalStore(len(default)) for name in compiler.passes} if keep else {}

    def fill(self, name: str, old: Decisions, groups: Sequence[Group], rows: NDArray) -> None:
        """Fill in the columns of a pass in the rows of groups, `(n, d)`, in place.

        Args:
          name: the pass.
          old: its decisions on the graph that the rows come from; a decision whose key is the same keeps its value.
          groups: the groups whose graphs have changed.
          rows: all rows of the batch, which hold the old values, and the default in columns without an old decision.
        """
        live, keys = np.zeros(len(self._default), bool), np.zeros(len(self._default), np.uint64)
        live[old.columns], keys[old.columns] = True, old.keys
        for group in groups:
            new = group.decisions
            changed = np.flatnonzero(~live[new.columns] | (keys[new.columns] != new.keys))
            dropped = live.copy()
            dropped[new.columns] = False
            dropped = np.flatnonzero(dropped)
            rows[group.members[:, None], dropped] = self._default[dropped]
            if len(changed):
                rows[group.members[:, None], new.columns[changed]] = self._values(name, group, changed)

    def _values(self, name: str, group: Group, changed: NDArray[np.int64]) -> NDArray:
        """Return the `(k,)` values of changed decisions: the store's, or the compiler's default where it has none."""
        decisions = group.decisions
        columns = decisions.columns[changed]
        values, known = np.zeros(len(changed), np.int64), np.zeros(len(changed), bool)
        if self._stores:
            values, known = self._stores[name].recall(columns, decisions.keys[changed])
        if name in self._compiler.automatic:
            values = np.where(known, values, self._default[columns])
        elif not known.all():  # computing the compiler's default may take long
            values = np.where(known, values, self._compiler.default(name, group.graph)[changed])
        return np.minimum(values, decisions.sizes[changed] - 1)

    def learn(self, name: str, groups: Sequence[Group], rows: NDArray, costs: NDArray[np.float64]) -> None:
        """Tell the store the `(n,)` costs of a batch; of the candidates of one graph only the best matters."""
        if name in self._stores:
            best = [group.members[costs[group.members].argmin()] for group in groups]
            for i in np.lexsort((best, costs[best])):  # cheapest first, so that ties do not depend on the grouping
                decisions = groups[i].decisions
                self._stores[name].learn(decisions, rows[best[i], decisions.columns], costs[best[i]])
