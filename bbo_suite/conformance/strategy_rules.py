"""What every strategy must keep, on small made-up tasks of every kind of space."""

from __future__ import annotations

import dataclasses

import numpy as np

from ..core.strategy import Strategy
from ..errors import UserError
from .toy_tasks import COSTS, KINDS, Batches, play, spaces, uneven

_SHORT = 20
"""Budget of the plays that there are many of: a strategy that fits models needs a second for some."""


def every_space(strategy: type[Strategy]) -> None:
    """Proposes integer indices in range, on every kind of space."""
    for name, space in spaces().items():
        _finish(name, play(strategy, space, uneven))


def only_allowed(strategy: type[Strategy]) -> None:
    """Proposes mostly candidates that the known constraints allow."""
    for name in ("a permutation and constraints", "nine of ten forbidden"):
        space = spaces()[name]
        rows = np.concatenate([configs for configs, _ in play(strategy, space, uneven)])
        share = space.allowed(rows).mean()
        assert share >= 0.5, f"on {name}, only {share:.0%} of its candidates are allowed; see Space.allowed"


def any_costs(strategy: type[Strategy]) -> None:
    """Copes with costs that are equal, failing, huge, tiny or hardly different, on every kind of space."""
    for i, kind in enumerate(KINDS):
        for j, (name, cost) in enumerate(COSTS.items()):
            batch = (8, 5, 12)[(i + j) % 3]
            _finish(f"{kind}, costs {name}", play(strategy, spaces()[kind], cost, _SHORT, batch))


def any_batch(strategy: type[Strategy]) -> None:
    """Copes with batches of one, of the whole budget, and larger than the budget or the space."""
    for name in ("booleans", "one parameter"):
        for budget, batch in ((12, 1), (30, 7), (30, 30), (5, 100), (1, 1)):
            _finish(f"{name}, budget {budget}, batch {batch}", play(strategy, spaces()[name], uneven, budget, batch))


def deterministic(strategy: type[Strategy]) -> None:
    """Proposes the same again, given the same generator and the same costs."""
    for name in KINDS:
        first, second = (list(play(strategy, spaces()[name], uneven, _SHORT, 8)) for _ in range(2))
        assert len(first) == len(second), f"on {name}, it made {len(first)} batches, then {len(second)}"
        for (configs, _), (again, _) in zip(first, second, strict=True):
            assert np.array_equal(configs, again), f"on {name}, two runs with equal generators differ"


def isolated(strategy: type[Strategy]) -> None:
    """Leaves numpy's global generator alone."""
    before = np.random.get_state()  # noqa: NPY002 - it is what must not change
    list(play(strategy, spaces()["booleans"], uneven, _SHORT, 8))
    after = np.random.get_state()  # noqa: NPY002
    same = all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    assert same, "it draws from numpy's global generator; draw from self.rng, or runs cannot be repeated"


def leaves_arrays(strategy: type[Strategy]) -> None:
    """Does not change the arrays that it proposed or was told."""
    for configs, values in play(strategy, spaces()["booleans"], uneven, _SHORT, 8):
        configs.flags.writeable = values.flags.writeable = False


def without_structure(strategy: type[Strategy]) -> None:
    """Copes with a problem that declares no structure, or says what it needs."""
    if strategy.uses_structure:
        try:
            for name in ("booleans", "a sequence"):
                _finish(name, play(strategy, spaces()[name], uneven, _SHORT, 8, declared=False))
        except UserError as error:
            assert str(error), "its UserError is empty; say what it needs"


def has_options(strategy: type[Strategy]) -> None:
    """Describes its options in a frozen dataclass, each with a default and a meaning."""
    options = strategy.Options
    assert dataclasses.is_dataclass(options), "Options is no dataclass"
    assert options.__dataclass_params__.frozen, "Options is not frozen"  # type: ignore[attr-defined]
    for field in dataclasses.fields(options):
        assert field.metadata.get("help"), f"option {field.name} has no meaning; declare it with bbo_suite.option"
    options()


def _finish(name: str, batches: Batches) -> None:
    """Play to the end, and let an error say on what it came."""
    try:
        for _ in batches:
            pass
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
    has_options,
)
