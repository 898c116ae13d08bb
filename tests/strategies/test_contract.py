"""Every registered strategy follows the rules of the conformance kit."""

from __future__ import annotations

import functools
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from bbo_strategies.one_shot import OneShot
from bbo_suite import Task, option
from bbo_suite.conformance.kit import strategy_rules
from bbo_suite.conformance.toy_tasks import chain, spaces, uneven
from bbo_suite.core.versions import PinnedFile
from bbo_suite.pretraining import Lesson
from bbo_suite.registry import Registry

STRATEGIES = {name: load() for name, load in sorted(Registry().strategies().items()) if not load().has_variants}
"""By id; the adapters' tests check the strategies that are variants."""
SLOW = {
    ("rl", "Proposes integer indices in range, on every kind of space, or says what it needs"),
    ("rl", "Works with a problem that declares no structure, or says what it needs"),
}
"""Rules for which rl compiles networks for further spaces, which takes ten seconds each."""


LONG = {"graybox", "mbo", "one-shot", "portfolio", "rl"}
"""Strategies that compile or train much: all rules together take five seconds or more."""


def rules_of(name):
    strategy = knowing_toys() if name == "one-shot" else STRATEGIES[name]
    return {(name, words): rule for words, rule in strategy_rules(strategy)}


@functools.cache
def knowing_toys():
    """Return `one-shot` with a small model of the rules' tasks: the models that ship know none of them."""
    out = Path(tempfile.mkdtemp()) / "model.npz"
    space = spaces()["booleans"]
    task = Task("toys", space, space.sample(1, np.random.default_rng(0))[0], "seconds", chain(space))
    given = 64, np.random.default_rng(0), OneShot.Options(steps=20), out, lambda count, words: None
    OneShot.pretrain([Lesson(task, 1.0, uneven)], *given)

    @dataclass(frozen=True)
    class Options(OneShot.Options):
        pretrained: PinnedFile = option(PinnedFile(str(out)), "the small model")  # noqa: RUF009
        queries: int = option(2048, "few", low=1)

    return type("Trained", (OneShot,), {"Options": Options})


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
