"""Every registered strategy keeps the contract."""

from __future__ import annotations

import pytest

from bbo_suite.conformance.kit import strategy_rules
from bbo_suite.registry import Registry

SLOW = {("rl", "Works with a problem that declares no structure, or says what it needs")}
"""Each network that is compiled for a space takes seconds."""

CASES = [
    pytest.param(rule, id=f"{name}: {words}", marks=[pytest.mark.slow] if (name, words) in SLOW else [])
    for name, load in sorted(Registry().strategies().items())
    if not load().has_variants  # these have tests of their own
    for words, rule in strategy_rules(load())
]


@pytest.mark.parametrize("rule", CASES)
def test_rule(rule) -> None:
    rule()


def test_the_slow_rules_are_there() -> None:
    ids = {case.id for case in CASES}
    assert {f"{name}: {words}" for name, words in SLOW} <= ids
