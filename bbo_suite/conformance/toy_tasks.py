"""Small made-up tasks of every kind, on which strategies are checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from ..core.constraint import Constraint
from ..core.parameters import choice, permutation, product, scale, sequence
from ..core.space import Space
from ..core.strategy import Strategy
from ..core.task import Structure, Task

Cost = Callable[[NDArray], NDArray]
Batches = Iterator[tuple[NDArray, NDArray]]

KINDS = ("booleans", "choices and scales", "a sequence", "a permutation and constraints")
"""The spaces that every kind of cost is tried on."""


def spaces() -> dict[str, Space]:
    """Return small spaces, by what is particular about them; the last four have fewer candidates than a budget."""
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
    """Return a structure for any space: each parameter interacts with the next."""
    d = len(space)
    pairs = [[j for j in (i - 1, i + 1) if 0 <= j < d] for i in range(d)]
    starts = np.cumsum([0, *map(len, pairs)])
    neighbours = np.array([j for own in pairs for j in own], np.int32)
    return Structure(starts, neighbours, np.ones((d, 1), np.float32), ("one",))


def uneven(rows: NDArray) -> NDArray[np.float64]:
    """Return costs that differ by parameter and between neighbours."""
    weights = np.linspace(1, 2, rows.shape[1])
    return 1 + rows @ weights + (rows[:, 1:] != rows[:, :-1]).sum(axis=1)


def _mostly_failing(rows: NDArray) -> NDArray[np.float64]:
    """Return uneven costs, and inf for nine of ten candidates, spread over the space."""
    scattered = rows.astype(np.int64) @ (7919 * np.arange(1, rows.shape[1] + 1) ** 2) % 10
    return np.where(scattered == 9, uneven(rows), np.inf)


COSTS: dict[str, Cost] = {
    "all equal": lambda rows: np.ones(len(rows)),
    "all failing": lambda rows: np.full(len(rows), np.inf),
    "nine of ten failing": _mostly_failing,
    "huge": lambda rows: 1e300 * uneven(rows),
    "tiny": lambda rows: 1e-300 * uneven(rows),
    "alike to the tenth digit": lambda rows: 1 + 1e-11 * uneven(rows),
}


def play(
    strategy: type[Strategy], space: Space, cost: Cost, budget: int = 60, batch: int = 15, declared: bool = True
) -> Batches:
    """Run a strategy with its default options and yield each batch with its costs, checked as the engine does."""
    default = next(iter(space.sample(1, np.random.default_rng(1))))
    structure = chain(space) if strategy.uses_structure and declared else None
    task = Task("rules/made-up", space, default, "seconds", structure)
    player = strategy(task, budget, np.random.default_rng(0), strategy.Options())
    done = 0
    while done < budget:
        wanted = min(batch, budget - done)
        configs = space.check(player.ask(wanted))
        assert len(configs) <= wanted, f"it returned {len(configs)} candidates when asked for {wanted}"
        if not len(configs):
            return
        done += len(configs)
        values = np.where(space.allowed(configs), cost(configs), np.inf)
        yield configs, values
        if done < budget:
            player.tell(configs, values)
