"""Every strategy follows the rules of the conformance kit: our own, the published ones and some of each library's."""

from __future__ import annotations

import dataclasses
import functools
import tempfile
from pathlib import Path

import numpy as np
import pytest

from bbo_strategies.one_shot import OneShot
from bbo_strategies.published import PRESETS
from bbo_suite import Strategy, Task, UserError, option
from bbo_suite.conformance.kit import strategy_rules
from bbo_suite.conformance.strategy_rules import chain, spaces, uneven
from bbo_suite.core.versions import PinnedFile
from bbo_suite.pretraining import Lesson
from bbo_suite.registry import Registry

from .peers import PEERS, peer

OWN = [name for name, load in sorted(Registry().strategies().items()) if not load().has_variants]
ODD = ["optuna:GridSampler", "nevergrad:Cobyla", "pymoo:CMAES", "smac:HyperparameterOptimizationFacade"]
NAMES = [*OWN, *(f"published:{name}" for name in PRESETS), *PEERS, *ODD]
MECHANISMS = {path.partition(":")[0]: f"published:{name}" for name, path in reversed(PRESETS.items())}
"""The first preset of each mechanism: the others differ in their settings."""
OTHERS = {f"published:{name}" for name in PRESETS} - {*MECHANISMS.values()}
LONGEST = {
    f"published:{name}" for name in ("adatune", "chameleon", "dyna-ppo-mbo", "flextensor", "hybrid-vndx", "lfbo")
}
"""They fit large models again and again; `test_mechanisms.py` runs each of them in `.ci/run`."""
THOROUGH = OTHERS | LONGEST | {"optuna:GridSampler", "nevergrad:Cobyla"}
QUICK = {"annealing", "evolution", "exhaustive", "local", "random", "published:halide", "published:taso"}
"""Strategies that stand for all in the default run."""


def marks(name: str, rule: str) -> list[pytest.MarkDecorator]:
    thorough = name in THOROUGH or (":" in name and rule.startswith("Works with costs"))
    return [] if name in QUICK else [pytest.mark.slow, *[pytest.mark.thorough] * thorough]


@functools.cache
def strategy_of(name: str) -> type[Strategy]:
    """Return one class for all rules, because they share runs."""
    if name == "one-shot":
        return knowing_toys()
    return peer(name) if name in {*PEERS, *ODD} else Registry().strategy(name)


def knowing_toys() -> type[Strategy]:
    """Return `one-shot` with a small model of the rules' tasks: the models that ship know none of them."""
    out = Path(tempfile.mkdtemp()) / "model.npz"
    space = spaces()["booleans"]
    task = Task("toys", space, space.sample(1, np.random.default_rng(0))[0], "seconds", chain(space))
    settings = 64, np.random.default_rng(0), OneShot.Options(steps=20), out, lambda count, words: None
    OneShot.pretrain([Lesson(task, 1.0, uneven)], *settings)

    @dataclasses.dataclass(frozen=True)
    class Options(OneShot.Options):
        pretrained: PinnedFile = option(PinnedFile(str(out)), "the small model")  # noqa: RUF009
        queries: int = option(2048, "few", low=1)

    return type("Trained", (OneShot,), {"Options": Options})


@pytest.mark.parametrize(
    ("name", "rule"),
    [pytest.param(name, rule, marks=marks(name, rule)) for name in NAMES for rule in dict(strategy_rules(Strategy))],
)
def test_every_rule_holds(name: str, rule: str) -> None:
    try:
        found = strategy_of(name)
    except UserError as error:
        pytest.skip(str(error))
    dict(strategy_rules(found))[rule]()


def test_strategies_name_no_family_of_problems() -> None:
    root = Path(__file__).parents[2] / "strategies"
    with_other_meanings = {"kernel", "joint", "halide", "inlining"}
    families = Registry().families().keys() - with_other_meanings
    texts = {path: path.read_text() for path in root.rglob("*.py")}
    assert len(texts) > 20 and len(families) > 10
    named = {f"{path.name}: {name}" for path, text in texts.items() for name in families if f'"{name}' in text}
    assert not named
