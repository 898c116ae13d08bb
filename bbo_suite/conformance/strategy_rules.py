"""The rules that every strategy must follow, on small tasks with every kind of space."""

from __future__ import annotations

import dataclasses
import functools
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..core.constraint import Constraint
from ..core.level import Level
from ..core.problem import Evaluations
from ..core.space import Space, choice, permutation, product, scale, sequence
from ..core.strategy import Strategy
from ..core.task import Compiler, Graph, Structure
from ..errors import UserError
from ..loop import drive
from ..parts.parts import Parts
from ..testing import Cost, answering, play, start

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


LONG = 200
"""Evaluations of one run on each kind of space: enough for a strategy to fit its models."""
SHORT = 20
"""Evaluations of one run in rules that need many runs."""


_Result = TypeVar("_Result")


@dataclass(frozen=True)
class LongRun:
    """A strategy's run of `LONG` evaluations on one kind of space.

    Attributes:
      proposed: the candidates of each batch, as they were proposed.
      touched: whether the strategy later changed an array that it proposed or was told.
      drew: the global generators that it changed.
    """

    proposed: list[NDArray]
    touched: bool
    drew: tuple[str, ...]


def every_space(strategy: type[Strategy]) -> None:
    """Proposes integer indices in range, on every kind of space, or says what it needs."""
    assert _accepted(strategy, KINDS), "it refuses every kind of space"
    for name, space in spaces().items():
        if not _accepted(strategy, (name,)):
            continue
        if name in KINDS:
            _named(name, lambda name=name: _long_runs(strategy, name))  # type: ignore[misc]
        else:
            _finish(name, play_task(strategy, space, uneven))


def only_allowed(strategy: type[Strategy]) -> None:
    """Proposes mostly candidates that the known constraints allow."""
    for name in _accepted(strategy, ("a permutation and constraints", "nine of ten forbidden")):
        kept = _long_runs(strategy, name)[0].proposed if name in KINDS else None
        batches = kept or [configs for configs, _ in play_task(strategy, spaces()[name], uneven)]
        share = spaces()[name].allowed(np.concatenate(batches)).mean()
        assert share >= 0.5, f"on {name}, only {share:.0%} of its candidates are allowed; see Space.allowed"


def any_costs(strategy: type[Strategy]) -> None:
    """Works with costs that are equal, failing, huge, tiny or hardly different, on every kind of space."""
    for i, kind in enumerate(_accepted(strategy, KINDS)):
        for j, (name, cost) in enumerate(COSTS.items()):
            budget = LONG if j % len(KINDS) == i else SHORT  # each cost once in a run long enough to fit models
            batch = (8, 5, 12)[(i + j) % 3]
            _finish(f"{kind}, costs {name}", play_task(strategy, spaces()[kind], cost, budget, batch))


def any_batch(strategy: type[Strategy]) -> None:
    """Works with batches of one, of the whole budget, and larger than the budget or the space."""
    for name in _accepted(strategy, ("booleans", "one parameter")) or _accepted(strategy, KINDS)[:1]:
        for budget, batch in ((12, 1), (30, 7), (30, 30), (5, 100), (1, 1)):
            batches = play_task(strategy, spaces()[name], uneven, budget, batch)
            _finish(f"{name}, budget {budget}, batch {batch}", batches)


def deterministic(strategy: type[Strategy]) -> None:
    """Proposes the same again, given the same generator and the same costs."""
    for name in _accepted(strategy, KINDS):
        first, second = (run.proposed for run in _long_runs(strategy, name))
        assert len(first) == len(second), f"on {name}, it made {len(first)} batches, then {len(second)}"
        same = all(map(np.array_equal, first, second))
        assert same, f"on {name}, two runs with equal generators differ"


def isolated(strategy: type[Strategy]) -> None:
    """Leaves the global generators of Python and numpy alone."""
    for name in _accepted(strategy, KINDS):
        drew = " and ".join(_long_runs(strategy, name)[1].drew)  # the first also imports libraries, some of which draw
        assert not drew, f"on {name}, it changes the global state of {drew}; draw from self.rng, or runs differ"


def leaves_arrays(strategy: type[Strategy]) -> None:
    """Does not change the arrays that it proposed or was told."""
    for name in _accepted(strategy, KINDS):
        assert not _long_runs(strategy, name)[0].touched, f"on {name}, it changes an array after `ask` or in `tell`"


def without_structure(strategy: type[Strategy]) -> None:
    """Works with a problem that declares no structure and whose compiling tells nothing, or says what it needs."""
    if strategy.level >= Level.COMPILATION:
        try:
            for name in ("booleans", "a sequence"):
                _finish(name, play_task(strategy, spaces()[name], uneven, SHORT, 8, declared=False))
        except UserError as error:
            assert str(error), "its UserError is empty; say what it needs"


def receives_parts(strategy: type[Strategy]) -> None:
    """Works with problems that tell the costs of parts, described or not, some failing, and proposes the same again."""
    for number, name in enumerate(_accepted(strategy, KINDS) if strategy.level >= Level.PARTS else ()):
        for declared in (True, False):
            words, budget = f"{name}, parts{'' if declared else ' not'} described", LONG if number == 0 else SHORT
            task = functools.partial(play_parts, strategy, spaces()[name], budget, declared, failing=number == 1)
            try:
                first, second = (_named(words, lambda task=task: [rows.copy() for rows, _ in task()]) for _ in range(2))  # type: ignore[misc]
            except UserError as error:
                assert not declared and str(error), f"on {words}, it says: {error}"
                continue
            same = len(first) == len(second) and all(map(np.array_equal, first, second))
            assert same, f"on {words}, two runs with equal generators and parts differ"


def has_options(strategy: type[Strategy]) -> None:
    """Describes its options in a frozen dataclass, each with a default and a help text."""
    options = strategy.Options
    assert dataclasses.is_dataclass(options), "Options is not a dataclass"
    assert options.__dataclass_params__.frozen, "Options is not frozen"  # type: ignore[attr-defined]
    for field in dataclasses.fields(options):
        assert field.metadata.get("help"), f"option {field.name} has no help text; declare it with bbo_suite.option"
    options()


def _accepted(strategy: type[Strategy], names: Iterable[str]) -> tuple[str, ...]:
    """Return those of some spaces on which the strategy starts; on others a UserError says what it needs."""
    return tuple(name for name in names if not _refusal(strategy, name))


@functools.cache
def _refusal(strategy: type[Strategy], name: str) -> str:
    """Return why a strategy does not start on a space; nothing if it does."""
    try:
        _named(name, lambda: next(play_task(strategy, spaces()[name], uneven, 1, 1), None))
    except UserError as error:
        assert str(error), f"on {name}, its UserError is empty; say what it needs"
        return str(error)
    return ""


@functools.lru_cache(maxsize=len(KINDS))
def _long_runs(strategy: type[Strategy], kind: str) -> tuple[LongRun, LongRun]:
    """Return two runs with equal generators; several rules look at them."""
    return _long_run(strategy, kind, 1), _long_run(strategy, kind, 2)


def _long_run(strategy: type[Strategy], kind: str, global_seed: int) -> LongRun:
    """Run the strategy after seeding the global generators, whose states are restored afterwards."""
    states = random.getstate(), np.random.get_state()  # noqa: NPY002
    random.seed(global_seed)
    np.random.seed(global_seed)  # noqa: NPY002
    before = _global_states()
    arrays: list[NDArray] = []
    copies: list[NDArray] = []
    evaluated = answering(spaces()[kind], uneven)

    def answer(configs: NDArray, seconds: float) -> Evaluations:
        found = evaluated(configs, seconds)
        arrays.extend((configs, found.values))
        copies.extend((configs.copy(), found.values.copy()))
        return found

    try:
        for _ in drive(started(strategy, spaces()[kind], LONG), answer, 15):
            pass
        after = _global_states()
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
    touched = not all(map(np.array_equal, arrays, copies))
    return LongRun(copies[::2], touched, tuple(name for name in before if before[name] != after[name]))


def _global_states() -> dict[str, str]:
    """Return the states of the global generators as text."""
    return {"random": str(random.getstate()), "numpy.random": str(np.random.get_state())}  # noqa: NPY002


def _finish(name: str, batches: Batches) -> None:
    """Run to the end; an error names the task."""
    _named(name, lambda: list(batches))


def _named(name: str, run: Callable[[], _Result]) -> _Result:
    try:
        return run()
    except UserError:
        raise
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
    without_structure,
    receives_parts,
    has_options,
)
