"""UpdateAndApply of XTAT-M: the decisions of one pass change the graphs of all later ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Decisions, MultiPass, Task

from .candidate import Batch, Candidate, Group
from .refill import Refill

_NONE = np.empty(0, np.int64)
NOTHING = Decisions(_NONE, _NONE, _NONE.astype(np.uint64), _NONE, np.empty(0))
"""The decisions of a pass that is left to the compiler."""


class Chain:
    """Applies the passes to candidates, down to the last pass that is tuned, and fills in the other decisions.

    Args:
      task: gives the flat space and its default.
      compiler: the passes.
      keep: whether to keep a global store.
    """

    def __init__(self, task: Task, compiler: MultiPass, keep: bool) -> None:
        self._compiler = compiler
        self._default = task.default.astype(task.space.dtype)
        self._refill = Refill(compiler, self._default, keep)
        self._columns = {name: compiler.columns(name) for name in compiler.passes}
        self._idle = set(compiler.automatic)

    def start(self) -> Candidate:
        """Return the task's default as a candidate."""
        return self.deepen(Candidate(self._default.copy(), (self._compiler.source,)))

    def tune(self, names: Iterable[str]) -> None:
        """Tune these passes from now on: read their decisions on every graph."""
        self._idle -= set(names)

    def deepen(self, candidate: Candidate) -> Candidate:
        """Return the candidate with its graphs down to the last pass that is tuned."""
        graphs = list(candidate.graphs)
        for name in self._tuned()[len(graphs) - 1 : -1]:
            graphs.append(self._compiler.apply(name, graphs[-1], candidate.row))
        return Candidate(candidate.row, tuple(graphs), candidate.cost)

    def _tuned(self) -> tuple[str, ...]:
        """Return the passes up to the last one that is not left to the compiler."""
        names = self._compiler.passes
        return names[: max((i + 1 for i, name in enumerate(names) if name not in self._idle), default=1)]

    def decisions(self, name: str, candidate: Candidate) -> Decisions:
        """Return the decisions of a tuned pass on a candidate's graph."""
        return self._decided(name, candidate.graphs[self._compiler.passes.index(name)])

    def update(self, base: Candidate, rows: NDArray) -> Batch:
        """Make `(n, d)` rows well formed, in place, and return them as a batch.

        Args:
          base: a deepened candidate.
          rows: `base.row` with changes in columns that are live in `base`.
        """
        names = self._tuned()
        groups = [self._group(names[0], self._compiler.source, range(len(rows)))]
        levels = [groups]
        for place, name in enumerate(names[1:], start=1):
            groups = [self._group(name, *after) for after in self._apply(place - 1, base, rows, groups)]
            levels.append(groups)
            changed = [group for group in groups if group.graph is not base.graphs[place]]
            self._refill.fill(name, self.decisions(name, base), changed, rows)
        return Batch(rows, levels)

    def _group(self, name: str, graph: Any, members: Sequence[int]) -> Group:  # noqa: ANN401 - opaque
        return Group(graph, np.array(members), self._decided(name, graph))

    def _decided(self, name: str, graph: Any) -> Decisions:  # noqa: ANN401 - opaque
        return NOTHING if name in self._idle else self._compiler.decisions(name, graph)

    def _apply(self, place: int, base: Candidate, rows: NDArray, groups: list[Group]) -> list[tuple[Any, list[int]]]:
        """Return the graphs after a pass and the rows that have each; the pass runs only on rows that it changes."""
        name, unchanged = self._compiler.passes[place], np.zeros(len(rows), bool)
        members_of: dict[int, tuple[Any, list[int]]] = {}
        for group in groups:
            if group.graph is base.graphs[place]:
                part = np.ix_(group.members, self._columns[name])
                unchanged[group.members] = (rows[part] == base.row[part[1]]).all(axis=1)
            for member in group.members[~unchanged[group.members]].tolist():
                after = self._compiler.apply(name, group.graph, rows[member])
                members_of.setdefault(id(after), (after, []))[1].append(member)
        if unchanged.any():
            after = base.graphs[place + 1]
            members_of.setdefault(id(after), (after, []))[1].extend(np.flatnonzero(unchanged).tolist())
        return list(members_of.values())

    def learn(self, batch: Batch, costs: NDArray[np.float64]) -> None:
        """Tell the store the `(n,)` costs of a batch."""
        for name, groups in zip(self._tuned(), batch.levels, strict=False):
            self._refill.learn(name, groups, batch.rows, costs)
