"""Every registered strategy keeps the contract."""

from __future__ import annotations

import pytest

from bbo_suite.conformance.kit import strategy_rules
from bbo_suite.registry import Registry

CASES = [
    pytest.param(rule, id=f"{name}: {words}")
    for name, load in sorted(Registry().strategies().items())
    if not load().has_variants  # these have tests of their own
    for words, rule in strategy_rules(load())
]


@pytest.mark.parametrize("rule", CASES)
def test_rule(rule) -> None:
    rule()
