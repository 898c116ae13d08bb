"""Every registered problem keeps the contract."""

from __future__ import annotations

from functools import partial

import pytest

from bbo_problems.tensor_compiler.models import MODELS
from bbo_suite.conformance import problem_rules
from bbo_suite.registry import Registry


def is_checked(problem: str) -> bool:
    """Every family on the programs that ship; the others, which have to be lowered first, for fusion only."""
    return ships(problem) or problem.startswith("fusion/")


def ships(problem: str) -> bool:
    """Is the problem's program part of the package, or drawn at once?"""
    family, _, instance = problem.partition("/")
    return instance in MODELS or family in ("ehrlich", "ordering")


CASES = [
    pytest.param(rule, id=f"{problem}: {words}", marks=[] if ships(problem) else [pytest.mark.slow])
    for problem in filter(is_checked, Registry().instances())
    for words, rule in problem_rules(partial(Registry().load, problem))
]


@pytest.mark.parametrize("rule", CASES)
def test_rule(rule) -> None:
    rule()
