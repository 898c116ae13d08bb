"""Every registered strategy follows the rules of the conformance kit."""

from __future__ import annotations

import pytest

from bbo_suite.conformance.kit import strategy_rules
from bbo_suite.registry import Registry

STRATEGIES = {name: load() for name, load in sorted(Registry().strategies().items()) if not load().has_variants}
"""By id; the adapters' tests check the strategies that are variants."""
SLOW = {
    ("rl", "Proposes integer indices in range, on every kind of space, or says what it needs"),
    ("rl", "Works with a problem that declares no structure, or says what it needs"),
}
"""Rules for which rl compiles networks for further spaces, which takes ten seconds each."""


LONG = {"graybox", "mbo", "portfolio", "rl"}
"""Strategies that compile or train much: all rules together take five seconds or more."""


def rules_of(name):
    return {(name, words): rule for words, rule in strategy_rules(STRATEGIES[name])}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in LONG else []) for name in STRATEGIES]
)
def test_every_rule_holds(name):
    """In one test, because the rules share runs."""
    for (_, words), rule in rules_of(name).items():
        if (name, words) not in SLOW:
            try:
                rule()
            except AssertionError as error:
                raise AssertionError(f"{name} breaks the rule: {words}") from error


@pytest.mark.slow
@pytest.mark.parametrize(("name", "words"), sorted(SLOW))
def test_slow_rule_holds(name, words):
    rules_of(name)[name, words]()


def test_every_slow_rule_exists():
    assert all(rule in rules_of(rule[0]) for rule in SLOW)
