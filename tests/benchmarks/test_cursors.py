"""How fast compiled code follows the parts of candidates: `pytest tests/benchmarks -k cursors`.

Each round makes changes of one parameter, asks for the keys that they touch, and takes every change back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit
from numpy.typing import NDArray

import bbo_suite
from bbo_suite import MultiPass

CHANGES = 100
CASES = [
    *(f"{family}/resnet50" for family in ("fusion", "layout", "tile", "flags")),
    *(f"joint/resnet50 {name}" for name in ("layout", "fusion", "tile", "flags")),
]


@njit
def follow(
    change: Any, key: Any, handle: int, columns: NDArray, values: NDArray, back: NDArray, touched: NDArray
) -> int:
    found, room, total = touched, np.zeros(1, np.uint64), 0
    for i in range(len(columns)):
        for value in (values[i : i + 1], back[i : i + 1]):
            count = change(handle, columns[i : i + 1], value, found)
            for j in range(len(found) if count < 0 else count):
                key(handle, j if count < 0 else found[j], room)
            total += count
    return total


def live(passes: MultiPass, family: str, row: NDArray) -> NDArray[np.int64]:
    """Return the columns of a pass that have an effect."""
    graph = passes.source
    for name in passes.passes:
        if name == family:
            break
        graph = passes.apply(name, graph, row)
    return passes.decisions(family, graph).columns


@pytest.mark.parametrize("case", CASES)
def test_cursors(benchmark, case: str) -> None:
    """100 changes of the default by one parameter, taken back one by one."""
    name, _, family = case.partition(" ")
    problem, rng = bbo_suite.problem(name), np.random.default_rng(0)
    structure, default = problem.structure(), problem.default_row()
    columns = np.arange(len(problem.space))
    if family:
        columns = live(structure.passes, family, default)
    columns = rng.choice(columns[problem.space.sizes[columns] > 1], CHANGES)
    values = (default[columns] + rng.integers(1, problem.space.sizes[columns])) % problem.space.sizes[columns]
    cursor = structure.parts.cursor(default)
    touched, back = np.empty(cursor.places, np.int64), default[columns].astype(np.int64)
    arguments = (cursor.change, cursor.key, cursor.handle, columns, values.astype(np.int64), back, touched)
    benchmark.extra_info["places touched by a change"] = follow(*arguments) / 2 / CHANGES
    benchmark.pedantic(follow, arguments, rounds=10, warmup_rounds=1)
