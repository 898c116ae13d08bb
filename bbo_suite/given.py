"""Turns the arguments of `run` (ids, classes and objects) into ids of a registry that knows them all."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .core.code_version import is_ours
from .core.problem import Problem
from .core.strategy import Strategy
from .errors import UserError
from .objects import GivenProblem, Objects, id_of_class
from .plugins import file_of
from .registry import Registry


@dataclass(frozen=True)
class Given:
    """The strategies and problems of a study.

    Attributes:
      registry: knows the ids, plugins and objects included.
      strategies, problems: their ids, without duplicates.
    """

    registry: Registry
    strategies: tuple[str, ...]
    problems: tuple[str, ...]


def resolve(strategies: object, problems: object, plugins: Sequence[str | Path] | str | Path) -> Given:
    """Return the ids of strategies and problems that are given as ids, classes or objects.

    Raises:
      UserError: something else is given, or an id is taken.
    """
    chosen, tasks = _listed(strategies, "strategy"), _listed(problems, "problem")
    files = [Path(plugins)] if isinstance(plugins, str | Path) else [Path(path) for path in plugins]
    found = [file_of(each if isinstance(each, type) else type(each)) for each in (*chosen, *tasks)]
    known = dict.fromkeys(path.absolute() for path in [*files, *filter(None, found)])  # workers may change directory
    registry = Registry(tuple(known))
    names = [_strategy(registry, each) for each in chosen]
    places = [_problem(registry, each) for each in tasks]
    new = Objects(
        tuple({each: None for each in names if not isinstance(each, str)}),
        tuple({each: None for each in places if not isinstance(each, str)}),
    )
    _check_distinct([name for name, _ in new.strategies], "strategy classes")
    _check_distinct([problem.id for problem in new.problems], "problems")
    strategy_ids = dict.fromkeys(each if isinstance(each, str) else each[0] for each in names)
    problem_ids = dict.fromkeys(each if isinstance(each, str) else each.id for each in places)
    return Given(Registry(tuple(known), new), tuple(strategy_ids), tuple(problem_ids))


def _listed(given: object, word: str) -> list[object]:
    listed = [given] if isinstance(given, str | type | Strategy | Problem) or not isinstance(given, Iterable) else given
    listed = list(listed)
    if not listed:
        raise UserError(f"no {word} is named; give at least one id, class or object")
    return listed


def _check_distinct(ids: Sequence[str], what: str) -> None:
    for name in ids:
        if ids.count(name) > 1:
            raise UserError(f"two {what} would have the id {name!r}; rename a class, or give other arguments")


def _strategy(registry: Registry, given: Any) -> str | tuple[str, type[Strategy]]:  # noqa: ANN401 - a user's mistake
    """Return a strategy's id, with its class if the registry does not know it."""
    if isinstance(given, str):
        return given
    if isinstance(given, Strategy):
        name = type(given).__name__
        raise UserError(f"{name} is given as an object; give the class {name} itself: every run makes its own object")
    if not (isinstance(given, type) and issubclass(given, Strategy)):
        raise UserError(f"{_shown(given)} is not a strategy; give an id or a subclass of bbo_suite.Strategy")
    _check_concrete(given)
    if registered := registry.id_of(given):
        return registered
    name = id_of_class(given)
    if is_ours(given):
        raise UserError(f"{given.__name__} is one of the suite's own classes; give a strategy's id instead")
    if name in registry.strategies():
        raise UserError(f"class {given.__name__} would have the id {name!r}, which another strategy has; rename it")
    return name, given


def _problem(registry: Registry, given: Any) -> str | GivenProblem:  # noqa: ANN401 - a user's mistake
    """Return a problem's id, or how to build it if the registry does not know it."""
    if isinstance(given, str):
        return given
    made = given if isinstance(given, type) else type(given)
    if not issubclass(made, Problem):
        raise UserError(f"{_shown(given)} is not a problem; give an id, a subclass of bbo_suite.Problem or an object")
    _check_concrete(made)
    family = registry.id_of(made)
    if isinstance(given, Problem) and family and given.id:
        return given.id
    arguments, keywords = given.constructed_with if isinstance(given, Problem) else (_first(made), {})
    if family and len(arguments) == 1 and isinstance(arguments[0], str) and not keywords:
        return f"{family}/{arguments[0]}"
    if family:
        raise UserError(f"the problem of family {family!r} has no id; make it by bbo_suite.problem(id)")
    if id_of_class(made) in registry.families():
        raise UserError(f"class {made.__name__} has the name of a family of problems, {id_of_class(made)!r}; rename it")
    return GivenProblem.of(made, arguments, keywords)


def _first(made: type[Problem]) -> tuple[str]:
    if not made.instances:
        name = made.__name__
        raise UserError(f"problem class {name} lists no instances; give an object instead, such as {name}(...)")
    return (made.instances[0],)


def _check_concrete(made: type) -> None:
    if inspect.isabstract(made):
        missing = ", ".join(sorted(getattr(made, "__abstractmethods__", ())))
        raise UserError(f"class {made.__name__} is incomplete: it does not define {missing}")


def _shown(given: object) -> str:
    return f"{given.__name__ if isinstance(given, type) else repr(given)[:60]} ({type(given).__name__})"
