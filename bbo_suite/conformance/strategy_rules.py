"""The rules that every strategy must follow, on small tasks with every kind of space."""

from __future__ import annotations

import dataclasses
import functools
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ..core.level import Level
from ..core.problem import Evaluations
from ..core.strategy import Strategy
from ..errors import UserError
from ..loop import drive
from ..testing import answering
from .toy_tasks import COSTS, KINDS, Batches, play_parts, play_task, spaces, started, uneven

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
