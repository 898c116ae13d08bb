"""Every registered problem keeps the contract."""

from __future__ import annotations

from functools import partial

import pytest

from bbo_problems.tensor_compiler.models import MODELS
from bbo_suite.conformance import problem_rules
from bbo_suite.registry import Registry


def case(problem: str, words: str, rule) -> pytest.param:
    """Programs that do not ship have to be lowered first: minutes for all of them."""
    ships = problem.partition("/")[2] in MODELS
    return pytest.param(rule, id=f"{problem}: {words}", marks=[] if ships else [pytest.mark.slow])


CASES = [
    case(problem, words, rule)
    for problem in Registry().instances()
    for words, rule in problem_rules(partial(Registry().load, problem))
]


@pytest.mark.parametrize("rule", CASES)
def test_rule(rule) -> None:
    rule()
