"""UpdateAndApply of XTAT-M: the decisions of one pass change the graphs of all later ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Decisions, MultiPass, Task


@dataclass(frozen=True, eq=False)
class Candidate:
    """One configuration of all passes.

    Attributes:
      row: `(d,)` of the flat space; columns that are not live hold the task's default.
      graphs: the graph before each pass, down to the last pass that is tuned.
      cost: its cost; inf if it failed or was not evaluated yet.
    """

    row: NDArray
    graphs: tuple[Any, ...]
    cost: float = np.inf


@dataclass(frozen=True, eq=False)
class Group:
    """Candidates of a batch that share the graph before a pass.

    Attributes:
      graph: the graph before the pass.
      members: `(m,)` places of the candidates in the batch.
      decisions: the decisions of the pass on this graph.
    """

    graph: Any
    members: NDArray[np.int64]
    decisions: Decisions


@dataclass(frozen=True, eq=False)
class Batch:
    """Candidates of the flat space, each well formed for its graphs.

    Attributes:
      rows: `(n, d)`.
      levels: the groups before each pass.
    """

    rows: NDArray
    levels: Sequence[Sequence[Group]]

    def candidate(self, place: int, cost: float) -> Candidate:
        """Return one candidate of the batch."""
        graphs = [next(g.graph for g in groups if place in g.members) for groups in self.levels]
        return Candidate(self.rows[place].copy(), tuple(graphs), cost)


_NONE = np.empty(0, np.int64)
NOTHING = Decisions(_NONE, _NONE, _NONE.astype(np.uint64), _NONE, np.empty(0))
"""The decisions of a pass that is left to the compiler."""


class Chain:
    """Applies the passes to candidates, down to the last pass that is tuned, and fills in the other decisions.

    Args:
      task: gives the flat space and its default.
      compiler: the passes.
      with_store: whether to have a global store.
    """

    def __init__(self, task: Task, compiler: MultiPass, with_store: bool) -> None:
        self._compiler = compiler
        self._default = task.default.astype(task.space.dtype)
        self._refill = Refill(compiler, self._default, with_store)
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


class Refill:
    """An unchanged decision keeps its value; any other takes the store's value or else the compiler's default.

    Args:
      compiler: the passes.
      default: `(d,)` the task's default, for columns that a graph does not decide, so that equal programs have equal
        rows.
      with_store: whether to have a global store.
    """

    def __init__(self, compiler: MultiPass, default: NDArray, with_store: bool) -> None:
        self._compiler, self._default = compiler, default
        self._stores = {name: GlobalStore(len(default)) for name in compiler.passes} if with_store else {}

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


class GlobalStore:
    """For each key of one pass, the value in the cheapest candidate that had it.

    Every key has a fixed slot. Graphs differ little from each other, so the last slot of a column is tried first, and
    only keys that differ are looked up.

    Args:
      d: number of columns of the flat space.
    """

    def __init__(self, d: int) -> None:
        self._keys = np.empty(0, np.uint64)  # ascending, with their slots in the next array
        self._slots = np.empty(0, np.int64)
        self._values, self._costs = np.empty(0, np.int64), np.empty(0)
        self._last_keys, self._last_slots = np.zeros(d, np.uint64), np.full(d, -1)

    def learn(self, decisions: Decisions, values: NDArray, cost: float) -> None:
        """Store the `(k,)` values of a candidate with this total cost where they are the best so far."""
        slots = self._slots_of(decisions.columns, decisions.keys)
        better = self._costs[slots] > cost  # never for a candidate that failed
        self._values[slots[better]] = values[better]
        self._costs[slots[better]] = cost

    def recall(self, columns: NDArray[np.int64], keys: NDArray[np.uint64]) -> tuple[NDArray, NDArray[np.bool_]]:
        """Return the `(k,)` best values of decisions, and `(k,)` booleans: true where one is known."""
        slots = self._slots_of(columns, keys)
        return self._values[slots], self._costs[slots] < np.inf

    def _slots_of(self, columns: NDArray[np.int64], keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        slots = self._last_slots[columns]
        other = np.flatnonzero((self._last_keys[columns] != keys) | (slots < 0))
        if len(other):
            slots[other] = self._looked_up(keys[other])
            self._last_keys[columns[other]], self._last_slots[columns[other]] = keys[other], slots[other]
        return slots

    def _looked_up(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the slots of `(k,)` keys; a new key gets a new slot."""
        places = np.searchsorted(self._keys, keys)
        found = places < len(self._keys)
        found[found] = self._keys[places[found]] == keys[found]
        if not found.all():
            new = np.unique(keys[~found])
            places = np.searchsorted(self._keys, new)
            self._slots = np.insert(self._slots, places, len(self._keys) + np.arange(len(new)))
            self._keys = np.insert(self._keys, places, new)
            self._values = np.append(self._values, np.zeros(len(new), np.int64))
            self._costs = np.append(self._costs, np.full(len(new), np.inf))
            places = np.searchsorted(self._keys, keys)
        return self._slots[places]


class OnePass(MultiPass):
    """One pass, `all`, that decides the whole space on a single graph."""

    passes = ("all",)

    def __init__(self, task: Task) -> None:
        self.source = None
        self._default = task.default.astype(np.int64)
        d = len(task.space)
        places = np.arange(d)
        self._decisions = Decisions(places, task.space.sizes, places.astype(np.uint64), places, np.full(d, 1 / d))

    def columns(self, name: str) -> NDArray[np.int64]:
        """Return every column."""
        return self._decisions.columns

    def decisions(self, name: str, graph: Any) -> Decisions:  # noqa: ANN401 - opaque
        """Return every parameter of the space."""
        return self._decisions

    def default(self, name: str, graph: Any) -> NDArray[np.int64]:  # noqa: ANN401 - opaque
        """Return the task's default."""
        return self._default

    def apply(self, name: str, graph: Any, config: NDArray) -> Any:  # noqa: ANN401 - opaque
        """Return the same graph."""
        return graph
