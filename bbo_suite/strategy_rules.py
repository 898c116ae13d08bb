"""What every strategy must keep, on small made-up tasks of every kind of space."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from .constraint import Constraint
from .parameters import choice, permutation, product, scale, sequence
from .space import Space
from .strategy_base import Strategy
from .task import Structure, Task

Cost = Callable[[NDArray], NDArray]


def spaces() -> dict[str, Space]:
    """Return small spaces of every kind, by what is particular about them."""
    few = Constraint((0, 1), lambda rows: rows.sum(axis=1) < 4)
    return {
        "booleans": Space(np.full(12, 2)),
        "choices and scales": product(*(choice(f"c{i}", "abcd") for i in range(4)), scale("s", range(9))),
        "a sequence": product(sequence("passes", 6, "abcde")),
        "a permutation": product(permutation("order", "abcde"), choice("c", "ab")),
        "constraints": product(scale("x", range(4)), scale("y", range(5)), choice("c", "abc"), constraints=[few]),
        "one parameter": product(choice("c", "abcdefg")),
        "one candidate": product(choice("c", "a"), choice("d", "b")),
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


COSTS: dict[str, Cost] = {
    "uneven": uneven,
    "all equal": lambda rows: np.ones(len(rows)),
    "all failing": lambda rows: np.full(len(rows), np.inf),
    "half failing": lambda rows: np.where(rows.sum(axis=1) % 2 == 0, uneven(rows), np.inf),
    "huge": lambda rows: 1e300 * uneven(rows),
    "tiny": lambda rows: 1e-300 * uneven(rows),
    "alike to the tenth digit": lambda rows: 1 + 1e-11 * uneven(rows),
}


def play(
    strategy: type[Strategy], space: Space, cost: Cost, budget: int = 60, batch: int = 8, seed: int = 0
) -> Iterator[tuple[NDArray, NDArray]]:
    """Run a strategy with its default options and yield each batch with its costs, checked as the engine does."""
    default = next(iter(space.sample(1, np.random.default_rng(1))))
    structure = chain(space) if strategy.uses_structure else None
    task = Task("rules/made-up", space, default, "seconds", structure)
    player = strategy(task, budget, np.random.default_rng(seed), strategy.Options())
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


def every_space(strategy: type[Strategy]) -> None:
    """Proposes integer indices in range, on every kind of space."""
    for name, space in spaces().items():
        for _ in _naming(name, play(strategy, space, uneven)):
            pass


def only_allowed(strategy: type[Strategy]) -> None:
    """Proposes mostly candidates that the known constraints allow."""
    for name in ("a permutation", "constraints"):
        space = spaces()[name]
        rows = np.concatenate([configs for configs, _ in play(strategy, space, uneven)])
        share = space.allowed(rows).mean()
        assert share >= 0.5, f"on {name}, only {share:.0%} of its candidates are allowed; see Space.allowed"


def any_costs(strategy: type[Strategy]) -> None:
    """Copes with costs that are equal, failing, huge, tiny or hardly different."""
    space = spaces()["booleans"]
    for name, cost in COSTS.items():
        for _ in _naming(name, play(strategy, space, cost)):
            pass


def any_batch(strategy: type[Strategy]) -> None:
    """Copes with batches of one, of the whole budget, and larger than the space."""
    for space in (spaces()["booleans"], spaces()["one parameter"]):
        for batch in (1, 7, 30):
            for _ in _naming(f"batch {batch}", play(strategy, space, uneven, 30, batch)):
                pass


def deterministic(strategy: type[Strategy]) -> None:
    """Proposes the same again, given the same generator and the same costs."""
    for name in ("booleans", "choices and scales"):
        first, second = (list(play(strategy, spaces()[name], uneven)) for _ in range(2))
        assert len(first) == len(second), f"on {name}, it made {len(first)} batches, then {len(second)}"
        for (configs, _), (again, _) in zip(first, second, strict=True):
            assert np.array_equal(configs, again), f"on {name}, two runs with equal generators differ"


def isolated(strategy: type[Strategy]) -> None:
    """Leaves numpy's global generator alone."""
    before = np.random.get_state()  # noqa: NPY002 - it is what must not change
    list(play(strategy, spaces()["booleans"], uneven))
    after = np.random.get_state()  # noqa: NPY002
    same = all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    assert same, "it draws from numpy's global generator; draw from self.rng, or runs cannot be repeated"


def leaves_arrays(strategy: type[Strategy]) -> None:
    """Does not change the arrays that it proposed or was told."""
    for configs, values in play(strategy, spaces()["booleans"], uneven):
        configs.flags.writeable = values.flags.writeable = False


def has_options(strategy: type[Strategy]) -> None:
    """Describes its options in a frozen dataclass, each with a default and a meaning."""
    options = strategy.Options
    assert dataclasses.is_dataclass(options), "Options is no dataclass"
    assert options.__dataclass_params__.frozen, "Options is not frozen"  # type: ignore[attr-defined]
    for field in dataclasses.fields(options):
        assert field.metadata.get("help"), f"option {field.name} has no meaning; declare it with bbo_suite.option"
    options()


def _naming(name: str, batches: Iterator[tuple[NDArray, NDArray]]) -> Iterator[tuple[NDArray, NDArray]]:
    """Yield the batches, and let an error say on what it came."""
    try:
        yield from batches
    except Exception as error:
        raise AssertionError(f"on {name}: {type(error).__name__}: {error}") from error


STRATEGY_RULES = (
    every_space,
    only_allowed,
    any_costs,
    any_batch,
    deterministic,
    isolated,
    leaves_arrays,
    has_options,
)
