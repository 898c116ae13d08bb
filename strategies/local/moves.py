"""The moves that are still to be tried, single ones and pairs, and what moves of each kind have gained.

First, which parameters interact, which are alike, and which are tied.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Kind, Moves, Space, Task

from ..graphs import components, decided_nodes, pairs


class Neighbourhood:
    """What a task declares about its parameters, in the form that the search needs.

    Attributes:
      starts, neighbours: compressed sparse rows of the interaction graph; empty rows where nothing is declared.
      alike: `(d,)` a number for each parameter, equal for alike ones: those with equal sizes and declared features,
        such as in repeated layers. All differ if nothing is declared.
      plain: `(d,)` true if the parameter can be set freely: it is in no sequence and under no constraint.
      places: the nodes that parameters decide; see `decided_nodes`.
    """

    def __init__(self, task: Task) -> None:
        d, structure = len(task.space), task.structure
        self.starts, self.neighbours = np.zeros(d + 1, np.int64), np.empty(0, np.int32)
        self.plain = task.space.kinds != Kind.SLOT
        for component in task.space.components:
            self.plain[component.columns] = False
        self.alike, self.places = np.arange(d), list[NDArray[np.int64]]()
        if structure is not None:
            self.starts, self.neighbours = structure.starts, structure.neighbours
            self.alike = number_rows(np.column_stack([structure.features, task.space.sizes]))
            self.places = decided_nodes(structure)

    def of(self, column: int) -> NDArray[np.int32]:
        """Return the parameters that interact with one, without itself."""
        return self.neighbours[self.starts[column] : self.starts[column + 1]]

    def around(self, columns: NDArray) -> NDArray[np.int64]:
        """Return the parameters and all that interact with them, ascending."""
        lengths = self.starts[columns + 1] - self.starts[columns]
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        reached = self.neighbours[np.repeat(self.starts[columns], lengths) + within]
        return np.unique(np.concatenate([columns, reached]))


def number_rows(features: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the same number for equal rows, compared byte by byte."""
    rows = np.ascontiguousarray(features)
    if not rows.size:
        return np.zeros(len(rows), np.int64)
    rows_as_bytes = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).reshape(-1)
    return np.unique(rows_as_bytes, return_inverse=True)[1].reshape(-1)


_VALUES = 2
"""Values with which a tie is tried: one may fail for another reason, such as a capacity."""
_MOST = 1000
"""Ties that are looked at; each takes as long as a walk through the graph."""


class Ties:
    """Pairs of parameters that may not differ.

    Parameters that interact, and have the same number of values and the same default, are presumed tied: what follows
    another mostly has the same choices in the same order. A trial sets all that is tied to one of them to another
    value. If it works, neither this pair nor any of alike parameters is tied. A pair that is also connected through
    other ties stays.

    Args:
      task: with a structure; the default must work.
      most: ties to try.
      rng: draws them.

    Attributes:
      trials: `(2 k, d)` candidates that try k ties with two values each.
    """

    def __init__(self, task: Task, most: int, rng: Generator) -> None:
        near, sizes, default = Neighbourhood(task), task.space.sizes, task.default.astype(np.int64)
        first, second = pairs(near.starts, near.neighbours)
        alike = (sizes[first] == sizes[second]) & (default[first] == default[second]) & (sizes[first] > 1)
        self._count, self._first, self._second = len(sizes), first[alike], second[alike]
        kinds = np.sort(np.column_stack([near.alike[self._first], near.alike[self._second]]), axis=1)
        self._kinds = np.unique(kinds, axis=0, return_inverse=True)[1].reshape(-1)
        tried = list(self._tried(most, rng))
        self._tried_kinds = np.array([self._kinds[tie] for tie, _ in tried], np.int64)
        self.trials = np.repeat(default[None], _VALUES * len(tried), axis=0)
        for k, (tie, side) in enumerate(tried):
            others = rng.permutation(np.delete(np.arange(sizes[self._first[tie]]), default[self._first[tie]]))
            for i in range(_VALUES):
                self.trials[_VALUES * k + i, side] = others[i % len(others)]

    def _tried(self, most: int, rng: Generator) -> Iterator[tuple[int, NDArray[np.bool_]]]:
        """Yield a tie of each kind, and the parameters on the smaller side of it."""
        done, every = set[int](), np.ones(len(self._first), bool)
        for tie in rng.permutation(len(self._first))[:_MOST].tolist():
            if len(done) >= most or self._kinds[tie] in done:
                continue
            every[tie] = False
            labels, every[tie] = self._labels(every), True
            ends = labels[[self._first[tie], self._second[tie]]]
            if ends[0] != ends[1]:
                done.add(int(self._kinds[tie]))
                sides = labels == ends[0], labels == ends[1]
                yield tie, min(sides, key=np.count_nonzero)

    def groups(self, costs: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return `(d,)` the number of the group of each parameter, given the costs of the trials."""
        works = np.isfinite(costs.reshape(-1, _VALUES)).any(axis=1)
        return self._labels(~np.isin(self._kinds, self._tried_kinds[works]))

    def _labels(self, active: NDArray[np.bool_]) -> NDArray[np.int64]:
        return components(self._count, self._first[active], self._second[active])


_MOST_VALUES, _MOST_AT_A_PLACE = 32, 64
_ANY = -1  # value of a move that sets a random value
_SHORTEST, _SHARE = 64, 32


class MoveList:
    """All moves `set these parameters to this value`: of single parameters, and of all parameters of one node.

    A move is tried once, and again only when a parameter that interacts with it has changed: the don't-look bits of
    Bentley (1992, Fast Algorithms for Geometric Traveling Salesman Problems, section 4). Moves of one kind set
    parameters with equal features to the same value; they share the statistics of their gains. A parameter of a
    sequence or under a constraint cannot be set freely; `Moves` changes it at random.

    Attributes:
      starts, columns: move i sets `columns[starts[i]:starts[i + 1]]`.
      values: `(m,)` the value that the move sets, -1 for a random other one.
      kinds: `(m,)` the number of the kind of the move.
      waiting: `(m,)` true if the move is still to be tried.
      differences: `(m,)` share by which it cost more than the state when last tried, at most 1; 0 if never tried.
    """

    def __init__(self, space: Space, moves: Moves, near: Neighbourhood, rng: Generator) -> None:
        self._moves = moves
        free, tied = moves.movable[near.plain[moves.movable]], moves.movable[~near.plain[moves.movable]]
        tied = np.repeat(tied, np.minimum(space.sizes[tied], _MOST_VALUES) - 1)
        parts = [(tied, np.ones(len(tied), np.int64), np.full(len(tied), _ANY), 0)]
        for sort, place in enumerate([np.arange(len(space)), *near.places]):
            parts += [(*part, sort) for part in _settings(free, place, space.sizes, 1 if sort == 0 else 2)]
        columns, lengths, values = (np.concatenate(arrays) for arrays in list(zip(*parts, strict=True))[:3])
        self.columns, self.values = columns, values
        self.sorts = np.repeat([part[3] for part in parts], [len(part[1]) for part in parts])
        self.starts = np.concatenate([[0], np.cumsum(lengths)])
        self.owner = np.repeat(np.arange(len(values)), lengths)
        self.waiting = np.ones(len(values), bool)
        self.differences = np.zeros(len(values))
        self.kinds = self._number_kinds(near.alike, rng)
        order = np.argsort(self.columns, kind="stable")
        self._users, self._used = self.owner[order], np.searchsorted(self.columns[order], np.arange(len(space) + 1))
        k = int(self.kinds.max(initial=-1)) + 1
        self._gain, self._tried, self._sort_of = np.zeros(k), np.zeros(k), np.zeros(k, np.int64)
        self._sort_of[self.kinds] = self.sorts
        self._of_kind = np.argsort(self.kinds[self.owner], kind="stable")
        self._kind_starts = np.searchsorted(self.kinds[self.owner][self._of_kind], np.arange(k + 1))
        self._queue = np.empty(0, np.int64)

    def _number_kinds(self, alike: NDArray[np.int64], rng: Generator) -> NDArray[np.int64]:
        """Number the kinds: two moves are of one kind if they set alike parameters, in any order, to the same value."""
        codes = rng.integers(0, 1 << 40, alike.max() + 1)
        sums = np.add.reduceat(codes[alike[self.columns]], self.starts[:-1]) if len(self.values) else self.values
        keys = np.column_stack([self.sorts, self.values, np.diff(self.starts), sums])
        return np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)

    def rows(
        self, state: NDArray, moves: NDArray[np.int64], rng: Generator, counts: NDArray[np.int64] | None = None
    ) -> NDArray:
        """Return `(k, d)` copies of the state: the first with the first `counts[0]` moves, and so on; default: one."""
        counts = np.ones(len(moves), np.int64) if counts is None else counts
        owners = np.repeat(np.arange(len(counts)), counts)
        rows = np.repeat(state[None], len(counts), axis=0)
        drawn = self.values[moves] == _ANY
        for row, move in zip(owners[~drawn], moves[~drawn], strict=True):
            rows[row, self.columns[self.starts[move] : self.starts[move + 1]]] = self.values[move]
        if drawn.any():
            self._moves.change(rows, owners[drawn], self.columns[self.starts[moves[drawn]]], rng)
        return rows

    def everywhere(self, state: NDArray, kind: int) -> NDArray:
        """Return a copy of the state with all moves of a kind."""
        row = state.copy()
        entries = self._of_kind[self._kind_starts[kind] : self._kind_starts[kind + 1]]
        row[self.columns[entries]] = self.values[self.owner[entries]]
        return row

    def live(self, state: NDArray) -> NDArray[np.bool_]:
        """Return `(m,)` booleans: true for moves that change the state."""
        different = state[self.columns] != self.values[self.owner]
        return np.bincount(self.owner, different, len(self.values)) > 0

    def shared(self, state: NDArray, rng: Generator) -> NDArray[np.int64]:
        """Return the kinds of which several moves are live, in random order with a preference for many moves."""
        live = self.live(state) & (self.values != _ANY)
        counts = np.bincount(self.kinds[live], minlength=len(self._gain))
        kinds = np.flatnonzero(counts > 1)
        return kinds[np.argsort(-counts[kinds] * rng.random(len(kinds)), kind="stable")]

    def about(self, column: int, state: NDArray, rng: Generator) -> int:
        """Return a move that changes a parameter; if possible, one that also changes the others of its node."""
        moves = self._users[self._used[column] : self._used[column + 1]]
        moves = moves[self.values[moves] != state[column]]
        wide = moves[self.sorts[moves] > 0]
        return int(rng.choice(wide if len(wide) else moves))

    def singles(self, state: NDArray, columns: NDArray[np.int64], most: int, rng: Generator) -> NDArray:
        """Return at most `most` copies of the state, each with another value in one of the columns."""
        moves = np.concatenate([self._users[self._used[c] : self._used[c + 1]] for c in columns])
        moves = moves[(self.sorts[moves] == 0) & (self.values[moves] != state[self.columns[self.starts[moves]]])]
        if len(moves) > most:
            moves = np.sort(rng.choice(moves, most, replace=False))
        return self.rows(state, moves, rng)

    def wake(self, columns: NDArray[np.int64]) -> None:
        """Mark all moves of some parameters as still to be tried."""
        for column in columns:
            self.waiting[self._users[self._used[column] : self._used[column + 1]]] = True

    def next(self, n: int, state: NDArray, rng: Generator) -> NDArray[np.int64]:
        """Return up to `n` of the waiting moves, the most promising first; they no longer wait."""
        self._queue = self._queue[self.waiting[self._queue]]
        if len(self._queue) < n:
            self._queue = self._rank(state, rng)
        chosen, self._queue = self._queue[:n], self._queue[n:]
        self.waiting[chosen] = False
        return chosen

    def _rank(self, state: NDArray, rng: Generator) -> NDArray[np.int64]:
        """Order the waiting moves by the mean gain of their kind, shrunk towards the mean of their sort.

        The second move of a kind is ranked as if the first had gained nothing, so that a batch tries many kinds.
        """
        moves = rng.permutation(np.flatnonzero(self.waiting & self.live(state)))
        kinds = self.kinds[moves]
        order = np.argsort(kinds, kind="stable")
        place = np.empty(len(moves), np.int64)
        place[order] = np.arange(len(moves)) - np.searchsorted(kinds[order], kinds[order])
        sorts = int(self.sorts.max(initial=0)) + 1
        prior = np.bincount(self._sort_of, self._gain, sorts) / (np.bincount(self._sort_of, self._tried, sorts) + 1)
        score = (self._gain[kinds] + prior[self._sort_of[kinds]] + 1e-12) / (self._tried[kinds] + 1 + place)
        return moves[np.argsort(-score, kind="stable")[: max(_SHORTEST, len(moves) // _SHARE)]]

    def learn(self, moves: NDArray[np.int64], gains: NDArray[np.float64], counts: NDArray[np.int64]) -> None:
        """Learn the `(k,)` relative gains, negative for losses, of rows with `counts` moves each.

        A gain is shared equally. Moves that lost together wait again, since one of them may gain; moves that together
        cost nothing were all tried.
        """
        each, lost = np.repeat(gains / counts, counts), np.repeat((gains < 0) & (counts > 1), counts)
        self.differences[moves[~lost]] = np.minimum(-each[~lost], 1.0)
        self.waiting[moves[lost]] = True
        np.add.at(self._gain, self.kinds[moves], np.maximum(each, 0.0))
        np.add.at(self._tried, self.kinds[moves], 1)

    def settings(self, d: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the moves that set a single one of d parameters, sorted by it, and the `(d + 1,)` starts of each."""
        single = np.flatnonzero((self.sorts == 0) & (self.values != _ANY))
        columns = self.columns[self.starts[single]]
        order = np.argsort(columns, kind="stable")
        return single[order], np.searchsorted(columns[order], np.arange(d + 1))

    def sensitivity(self) -> NDArray[np.float64]:
        """Return the `(d,)` mean relative changes of the cost by the moves of each parameter."""
        single = self.sorts == 0
        columns, d = self.columns[self.starts[:-1][single]], len(self._used) - 1
        sums = np.bincount(columns, np.abs(self.differences[single]), d)
        return sums / np.maximum(1, np.bincount(columns, minlength=d))


def _settings(
    columns: NDArray[np.int64], place: NDArray[np.int64], sizes: NDArray[np.int64], least: int
) -> list[tuple[NDArray, NDArray, NDArray]]:
    """Return columns, lengths and values of the moves that set all parameters of one node and size to one value."""
    columns = columns[place[columns] >= 0]
    columns = columns[np.lexsort((columns, sizes[columns], place[columns]))]
    if not len(columns):
        return []
    keys = np.column_stack([place[columns], sizes[columns]])
    first = np.flatnonzero(np.append(True, (np.diff(keys, axis=0) != 0).any(axis=1)))
    lengths = np.diff(np.append(first, len(columns)))
    size = sizes[columns[first]]
    parts = []
    for v in range(min(int(size.max()), _MOST_VALUES)):
        selected = (size > v) & (lengths >= least) & (lengths <= _MOST_AT_A_PLACE)
        value = np.where(size <= _MOST_VALUES, v, v * (size - 1) // (_MOST_VALUES - 1))
        parts.append((columns[np.repeat(selected, lengths)], lengths[selected], value[selected]))
    return parts


_MOST_PAIRS = 100_000


class Pairs:
    """All pairs of single moves of interacting parameters; each is tried once, and again when a parameter has changed.

    A pair ranks higher in a sensitive neighbourhood, where single moves change the cost most on average, and if one of
    its moves alone costs little, because the other may pay after it. Of more than 100,000 pairs a random selection
    of that many is used.

    Args:
      move_list: the moves.
      near: which parameters interact.
      rng: draws the selection.
    """

    def __init__(self, move_list: MoveList, near: Neighbourhood, rng: Generator) -> None:
        self._move_list, self._near = move_list, near
        d = len(near.starts) - 1
        self._rows = np.repeat(np.arange(d), np.diff(near.starts))
        moves, firsts = move_list.settings(d)
        counts = np.diff(firsts)
        left, right = pairs(near.starts, near.neighbours)
        products = counts[left] * counts[right]
        selected = rng.permutation(len(products))
        selected = np.sort(selected[np.cumsum(products[selected]) <= _MOST_PAIRS])
        left, right, products = left[selected], right[selected], products[selected]
        k = np.repeat(np.arange(len(products)), products)
        i, j = np.divmod(np.arange(len(k)) - np.repeat(np.cumsum(products) - products, products), counts[right][k])
        self._pairs = np.column_stack([moves[firsts[left][k] + i], moves[firsts[right][k] + j]])
        self._columns = np.column_stack([left[k], right[k]])
        self._waiting = np.ones(len(self._pairs), bool)
        self._queue = np.empty(0, np.int64)

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self._pairs)

    def count(self, state: NDArray) -> int:
        """Return how many pairs wait and would change both of their parameters."""
        waiting = np.flatnonzero(self._waiting)
        return int(np.count_nonzero(self._live(waiting, state)))

    def wake(self, columns: NDArray[np.int64]) -> None:
        """Mark all pairs with one of these parameters as still to be tried."""
        changed = np.zeros(len(self._near.starts) - 1, bool)
        changed[columns] = True
        self._waiting |= changed[self._columns].any(axis=1)

    def next(self, n: int, state: NDArray) -> NDArray:
        """Return up to `n` copies of the state with a waiting pair of moves each; these no longer wait."""
        self._queue = self._queue[self._live(self._queue, state)]
        if len(self._queue) < n and self._waiting.any():
            self._queue = self._rank(state)
        chosen, self._queue = self._queue[:n], self._queue[n:]
        self._waiting[chosen] = False
        rows = np.repeat(state[None], len(chosen), axis=0)
        rows[np.arange(len(chosen))[:, None], self._columns[chosen]] = self._move_list.values[self._pairs[chosen]]
        return rows

    def _live(self, pairs: NDArray[np.int64], state: NDArray) -> NDArray[np.bool_]:
        """Return booleans: true for pairs that wait and of which both moves change something."""
        changes = state[self._columns[pairs]] != self._move_list.values[self._pairs[pairs]]
        return self._waiting[pairs] & changes.all(axis=1)

    def _rank(self, state: NDArray) -> NDArray[np.int64]:
        waiting = np.flatnonzero(self._waiting)
        waiting = waiting[self._live(waiting, state)]
        differences = self._move_list.differences
        score = self._sensitivity()[self._columns[waiting]].mean(axis=1)
        score -= np.maximum(0.0, differences[self._pairs[waiting]].min(axis=1))
        return waiting[np.argsort(-score, kind="stable")[: max(_SHORTEST, len(waiting) // _SHARE)]]

    def _sensitivity(self) -> NDArray[np.float64]:
        """Return the `(d,)` mean change of the cost by moves of a parameter and of those that interact with it."""
        sensitivity, near = self._move_list.sensitivity(), self._near
        d = len(sensitivity)
        around = np.bincount(self._rows, sensitivity[near.neighbours], d)
        return (sensitivity + around) / (1 + np.diff(near.starts))
