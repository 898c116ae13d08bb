"""Every registered strategy follows the rules of the conformance kit."""

from __future__ import annotations

import pytest

from bbo_suite.conformance.kit import strategy_rules
from bbo_suite.registry import Registry

SLOW = {("rl", "Works with a problem that declares no structure, or says what it needs")}
"""It compiles networks for further spaces, which takes ten seconds."""

CASES = [
    pytest.param(rule, id=f"{name}: {words}", marks=[pytest.mark.slow] if (name, words) in SLOW else [])
    for name, load in sorted(Registry().strategies().items())
    if not load().has_variants  # the adapters' tests check these
    for words, rule in strategy_rules(load())
]


@pytest.mark.parametrize("rule", CASES)
def test_rule(rule) -> None:
    rule()


def test_the_slow_rules_are_there() -> None:
    ids = {case.id for case in CASES}
    assert {f"{name}: {words}" for name, words in SLOW} <= ids
