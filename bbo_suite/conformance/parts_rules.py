"""The rules for problems that tell the costs of parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from ..core.evaluation import evaluate
from ..core.problem import Problem
from ..parts.decomposition import Decomposition
from ..parts.parts import Parts

Load = Callable[[], Problem]
_SAMPLES = 8
_CHANGES = 64


def parts_add_up(load: Load) -> None:
    """Gives parts, if any, whose combined costs are the candidate's, and the same cost as without parts."""
    problem = load()
    if not problem.tells_parts:
        return
    configs = _candidates(problem)
    told, plain = evaluate(problem, configs, with_parts=True), evaluate(problem, configs)  # checks the sums
    assert told.parts is not None, "evaluate_parts returns no parts"
    same = problem.noisy or np.array_equal(told.values, plain.values)
    assert same, "evaluate_parts and evaluate return different costs"


def equal_keys_cost_the_same(load: Load) -> None:
    """Gives parts with equal keys equal costs, but for noise."""
    problem = load()
    parts = _parts(problem)
    if parts is None or problem.noisy:
        return
    order = np.lexsort((parts.costs, parts.keys))
    keys, costs = parts.keys[order], parts.costs[order]
    for i in np.flatnonzero((keys[1:] == keys[:-1]) & (costs[1:] != costs[:-1]))[:1]:
        raise AssertionError(f"the part {keys[i]:016x} costs {costs[i]!r} and {costs[i + 1]!r}")


def describes_what_it_evaluates(load: Load) -> None:
    """Describes, if it describes parts, those that an evaluation has, with a finite feature for each name."""
    problem = load()
    declared, parts = _declared(problem), _parts(problem)
    if declared is None:
        return
    assert parts is not None, "it describes parts, but evaluate_parts returns none"
    description = declared.describe(_candidates(problem))
    shape = (len(description.keys), len(declared.feature_names))
    assert description.features.shape == shape, f"features have shape {description.features.shape}, not {shape}"
    assert np.isfinite(description.features).all(), "a feature is not finite"
    described = description.merged()
    same = all(np.array_equal(a, b) for a, b in ((described.keys, parts.keys), (described.counts, parts.counts)))
    assert same and np.array_equal(described.starts, parts.starts), "the parts described are not those evaluated"


def cursor_follows(load: Load) -> None:
    """Follows the parts with its cursor, if it has one, as it describes them."""
    problem = load()
    declared, config = _declared(problem), problem.default_row()
    cursor = None if declared is None else declared.cursor(config)
    if declared is None or cursor is None:
        return
    rng = np.random.default_rng(0)
    held = {place: cursor.part(place) for place in range(cursor.places)}
    for _ in range(_CHANGES):
        columns = rng.integers(0, len(problem.space), rng.integers(1, 4))
        config[columns] = rng.integers(0, problem.space.sizes[columns])
        held |= {place: cursor.part(place) for place in cursor.set(columns, config[columns]).tolist()}
    followed = sorted((key, count, features.tobytes()) for key, count, features in held.values() if count)
    described = declared.describe(config[None])
    whole = zip(described.keys.tolist(), described.counts.tolist(), described.features, strict=True)
    assert followed == sorted((key, count, row.tobytes()) for key, count, row in whole), (
        f"after {_CHANGES} changes, the cursor's parts are not those described"
    )


def describes_without_costs(load: Load) -> None:
    """Describes parts without an evaluation, and the same before and after the costs are known."""
    problem, described = load(), []
    configs = _candidates(problem)
    for known in (False, True):
        with _unevaluated(problem):
            declared = _declared(problem)
            if declared is None:
                return
            described.append(declared.describe(configs))
        if not known:
            evaluate(problem, configs, with_parts=True)
    before, after = described
    for name in ("starts", "keys", "counts", "features"):
        same = np.array_equal(getattr(before, name), getattr(after, name))
        assert same, f"the {name} that it describes change once candidates were evaluated"


@contextmanager
def _unevaluated(problem: Problem) -> Iterator[None]:
    """Let evaluations fail meanwhile."""

    def refuse(configs: NDArray) -> NoReturn:
        raise AssertionError("it evaluates candidates in order to describe their parts")

    names = ("evaluate", "evaluate_parts")
    vars(problem).update(dict.fromkeys(names, refuse))
    try:
        yield
    finally:
        for name in names:
            del vars(problem)[name]


def _candidates(problem: Problem) -> NDArray:
    samples = problem.space.sample(_SAMPLES, np.random.default_rng(0))
    return np.vstack([problem.default_row()[None], samples])


def _parts(problem: Problem) -> Parts | None:
    return evaluate(problem, _candidates(problem), with_parts=True).parts if problem.tells_parts else None


def _declared(problem: Problem) -> Decomposition | None:
    structure = problem.structure()
    return None if structure is None else structure.parts


PARTS_RULES = (
    parts_add_up,
    equal_keys_cost_the_same,
    describes_what_it_evaluates,
    describes_without_costs,
    cursor_follows,
)
