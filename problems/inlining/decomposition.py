"""Functions with the trees of calls that are inlined into them, as parts: what each is, without its size.

The key of a part is a function and, for each call in it, whether the callee is inlined and with which tree of its own.
A call that is left to LLVM counts as LLVM decided it in the default, or as inlined if it is the last call of a function
that nobody else can call, when LLVM meets it: then it gets a bonus that outweighs all. Keys are *nearly* exact: LLVM
may decide a copy of a call otherwise, and infers attributes of one function from another. A last part holds what is in
no function that is described; its key is always the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from bbo_suite.compiled import compiled_for, handle, load, mix, name_of_type
from bbo_suite.parts.cursor import CHANGE, DESCRIBE, KEY, Cursor, Function
from bbo_suite.parts.decomposition import Decomposition, Description

from .sites import CALL, INLINE

compiled = compiled_for(__file__)

_ROUNDS = 3
"""Functions that call each other in a circle are followed so many calls deep."""
FEATURES = (
    *("instructions", "memory", "calls", "branches", "arguments", "bodies", "constants", "loops"),
    *("own instructions", "own calls", "called"),
)
"""Of a tree: what is in all its bodies; and of its function alone."""
_WIDTH = 8
"""Features that are summed over a tree."""
BY_MERIT, AS_LAST = 1, 2
SEEN, NOWHERE = 1, 2


@dataclass(frozen=True)
class CallGraph:
    """F functions and A call sites, of which S are free to be decided.

    Attributes:
      names: of functions.
      hidden: `(F,)` 1 if only calls that are seen can reach a function, 2 if it never has code of its own, else 0.
      sizes: `(F, 4)` instructions, and those that use memory, call and branch, after each is simplified alone.
      callers, callees: `(A,)` numbers of functions.
      inlinable: `(A,)` whether LLVM can inline it.
      arguments, constants, depths: `(A,)` of calls: how many arguments, how many of them are constants, loops around.
      columns: `(A,)` the parameter that decides a site; -1 for none.
      default: `(A,)` what LLVM does on its own: 0 it calls, 1 it inlines, 2 it inlines only because it is the last.
      lines: of sites, such as `file.c:3:7`; "" where unknown.
    """

    names: tuple[str, ...]
    hidden: NDArray[np.int64]
    sizes: NDArray[np.int64]
    callers: NDArray[np.int64]
    callees: NDArray[np.int64]
    inlinable: NDArray[np.bool_]
    arguments: NDArray[np.int64]
    constants: NDArray[np.int64]
    depths: NDArray[np.int64]
    columns: NDArray[np.int64]
    default: NDArray[np.int64]
    lines: tuple[str, ...]

    @cached_property
    def circles(self) -> NDArray[np.int64]:
        """`(F,)` a number for the functions that call each other in a circle; others have one of their own."""
        n = len(self.names)
        calls = coo_matrix((np.ones(len(self.callers)), (self.callers, self.callees)), (n, n))
        return connected_components(calls, connection="strong")[1].astype(np.int64)

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """`(F,)` functions as LLVM visits them, callees before callers; those of a circle are together."""
        ends = self._ends()
        last = np.zeros(len(ends), np.int64)
        np.maximum.at(last, self.circles, ends)
        return np.lexsort((ends, last[self.circles])).astype(np.int64)

    def _ends(self) -> NDArray[np.int64]:
        """Return `(F,)` when a depth-first walk leaves each function; it starts at those that others can call."""
        by_caller = np.argsort(self.callers, kind="stable")
        callees = self.callees[by_caller].tolist()
        starts = np.searchsorted(self.callers[by_caller], np.arange(len(self.names) + 1)).tolist()
        at, ends, left = starts[:-1], np.full(len(self.names), -1), 0
        met = [False] * len(self.names)
        for root in np.argsort(self.hidden > 0, kind="stable").tolist():
            walk = [] if met[root] else [root]
            while walk:
                function = walk[-1]
                met[function] = True
                while at[function] < starts[function + 1] and met[callees[at[function]]]:
                    at[function] += 1
                if at[function] < starts[function + 1]:
                    walk.append(callees[at[function]])
                else:
                    ends[walk.pop()] = left
                    left += 1
        return ends


class _State(NamedTuple):
    """What compiled code works on.

    Attributes:
      config: `(S,)` the candidate.
      order, circles: as in `CallGraph`.
      starts: `(F + 1,)` the sites of function f are `starts[f]` up to `starts[f + 1]`.
      callers, callees, columns, default, inlinable: of sites, in the order of their callers.
      twins: `(A,)` the site before with the same caller and callee; -1 for none.
      users, used: the sites that call function f are `used[users[f]:users[f + 1]]`, as LLVM meets them.
      hidden: `(F,)`.
      own: `(F, _WIDTH)` features of a function, `extra`: `(A, _WIDTH)` what an inlined site adds.
      asked, decided: `(A,)` the value of a site's parameter, and whether it is inlined.
      hashes, below, older: `(F,)` keys of trees, those one call less deep, and those before a change.
      trees, shallow: `(F, _WIDTH)` sums of features, and those one call less deep.
      present, alive: `(F,)` whether the body of a function is anywhere, and whether it is a function of the object.
    """

    config: NDArray[np.int64]
    order: NDArray[np.int64]
    circles: NDArray[np.int64]
    starts: NDArray[np.int64]
    callers: NDArray[np.int64]
    callees: NDArray[np.int64]
    columns: NDArray[np.int64]
    default: NDArray[np.int64]
    inlinable: NDArray[np.int64]
    twins: NDArray[np.int64]
    users: NDArray[np.int64]
    used: NDArray[np.int64]
    hidden: NDArray[np.int64]
    own: NDArray[np.float64]
    extra: NDArray[np.float64]
    asked: NDArray[np.int64]
    decided: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    below: NDArray[np.uint64]
    older: NDArray[np.uint64]
    trees: NDArray[np.float64]
    shallow: NDArray[np.float64]
    present: NDArray[np.int64]
    alive: NDArray[np.int64]


class InliningDecomposition(Decomposition):
    """The functions of a module under decisions; see the module."""

    feature_names = FEATURES
    exact = False

    def __init__(self, graph: CallGraph) -> None:
        self.graph = graph

    @cached_property
    def _state(self) -> _State:
        graph, f = self.graph, len(self.graph.names)
        by_caller = np.argsort(graph.callers, kind="stable")
        callees = graph.callees[by_caller]
        rank = np.argsort(graph.order)
        used = np.lexsort((rank[graph.callers[by_caller]], callees))
        own = np.zeros((f, _WIDTH))
        own[:, :4] = graph.sizes
        own[:, 5] = 1.0
        np.add.at(own[:, 4], graph.callers, graph.arguments)
        extra = np.zeros((len(callees), _WIDTH))  # a call that is inlined is no call any more
        extra[:, [0, 2]] = -1.0
        extra[:, 4] = -graph.arguments[by_caller]
        extra[:, 6], extra[:, 7] = graph.constants[by_caller], graph.depths[by_caller] > 0
        whole, columns = np.arange(f + 1), graph.columns[by_caller]
        numbers, hashes, trees = np.zeros((2, f), np.int64), np.zeros((3, f), np.uint64), np.zeros((2, f, _WIDTH))
        state = _State(
            config=np.zeros(graph.columns.max() + 1, np.int64),
            order=graph.order,
            circles=graph.circles,
            starts=np.searchsorted(graph.callers[by_caller], whole).astype(np.int64),
            callers=graph.callers[by_caller],
            callees=callees,
            columns=columns,
            default=graph.default[by_caller],
            inlinable=graph.inlinable[by_caller].astype(np.int64),
            twins=_twins(graph.callers[by_caller], callees),
            users=np.searchsorted(callees[used], whole).astype(np.int64),
            used=used.astype(np.int64),
            hidden=graph.hidden,
            own=own,
            extra=extra,
            asked=np.zeros(len(callees), np.int64),
            decided=np.zeros(len(callees), np.int64),
            hashes=hashes[0],
            below=hashes[1],
            older=hashes[2],
            trees=trees[0],
            shallow=trees[1],
            present=numbers[0],
            alive=numbers[1],
        )
        _settle(state)
        state.inlinable[(state.decided == 1) & (state.default == 0)] = 0  # LLVM does not want even the last call
        _settle(state)
        return state

    @cached_property
    def _functions(self) -> tuple[Function, Function, Function]:
        kind = name_of_type(self._state)

        @compiled.callback(CHANGE)
        def change(address: int, columns: NDArray, values: NDArray, touched: NDArray) -> int:
            return _change(columns, values, touched, load(address, kind))

        @compiled.callback(KEY)
        def read_key(address: int, place: int, key: NDArray) -> float:
            return _key(place, key, load(address, kind))

        @compiled.callback(DESCRIBE)
        def read_features(address: int, place: int, features: NDArray) -> None:
            _features(place, features, load(address, kind))

        return Function(change, CHANGE), Function(read_key, KEY), Function(read_features, DESCRIBE)

    def cursor(self, config: NDArray) -> Cursor:
        """Return a cursor at a `(d,)` candidate."""
        cursor = Cursor(*self._functions, handle(self._state), len(self.graph.names) + 1, len(FEATURES), self)
        cursor.set(np.arange(len(config)), config)
        return cursor

    def describe(self, configs: NDArray) -> Description:
        """Return the functions of `(n, d)` candidates, and the rest."""
        found = [self.described(config) for config in configs]
        places, keys, features = (list(column) for column in zip(*found, strict=True))
        starts = np.cumsum([0, *(len(each) for each in places)])
        return Description(starts, np.concatenate(keys), np.ones(starts[-1]), np.concatenate(features))

    def described(self, config: NDArray) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.float64]]:
        """Return the functions that a `(d,)` candidate has, and F for the rest; their keys and features."""
        f = len(self.graph.names)
        self._state.config[:] = config
        keys, features, counts = np.empty(f + 1, np.uint64), np.zeros((f + 1, len(FEATURES))), np.zeros(f + 1)
        _read_all(self._state, keys, features, counts)
        places = np.flatnonzero(counts)
        return places, keys[places], features[places]

    def inlined(self, config: NDArray) -> NDArray[np.bool_]:
        """Return `(A,)` whether each site of the graph is inlined under a `(d,)` candidate."""
        self.described(config)
        found = np.empty(len(self.graph.callers), np.bool_)
        found[np.argsort(self.graph.callers, kind="stable")] = self._state.decided > 0
        return found


def _twins(callers: NDArray[np.int64], callees: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each site the last one before it with the same caller and callee, or -1."""
    found, last = np.full(len(callers), -1), dict[tuple[int, int], int]()
    for site, pair in enumerate(zip(callers.tolist(), callees.tolist(), strict=True)):
        found[site] = last.get(pair, -1)
        last[pair] = site
    return found


@compiled()
def _read_all(state: _State, keys: NDArray, features: NDArray, counts: NDArray) -> None:
    _settle(state)
    for place in range(len(keys)):
        counts[place] = _key(place, keys[place : place + 1], state)
        _features(place, features[place], state)


@compiled(runtime=False)
def _change(columns: NDArray, values: NDArray, touched: NDArray, state: _State) -> int:
    """Set parameters, write the functions that are not as before and return their number."""
    for i in range(len(columns)):
        state.config[columns[i]] = values[i]
    functions, count = len(state.hashes), 0
    for f in range(functions):
        state.older[f] = state.hashes[f] if state.alive[f] else np.uint64(0)
    _settle(state)
    for f in range(functions):
        if state.older[f] != (state.hashes[f] if state.alive[f] else np.uint64(0)):
            touched[count] = f
            count += 1
    return count


@compiled(runtime=False)
def _settle(state: _State) -> None:
    """Find what follows from the decisions of `state.config`."""
    _decide(state)
    first = 0
    while first < len(state.order):
        last = first + 1
        while last < len(state.order) and state.circles[state.order[last]] == state.circles[state.order[first]]:
            last += 1
        for deep in range(1 if last == first + 1 else _ROUNDS):
            for i in range(first, last):
                f = state.order[i]
                state.below[f] = state.hashes[f] if deep else np.uint64(f)
                for column in range(_WIDTH):
                    state.shallow[f, column] = state.trees[f, column] if deep else state.own[f, column]
            for i in range(first, last):
                _grow(state, state.order[i])
        first = last
    _find_alive(state)


@compiled(runtime=False)
def _decide(state: _State) -> None:
    """Decide each site; one that is left to LLVM is inlined by merit, or if it is the last call when LLVM meets it."""
    for site in range(len(state.callees)):
        index = state.config[state.columns[site]] if state.columns[site] >= 0 else 0
        state.asked[site] = index
        state.decided[site] = index == INLINE or (index != CALL and state.default[site] == BY_MERIT)
    for f in range(len(state.hidden)):
        calls, left, end = 0, -1, state.users[f + 1]
        for i in range(state.users[f], end):
            if not state.decided[state.used[i]]:
                calls, left = calls + 1, i
        if state.hidden[f] == SEEN and calls == 1:
            last = state.used[left]
            if state.inlinable[last] and state.asked[last] != CALL:
                state.decided[last] = left == end - 1 or state.default[last] == AS_LAST


@compiled(runtime=False)
def _grow(state: _State, f: int) -> None:
    """Find the tree of a function; functions of its circle are as they were one call less deep."""
    key = np.uint64(f + 1)
    for column in range(_WIDTH):
        state.trees[f, column] = state.own[f, column]
    for site in range(state.starts[f], state.starts[f + 1]):
        callee = state.callees[site]
        key = mix(key, np.uint64(2 if _is_odd(state, site) else state.decided[site]))
        if state.decided[site]:
            inside = state.circles[callee] == state.circles[f]
            key = mix(key, state.below[callee] if inside else state.hashes[callee])
            trees = state.shallow if inside else state.trees
            for column in range(_WIDTH):
                state.trees[f, column] += trees[callee, column] + state.extra[site, column]
    state.hashes[f] = key


@compiled(runtime=False)
def _is_odd(state: _State, site: int) -> bool:
    """Return whether a call is left where an equal one before it is left, and only one of both was asked for.

    What is asked for stands at the call, and LLVM does not merge calls at which different things stand.
    """
    twin = state.twins[site]
    while twin >= 0 and state.decided[twin]:
        twin = state.twins[twin]
    left = twin >= 0 and not state.decided[site]
    return left and (state.asked[twin] == CALL) != (state.asked[site] == CALL)


@compiled(runtime=False)
def _find_alive(state: _State) -> None:
    """Find the functions that are left, callers first."""
    for f in range(len(state.hidden)):
        state.alive[f] = not state.hidden[f]
        state.present[f] = state.alive[f]
    changed = True
    while changed:
        changed = False
        for i in range(len(state.order) - 1, -1, -1):
            f = state.order[i]
            if not state.present[f]:
                continue
            for site in range(state.starts[f], state.starts[f + 1]):
                callee = state.callees[site]
                lives = not state.decided[site] and state.hidden[callee] != NOWHERE
                if not state.present[callee] or (lives and not state.alive[callee]):
                    changed |= state.circles[callee] == state.circles[f]
                    state.present[callee] = 1
                    state.alive[callee] |= lives


@compiled(runtime=False)
def _key(place: int, key: NDArray, state: _State) -> float:
    if place == len(state.hashes):
        key[0] = np.uint64(0x5E57)
        return 1.0
    key[0] = state.hashes[place]
    return float(state.alive[place])


@compiled(runtime=False)
def _features(place: int, features: NDArray, state: _State) -> None:
    for column in range(len(features)):
        features[column] = state.trees[place, column] if column < _WIDTH and place < len(state.hashes) else 0.0
    if place < len(state.hashes):
        features[_WIDTH], features[_WIDTH + 1] = state.own[place, 0], state.own[place, 2]
        features[_WIDTH + 2] = state.users[place + 1] - state.users[place]
