"""Fills in what a pass decides on a graph that has changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Decisions, MultiPass

from .candidate import Group
from .store import Store


class Refill:
    """A decision that is still the same keeps its value, another gets the store's, else the compiler's default.

    Args:
      compiler: the passes.
      default: `(d,)` of the task, for what is not decided on a graph, so that equal programs are equal rows.
      keep: is there a global store?
    """

    def __init__(self, compiler: MultiPass, default: NDArray, keep: bool) -> None:
        self._compiler, self._default = compiler, default
        self._stores = {name: Store() for name in compiler.passes} if keep else {}
        self._columns = {name: compiler.columns(name) for name in compiler.passes}

    def fill(self, name: str, old: Decisions, group: Group, rows: NDArray) -> None:
        """Fill in the columns of a pass in the rows of a group, `(n, d)`, in place.

        Args:
          name: of the pass.
          old: what the pass decided where the rows come from; a decision survives in its column if its key is equal.
          group: its members and what the pass decides on their graph.
          rows: of the whole batch, with surviving decisions in them.
        """
        decisions, own = group.decisions, self._columns[name]
        lost = ~self._survives(old, decisions)
        part = rows[np.ix_(group.members, decisions.columns)]
        if lost.any():
            part[:, lost] = self._known(name, group.graph, decisions, lost)[lost]
        rows[np.ix_(group.members, own)] = self._default[own]
        rows[np.ix_(group.members, decisions.columns)] = np.minimum(part, decisions.sizes - 1)

    def _survives(self, old: Decisions, new: Decisions) -> NDArray[np.bool_]:
        live, keys = np.zeros(len(self._default), bool), np.zeros(len(self._default), np.uint64)
        live[old.columns], keys[old.columns] = True, old.keys
        return live[new.columns] & (keys[new.columns] == new.keys)

    def _known(self, name: str, graph: Any, decisions: Decisions, wanted: NDArray) -> NDArray:  # noqa: ANN401 - opaque
        """Return `(k,)` the store's values, and the compiler's default where it has none for what is wanted."""
        values, known = np.zeros(len(wanted), np.int64), np.zeros(len(wanted), bool)
        if self._stores:
            values, known = self._stores[name].recall(decisions)
        if (wanted & ~known).any():  # the compiler's default may be dear
            automatic = name in self._compiler.automatic
            default = self._default[decisions.columns] if automatic else self._compiler.default(name, graph)
            values = np.where(known, values, default)
        return values

    def learn(self, name: str, groups: Sequence[Group], rows: NDArray, costs: NDArray[np.float64]) -> None:
        """Tell the store the `(n,)` costs of a batch; of candidates on one graph only the best matters."""
        if name in self._stores:
            best = [group.members[costs[group.members].argmin()] for group in groups]
            for i in np.lexsort((best, costs[best])):  # cheapest first: ties stand, however graphs are grouped
                values = rows[best[i], groups[i].decisions.columns]
                self._stores[name].learn(groups[i].decisions, values, costs[best[i]])
