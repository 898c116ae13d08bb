"""Every registered problem keeps the contract. A new family needs no entry here: it says whether it is available."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
import pytest

from bbo_problems.tensor_compiler.models import MODELS
from bbo_problems.tensor_compiler.tasks.program_problem import ProgramProblem
from bbo_suite import Problem
from bbo_suite.conformance.kit import problem_rules
from bbo_suite.registry import Registry
from bbo_suite.supervised import LiveProblem

REGISTRY = Registry()
FAMILIES = {name: load() for name, load in REGISTRY.families().items()}
SLOW = ("joint/", "layout/", "scratchpad/", "sharding/resnet50", "sharding/transformer")
"""Beginnings of ids whose compiled code or costs take long."""


def checked(name: str, family: type[Problem]) -> list[str]:
    """Return the instances to check: all, but of a live compiler one, since for the rules its programs are alike.

    Programs of the tensor compiler that have to be lowered first are checked with fusion only.
    """
    if issubclass(family, LiveProblem):
        return [] if family.available() else list(family.instances[:1])
    if issubclass(family, ProgramProblem) and name != "fusion":
        return [instance for instance in family.instances if instance in MODELS]
    return list(family.instances)


def is_quick(name: str, family: type[Problem], instance: str) -> bool:
    """True if all rules together take a second or two, and need no code that takes long to compile."""
    if issubclass(family, LiveProblem):
        return name == "llvm"
    lowered = issubclass(family, ProgramProblem) and instance not in MODELS
    return not lowered and instance != "mobilenet" and not f"{name}/{instance}".startswith(SLOW)


def marked(name: str, instance: str, *values: str) -> object:
    marks = () if is_quick(name, FAMILIES[name], instance) else pytest.mark.slow
    return pytest.param(f"{name}/{instance}", *values, marks=marks)


@lru_cache(maxsize=2)
def rules(problem: str) -> dict[str, Callable[[], None]]:
    """Return the rules for a problem by their names; they share what they load."""
    return dict(problem_rules(partial(anew, problem)))


def anew(problem: str) -> Problem:
    """Load a problem; a live compiler's without its cache, which would hide costs that differ."""
    loaded = REGISTRY.load(problem)
    loaded.leave_cache()
    return loaded


CASES = [
    marked(name, instance, rule)
    for name, family in FAMILIES.items()
    for instance in checked(name, family)
    for rule in dict(problem_rules(REGISTRY.problem))
]


@pytest.mark.parametrize(("problem", "rule"), CASES)
def test_every_rule_holds(problem: str, rule: str) -> None:
    rules(problem)[rule]()


ONE_OF_EACH = [
    marked(name, "rnn" if "rnn" in family.instances else checked(name, family)[0])
    for name, family in FAMILIES.items()
    if checked(name, family)
]


@pytest.mark.parametrize("problem", ONE_OF_EACH)
def test_a_direct_call_checks_width_type_and_range(problem: str) -> None:
    loaded = REGISTRY.problem(problem)
    row = loaded.default_row()[None]
    one = 1000 * (np.arange(row.size) == row.size - 1)
    for rows in (row[:, :-1], np.pad(row, (0, 1)), row.astype(float), row + one, row - one):
        with pytest.raises(ValueError, match="candidate"):
            loaded.evaluate(rows)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_every_family_describes_itself_and_how_to_use_what_it_pastes(family: type[Problem]) -> None:
    assert family.usage is not Problem.usage
    assert isinstance(family.available(), str)
    assert family.decision and family.time_per_candidate and (family.costs or isinstance(family.unit, str))
