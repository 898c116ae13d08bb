"""Small tasks with every kind of space, on which strategies are checked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..core.constraint import Constraint
from ..core.level import Level
from ..core.space import Space, choice, permutation, product, scale, sequence
from ..core.strategy import Strategy
from ..core.task import Compiler, Graph, Structure
from ..parts.parts import Parts
from ..testing import Cost, play, start

if TYPE_CHECKING:
    from ..parts.table import TableDecomposition

Batches = Iterator[tuple[NDArray, NDArray]]

KINDS = ("booleans", "choices and scales", "a sequence", "a permutation and constraints")
"""The names of one space of each kind; every cost function is tried on each of them."""


def spaces() -> dict[str, Space]:
    """Return small spaces by a description; the last four have fewer candidates than the budget."""
    tenth = Constraint((0, 1), lambda rows: rows.sum(axis=1) % 10 == 3)
    single = Constraint((0, 1), lambda rows: rows.sum(axis=1) == 4)
    tied = Constraint((5, 6), lambda rows: rows.sum(axis=1) < 4)
    return {
        "booleans": Space(np.full(12, 2)),
        "choices and scales": product(*(choice(f"c{i}", "abcd") for i in range(4)), scale("s", range(9))),
        "a sequence": product(sequence("passes", 6, "abcde")),
        "a permutation and constraints": product(
            permutation("order", "abcde"), scale("x", range(4)), scale("y", range(5)), constraints=[tied]
        ),
        "nine of ten forbidden": product(
            scale("x", range(10)), scale("y", range(10)), choice("c", "abc"), constraints=[tenth]
        ),
        "one parameter": product(choice("c", "abcdefg")),
        "one candidate": product(choice("c", "a"), choice("d", "b")),
        "one allowed candidate": product(scale("x", range(3)), scale("y", range(3)), constraints=[single]),
    }


def chain(space: Space) -> Structure:
    """Return a structure in which each parameter decides a node of a chain and interacts with the next."""
    d = len(space)
    pairs = [[j for j in (i - 1, i + 1) if 0 <= j < d] for i in range(d)]
    starts = np.cumsum([0, *map(len, pairs)])
    neighbours = np.array([j for others in pairs for j in others], np.int32)
    features, nodes = np.ones((d, 1), np.float32), np.arange(d, dtype=np.int32)
    graph = Graph(features, ("one",), np.column_stack([nodes[:-1], nodes[1:]]))
    return Structure(starts, neighbours, features, ("one",), graph, nodes=nodes)


def uneven(rows: NDArray) -> NDArray[np.float64]:
    """Return costs with a weight for each parameter and a term for each pair of neighbours that differ."""
    weights = np.linspace(1, 2, rows.shape[1])
    return 1 + rows @ weights + (rows[:, 1:] != rows[:, :-1]).sum(axis=1)


def counted(space: Space) -> Compiler:
    """Return a compiler that tells how often a candidate has each of the first three indices, and their sum."""

    def count(rows: NDArray) -> NDArray[np.float64]:
        return np.column_stack([*((rows == index).sum(axis=1) for index in range(3)), rows.sum(axis=1)]).astype(float)

    return Compiler("testing/task", space, ("zeros", "ones", "twos", "sum"), count)


def described(space: Space) -> TableDecomposition:
    """Return which parts `uneven` costs have: one for all candidates, one for each parameter, one for each pair."""
    from ..parts.table import TableDecomposition  # it loads a compiler

    d = len(space)
    depends = [np.arange(0), *(np.array([i]) for i in range(d)), *(np.array([i, i + 1]) for i in range(d - 1))]
    parts = TableDecomposition(
        depends=depends,
        contents=np.arange(2 * d, dtype=np.uint64),
        counts=np.ones(2 * d),
        features=np.array([[len(columns), columns.sum(), 1.0] for columns in depends], np.float64),
        feature_names=("parameters", "their sum", "estimate"),
        numbers=np.tile(np.arange(space.sizes.max(), dtype=np.float64), (d, 1)),
    )
    parts.estimate = 2
    return parts


def uneven_parts(parts: TableDecomposition, rows: NDArray, failing: bool) -> Parts:
    """Return the parts of `uneven` costs.

    Args:
      failing: that of the first parameter fails, unless the parameter is 0.
    """
    known, weights = parts.describe(rows), np.linspace(1, 2, rows.shape[1])
    costs = np.hstack([np.ones((len(rows), 1)), rows * weights, rows[:, 1:] != rows[:, :-1]])
    if failing:
        costs[rows[:, 0] > 0, 1] = np.inf
    return Parts(known.starts, known.keys, known.counts, costs.ravel())


def play_parts(
    strategy: type[Strategy], space: Space, budget: int, declared: bool, failing: bool, batch: int = 8
) -> Batches:
    """Run a strategy on a task that tells the parts of `uneven` costs, and yield each batch with its costs.

    Args:
      declared: whether the structure says which parts a candidate has.
      failing: whether some parts fail.
    """
    parts = described(space)
    structure = replace(chain(space), parts=parts if declared else None)
    started = start(strategy, space, budget, structure=structure)
    return play(
        started,
        lambda rows: uneven_parts(parts, rows, failing).sums(),
        batch,
        lambda rows: uneven_parts(parts, rows, failing),
    )


def _mostly_failing(rows: NDArray) -> NDArray[np.float64]:
    """Return uneven costs, but inf for nine of ten candidates, spread over the space."""
    scattered = rows.astype(np.int64) @ (7919 * np.arange(1, rows.shape[1] + 1) ** 2) % 10
    return np.where(scattered == 9, uneven(rows), np.inf)


COSTS: dict[str, Cost] = {
    "all equal": lambda rows: np.ones(len(rows)),
    "all failing": lambda rows: np.full(len(rows), np.inf),
    "nine of ten failing": _mostly_failing,
    "huge": lambda rows: 1e300 * uneven(rows),
    "tiny": lambda rows: 1e-300 * uneven(rows),
    "equal to ten digits": lambda rows: 1 + 1e-11 * uneven(rows),
}


def play_task(
    strategy: type[Strategy], space: Space, cost: Cost, budget: int = 60, batch: int = 15, declared: bool = True
) -> Batches:
    """Run a strategy with its default options and yield each batch with its costs; see `started`."""
    return play(started(strategy, space, budget, declared), cost, batch)


def started(strategy: type[Strategy], space: Space, budget: int, declared: bool = True) -> Strategy:
    """Return a strategy with its default options at the start of a run.

    Args:
      declared: whether a strategy that uses structures, or parts, is given one, with a description of its parts; or
        what compiling tells.
    """
    default = space.sample(1, np.random.default_rng(1))[0]
    seen = described(space) if strategy.level >= Level.PARTS else None  # describing them loads a compiler
    structure = replace(chain(space), parts=seen) if declared else None
    return start(
        strategy, space, budget, structure=structure, default=default, compiler=counted(space) if declared else None
    )
