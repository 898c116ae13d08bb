"""The rules for problems that tell the costs of parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from ..core.evaluation import evaluate
from ..core.problem import Problem
from ..errors import UserError, error_boundary
from ..parts.decomposition import Decomposition, Description
from ..parts.parts import Parts, checked_parts

Load = Callable[[], Problem]
_SAMPLES = 8
_CHANGES = 64
_NEARLY = 0.9
"""Of costs of equal keys, so many are equal if parts are nearly exact."""
_DIFFERENT = 3
"""So many different costs make it no accident that a feature is in proportion to them."""


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
    """Gives parts with equal keys equal costs, but for noise, or nearly always if it declares that."""
    problem = load()
    parts = _parts(problem)
    if parts is None or problem.noisy:
        return
    order = np.lexsort((parts.costs, parts.keys))
    keys, costs = parts.keys[order], parts.costs[order]
    if not problem.exact_parts:
        equal = costs[1:][keys[1:] == keys[:-1]] == costs[:-1][keys[1:] == keys[:-1]]
        share = float(equal.mean()) if len(equal) else 1.0
        assert share >= _NEARLY, f"only {share:.0%} of equal keys have equal costs: its parts are not nearly exact"
        return
    for i in np.flatnonzero((keys[1:] == keys[:-1]) & (costs[1:] != costs[:-1]))[:1].tolist():
        first, second = costs[i : i + 2].tolist()
        raise AssertionError(f"the part {keys[i]:016x} costs {first!r} and {second!r}; its key must tell these apart")


def describes_what_it_evaluates(load: Load) -> None:
    """Describes, if it describes parts, those that an evaluation has, with a finite feature for each name."""
    problem = load()
    declared, parts = _declared(problem), _parts(problem)
    if declared is None or (parts is None and problem.tells_parts):
        return
    assert parts is not None, "it describes parts, but does not implement evaluate_parts"
    described = _checked(problem, declared).merged()
    same = all(np.array_equal(a, b) for a, b in ((described.keys, parts.keys), (described.counts, parts.counts)))
    assert same and np.array_equal(described.starts, parts.starts), "the parts described are not those evaluated"


def no_feature_is_the_cost(load: Load) -> None:
    """Describes parts by features of which none is the cost of the part."""
    problem = load()
    described, parts = _described(problem), _parts(problem)
    if described is None or parts is None:
        return
    known = dict(zip(parts.keys.tolist(), parts.costs.tolist(), strict=True))
    costs = np.array([known.get(key, np.inf) for key in described.keys.tolist()])
    works = np.isfinite(costs) & (costs > 0)
    if len(set(costs[works].tolist())) < _DIFFERENT:
        return
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = described.features[works] / costs[works, None]
    same = (ratios[0] != 0) & np.isclose(ratios, ratios[0], rtol=1e-9, atol=0).all(axis=0)
    for i in np.flatnonzero(same)[:1]:
        raise AssertionError(f"the feature {_names(problem)[i]!r} of a part is its cost, or in proportion to it")


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
    problem, described = load(), list[Description]()
    if _described(load()) is None:
        return
    for known in (False, True):
        with _unevaluated(problem):
            declared = _declared(problem)
            assert declared is not None, "it describes parts only at times"
            described.append(declared.describe(_candidates(problem)))
        if not known:
            _parts(problem)
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
    """Return the parts of the candidates; None if it tells none, or wrong ones, of which `parts_add_up` complains."""
    if not problem.tells_parts:
        return None
    with suppress(UserError):
        return evaluate(problem, _candidates(problem), with_parts=True).parts
    return None


def _described(problem: Problem) -> Description | None:
    """Return what it describes; None if nothing, or nothing sound, of which `describes_what_it_evaluates` complains."""
    declared = _declared(problem)
    if declared is not None:
        with suppress(UserError, AssertionError):
            return _checked(problem, declared)
    return None


def _checked(problem: Problem, declared: Decomposition) -> Description:
    """Return what is described of the candidates, after a check of its shape."""
    configs = _candidates(problem)
    with error_boundary(f"problem {problem.id}", "describe"):
        found = declared.describe(configs)
    assert isinstance(found, Description), f"describe returned {type(found).__name__}; return bbo_suite.Description"
    try:
        checked_parts(Parts(found.starts, found.keys, found.counts, np.zeros(len(found.keys))), len(configs))
    except ValueError as error:
        raise AssertionError(f"describe: {error}") from None
    shape, wanted = np.shape(found.features), (len(found.keys), len(declared.feature_names))
    assert shape == wanted, f"the features described have shape {shape}, not {wanted}: a row a part, a column a name"
    assert np.isfinite(found.features).all(), "a feature described is not finite"
    return found


def _names(problem: Problem) -> tuple[str, ...]:
    declared = _declared(problem)
    return () if declared is None else declared.feature_names


def _declared(problem: Problem) -> Decomposition | None:
    structure = problem.structure()
    return None if structure is None else structure.parts


PARTS_RULES = (
    parts_add_up,
    equal_keys_cost_the_same,
    describes_what_it_evaluates,
    describes_without_costs,
    no_feature_is_the_cost,
    cursor_follows,
)
