"""Every registered problem keeps the contract."""

from __future__ import annotations

from functools import partial

import pytest

from bbo_suite.conformance import problem_rules
from bbo_suite.registry import Registry

CASES = [
    pytest.param(rule, id=f"{problem}: {words}")
    for problem in Registry().instances()
    for words, rule in problem_rules(partial(Registry().load, problem))
]


@pytest.mark.parametrize("rule", CASES)
def test_rule(rule) -> None:
    rule()
