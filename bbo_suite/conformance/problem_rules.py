"""The rules that every problem must follow, and those for problems that tell the costs of parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ..core.evaluation import evaluate
from ..core.level import Level
from ..core.multipass import Decisions, MultiPass
from ..core.problem import Problem, Status
from ..errors import UserError, error_boundary
from ..parts.decomposition import Decomposition, Description
from ..parts.parts import Parts, checked_parts

Load = Callable[[], Problem]
_DESCRIBED = 8
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
    configs = _with_default(problem)
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
    keys, counts, features = cursor.parts()
    for _ in range(_CHANGES):
        columns = rng.integers(0, len(problem.space), rng.integers(1, 4))
        config[columns] = rng.integers(0, problem.space.sizes[columns])
        touched = cursor.set(columns, config[columns])
        keys[touched], counts[touched], features[touched] = cursor.parts(touched)
    described = declared.describe(config[None])
    assert _sorted_parts(keys, counts, features) == _sorted_parts(
        described.keys, described.counts, described.features
    ), f"after {_CHANGES} changes, the cursor's parts are not those described"


def _sorted_parts(keys: NDArray, counts: NDArray, features: NDArray) -> list[tuple[int, float, bytes]]:
    rows = zip(keys.tolist(), counts.tolist(), features, strict=True)
    return sorted((key, count, row.tobytes()) for key, count, row in rows if count)


def describes_without_costs(load: Load) -> None:
    """Describes parts without an evaluation, and the same before and after the costs are known."""
    problem, described = load(), list[Description]()
    if _described(load()) is None:
        return
    for known in (False, True):
        with _unevaluated(problem):
            declared = _declared(problem)
            assert declared is not None, "it describes parts only at times"
            described.append(declared.describe(_with_default(problem)))
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


def _with_default(problem: Problem) -> NDArray:
    samples = problem.space.sample(_DESCRIBED, np.random.default_rng(0))
    return np.vstack([problem.default_row()[None], samples])


def _parts(problem: Problem) -> Parts | None:
    """Return the parts of the candidates; None if it tells none, or wrong ones, of which `parts_add_up` complains."""
    if not problem.tells_parts:
        return None
    with suppress(UserError):
        return evaluate(problem, _with_default(problem), with_parts=True).parts
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
    configs = _with_default(problem)
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


_CHAINS = 8
_SAMPLES = 16
_PASTED = 3


def _passes(problem: Problem) -> MultiPass | None:
    structure = problem.structure()
    return structure.passes if structure else None


def _walk(passes: MultiPass, row: NDArray) -> Iterator[tuple[str, Any, Decisions]]:
    """Yield each pass with its graph and decisions; the caller may change the row before the next pass."""
    graph = passes.source
    for name in passes.passes:
        yield name, graph, passes.decisions(name, graph)
        graph = passes.apply(name, graph, row)


def decisions_fit(load: Load) -> None:
    """If it has passes, declares decisions that fit the flat space on every graph."""
    problem = load()
    passes, sizes = _passes(problem), problem.space.sizes
    if passes is None:
        return
    columns = np.concatenate([passes.columns(name) for name in passes.passes])
    assert np.array_equal(np.sort(columns), np.arange(len(sizes))), "a column belongs to no pass, or to two"
    for row in problem.space.sample(_CHAINS, np.random.default_rng(0)):
        for name, graph, live in _walk(passes, row):
            assert live is passes.decisions(name, graph), (
                f"{name} returns a new object when asked again for the same decisions"
            )
            assert (np.diff(live.columns) > 0).all(), f"the columns of {name} do not ascend"
            assert np.isin(live.columns, passes.columns(name)).all(), f"{name} decides columns of another pass"
            assert ((live.sizes >= 1) & (live.sizes <= sizes[live.columns])).all(), f"sizes of {name} are out of range"
            chosen = passes.default(name, graph)
            assert ((chosen >= 0) & (chosen < live.sizes)).all(), f"the default of {name} is out of range"


def only_live_decisions_count(load: Load) -> None:
    """If it has passes, has costs that depend only on the decisions that apply to the graph."""
    problem = load()
    passes = _passes(problem)
    if passes is None:
        return
    rows = problem.space.sample(_CHAINS, np.random.default_rng(0))
    clean = np.repeat(problem.default_row()[None], len(rows), axis=0)
    for row, copy in zip(rows, clean, strict=True):
        for _, _, live in _walk(passes, copy):
            copy[live.columns] = np.minimum(row[live.columns], live.sizes - 1)
    same = evaluate(problem, rows).values == evaluate(problem, clean).values
    assert same.all(), "a decision that does not apply to its graph, or a value beyond its size, changes a cost"


def passes_default(load: Load) -> None:
    """If it has passes, has the default that the passes choose one after another."""
    problem = load()
    passes = _passes(problem)
    if passes is None:
        return
    row = problem.default_row()
    for name, graph, live in _walk(passes, row):
        row[live.columns] = passes.default(name, graph)
    chosen, default = evaluate(problem, np.stack([row, problem.default_row()])).values
    assert chosen == default, f"the choices of the passes cost {chosen}, but the default costs {default}"


MULTIPASS_RULES = (decisions_fit, only_live_decisions_count, passes_default)


def _candidates(problem: Problem) -> NDArray:
    return problem.space.sample(_SAMPLES, np.random.default_rng(0))


def default_works(load: Load) -> None:
    """Has a default configuration that is allowed, does not fail, and does not cost 0."""
    problem = load()
    result = evaluate(problem, problem.space.check(np.asarray(problem.default)[None]))
    status = Status(int(result.status[0]))
    assert status is Status.OK, f"the default's status is {status.word}: {result.reasons.get(0, 'no reason given')}"
    assert result.values[0] > 0, "the default costs 0, so nothing can be better; add a constant to all costs"


def has_a_unit(load: Load) -> None:
    """Names the unit of its costs."""
    assert load().unit, "its unit is empty; say what a cost is measured in"


def answers(load: Load) -> None:
    """Returns a finite cost, or inf and a status, for every allowed candidate."""
    problem = load()
    evaluate(problem, _candidates(problem))


def repeatable(load: Load) -> None:
    """Gives a candidate the same cost in any batch and in any order, unless it declares that it is noisy."""
    problem = load()
    if problem.noisy:
        return
    configs = _candidates(problem)
    together = evaluate(problem, configs).values
    backwards = evaluate(problem, configs[::-1]).values[::-1]
    alone = np.concatenate([evaluate(problem, configs[i : i + 1]).values for i in range(len(configs))])
    assert np.array_equal(together, backwards), "costs depend on the order of a batch"
    assert np.array_equal(together, alone), "costs depend on what else is in a batch"


def loads_alike(load: Load) -> None:
    """Is the same when loaded again: space, default, fingerprint and, unless it is noisy, costs."""
    first, second = load(), load()
    assert first.space.digest() == second.space.digest(), "its space differs from load to load"
    assert np.array_equal(first.default, second.default), "its default differs from load to load"
    assert first.fingerprint() == second.fingerprint(), "its fingerprint differs from load to load"
    if not first.noisy:
        costs = [evaluate(problem, _candidates(problem)).values for problem in (first, second)]
        assert np.array_equal(costs[0], costs[1]), "costs differ from load to load"


def pastes(load: Load) -> None:
    """Writes its default, and any other candidate, in the compiler's own syntax."""
    problem = load()
    for config in (problem.default_row(), *_candidates(problem)[:_PASTED]):
        text = problem.paste(config.copy())
        assert isinstance(text, str), f"paste returned {type(text).__name__}, not text"
        assert text.strip(), "paste returned an empty text; return a comment if nothing differs from the default"


def explains(load: Load) -> None:
    """Names the changes of a candidate, and the kernels, if it knows any, whose costs add up to its cost."""
    problem = load()
    assert isinstance(problem.usage(), str), "usage does not return text"
    for config in (problem.default_row(), *_candidates(problem)[:_PASTED]):
        differing = set(np.flatnonzero(config != problem.default_row()).tolist())
        assert {change.column for change in problem.changes(config)} <= differing, "changes names what did not change"
        value = evaluate(problem, config[None]).values[0]
        if np.isfinite(value) and (picture := problem.picture(config)) is not None:
            total = sum(kernel.cost for kernel in picture.kernels)
            assert np.isclose(total, value), f"the kernels cost {total} together, and the candidate {value}"
            names = [kernel.name for kernel in picture.kernels]
            assert len(set(names)) == len(names), "two kernels of a picture have the same name"
            assert all(kernel.name in kernel.members for kernel in picture.kernels), (
                "a kernel is not a member of itself"
            )


def compiles_alike(load: Load) -> None:
    """Tells the same of a candidate, if compiling tells anything, whenever and in whatever batch it is compiled."""
    problem = load()
    compiler = problem.task(Level.COMPILATION).compiler
    if compiler is None:
        return
    configs = np.concatenate([problem.default_row()[None], _candidates(problem)[:_PASTED]])
    together, alone = compiler(configs), np.concatenate([compiler(config[None]) for config in configs])
    assert np.isfinite(together[0]).all(), "compiling the default tells nan"
    assert np.array_equal(together, alone, equal_nan=True), "compiling a candidate again tells something else"
    assert len(set(compiler.statistics)) == len(compiler.statistics), "two statistics have the same name"


def optimum_holds(load: Load) -> None:
    """Declares no optimum and no bound that a candidate beats."""
    problem = load()
    for what, least in (("optimum", problem.optimum), ("bound", problem.bound)):
        if least is not None:
            best = evaluate(problem, _candidates(problem)).values.min()
            assert best >= least * (1 - 1e-12), f"a candidate costs {best}, less than the {what} declared"


def structure_fits(load: Load) -> None:
    """Declares a structure, if any, that fits its space: symmetric, in range, one row of features per parameter."""
    problem = load()
    structure = problem.structure()
    assert structure is None or not (why := structure.misfit(len(problem.space))), why


PROBLEM_RULES = (
    default_works,
    has_a_unit,
    answers,
    repeatable,
    loads_alike,
    pastes,
    explains,
    compiles_alike,
    optimum_holds,
    structure_fits,
    *MULTIPASS_RULES,
    *PARTS_RULES,
)
