"""The conformance kit: rules that every strategy and problem must follow, to check plugins with.

`python -m bbo_suite check FILE` prints the result; a test calls `strategy_rules` or `problem_rules` with its own class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

from ..core.problem import Problem
from ..core.strategy import Strategy
from ..errors import UserError
from ..registry import Registry, classes_of
from .problem_rules import PROBLEM_RULES, describes_without_costs, loads_alike
from .strategy_rules import STRATEGY_RULES

Rule = tuple[str, Callable[[], None]]
"""What must hold, as a sentence, and a function that raises if it does not hold."""


def strategy_rules(strategy: type[Strategy]) -> list[Rule]:
    """Return the rules for a strategy, each ready to call."""
    return [(_words(rule), lambda rule=rule: rule(strategy)) for rule in STRATEGY_RULES]  # type: ignore[misc]


def problem_rules(load: Callable[[], Problem]) -> list[Rule]:
    """Return the rules for a problem, each ready to call.

    Args:
      load: loads the problem anew. It is called once for all rules, except for those that need a fresh instance.
    """
    cached, fresh = cache(load), (loads_alike, describes_without_costs)
    return [(_words(rule), partial(rule, load if rule in fresh else cached)) for rule in PROBLEM_RULES]


def _words(rule: Callable[..., None]) -> str:
    return (rule.__doc__ or rule.__name__).rstrip(".")


def check_plugin(file: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the subject, the rule and the complaint (empty if the rule holds) for all plugins in a file.

    Raises:
      UserError: the file defines no strategy and no problem, or cannot be run.
    """
    for strategy in classes_of(file, Strategy):
        yield from _checked(f"strategy {file.stem}", strategy_rules(strategy))
    for problem in classes_of(file, Problem):
        if not problem.instances:
            raise UserError(f"{problem.__name__} in {file} names no instances; set `instances = (...)` in the class")
        for instance in problem.instances:
            problem_id = f"{file.stem}/{instance}"
            yield from _checked(f"problem {problem_id}", problem_rules(lambda i=problem_id: _load(file, i)))  # type: ignore[misc]


def _load(file: Path, problem_id: str) -> Problem:
    return Registry((file,)).load(problem_id)


def _checked(subject: str, rules: list[Rule]) -> Iterator[tuple[str, str, str]]:
    for words, rule in rules:
        try:
            rule()
        except Exception as error:
            yield subject, words, f"{error}" if isinstance(error, AssertionError | UserError) else repr(error)
        else:
            yield subject, words, ""
