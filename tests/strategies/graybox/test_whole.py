"""How often a virtual search of `graybox` makes moves that compile the whole program."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numba import types
from numpy.typing import NDArray

from bbo_strategies.graybox import GrayBox, GrayBoxOptions
from bbo_strategies.graybox.part_search import FIRST_PASSES, PASSES
from bbo_suite import Parts, Space, Structure, Task, Told
from bbo_suite.compiled import compiled_for, handle, load
from bbo_suite.parts.cursor import CHANGE, DESCRIBE, KEY, Cursor, Function
from bbo_suite.parts.decomposition import Decomposition

pytestmark = pytest.mark.slow  # compiles long
compiled = compiled_for(__file__)

D, WHOLE, VALUES, BATCH = 40, 10, 5, 20


class Counted(NamedTuple):
    """A candidate, and the changes so far: those of parameters that make all parts anew, and the others."""

    config: NDArray[np.int64]
    changes: NDArray[np.int64]


_TYPE = types.NamedTuple([types.Array(types.int64, 1, "C")] * 2, Counted)


@compiled.callback(CHANGE)
def _change(address: int, columns: NDArray, values: NDArray, touched: NDArray) -> int:
    counted, whole = load(address, _TYPE), 0
    for i in range(len(columns)):
        counted.config[columns[i]] = values[i]
        touched[i] = columns[i]
        whole |= columns[i] < WHOLE
    counted.changes[whole] += 1
    return -1 if whole else len(columns)


@compiled.callback(KEY)
def _key(address: int, place: int, key: NDArray) -> float:
    key[0] = np.uint64(place * VALUES + load(address, _TYPE).config[place])
    return 1.0


@compiled.callback(DESCRIBE)
def _describe(address: int, place: int, features: NDArray) -> None:
    features[0], features[1] = place, load(address, _TYPE).config[place]


class Apart(Decomposition):
    """Each parameter is a part of its own."""

    feature_names = ("place", "value")

    def __init__(self) -> None:
        self.counted = Counted(np.zeros(D, np.int64), np.zeros(2, np.int64))
        self._memory = handle(self.counted)

    def describe(self, configs: NDArray):
        raise NotImplementedError

    def cursor(self, config: NDArray) -> Cursor:
        self.counted.config[:] = config
        functions = Function(_change, CHANGE), Function(_key, KEY), Function(_describe, DESCRIBE)
        return Cursor(*functions, self._memory, D, 2, self, range(WHOLE))


def test_few_moves_of_a_search_compile_the_whole_program() -> None:
    parts, space, rng = Apart(), Space(np.full(D, VALUES)), np.random.default_rng(0)
    costs = rng.random((D, VALUES))
    structure = Structure(np.zeros(D + 1, np.int64), np.zeros(0, np.int32), np.ones((D, 1)), ("one",), parts=parts)
    strategy = GrayBox(Task("toy", space, np.zeros(D, np.int8), "s", structure), 100, rng, GrayBoxOptions())
    for n in (1, BATCH, BATCH):
        configs, before = strategy.ask(n).astype(np.int64), parts.counted.changes.copy()
        keys, told = np.arange(D) * VALUES + configs, costs[np.arange(D), configs]
        parts_told = Parts(np.arange(n + 1) * D, keys.astype(np.uint64).reshape(-1), np.ones(n * D), told.reshape(-1))
        strategy.receive(Told(configs, told.sum(axis=1), parts_told))
    strategy.ask(BATCH)
    others, whole = parts.counted.changes - before
    steps = 2 * FIRST_PASSES + (BATCH - 1) * PASSES  # the first search copies from other candidates as well
    assert 100 < whole <= 2 * steps + 2 * BATCH < others / 10  # a move may be taken back; a search begins and ends
    assert (configs[:, :WHOLE] != 0).any(axis=0).mean() > 0.5
