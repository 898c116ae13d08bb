"""The presets find better candidates, say what they reproduce, and refuse what they cannot search."""

from __future__ import annotations

import dataclasses
import inspect

import numpy as np
import pytest

from bbo_strategies.published import PRESETS
from bbo_suite import Space, UserError, choice, product, scale
from bbo_suite.conformance.toy_tasks import chain, counted, described, spaces, uneven
from bbo_suite.registry import Registry
from bbo_suite.testing import play, start

CHEAP = {"tensor-comprehensions", "taso", "halide", "pet", "deepcuts", "ils-px", "grouptuner", "hybrid-vndx"}
NAMES = [f"published:{name}" for name in PRESETS]
MARKED = [pytest.param(f"published:{n}", marks=[] if n in CHEAP else [pytest.mark.slow]) for n in PRESETS]


@pytest.mark.parametrize("name", MARKED)
def test_the_default_is_first_and_better_candidates_are_found(name):
    space = product(*(scale(f"s{i}", range(4)) for i in range(20)))
    default, strategy = np.full(20, 2), Registry().strategy(name)
    structure = dataclasses.replace(chain(space), parts=described(space))
    searches = start(strategy, space, 400, structure=structure, default=default, compiler=counted(space))
    batches = list(play(searches, uneven, 20))
    assert batches[0][0][0].tolist() == default.tolist()
    assert min(values.min() for _, values in batches) < 0.95 * batches[0][1][0]


@pytest.mark.parametrize("name", NAMES)
def test_show_says_what_is_reproduced_and_where_each_default_comes_from(name):
    found = Registry().strategy(name)
    text = inspect.getdoc(found)
    assert "Reproduced, " in text and "Different here: " in text
    assert name == "published:chameleon-sampling" or "Not reproduced: " in text
    for field in dataclasses.fields(found.Options):
        words = field.metadata["help"]
        assert "its code" in words or "its examples" in words or "ours" in words or field.name in ("member", "model")


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("flextensor", "ordered parameters"),
        ("chameleon", "ordered parameters"),
        ("halide", "computation graph"),
        ("pet", "computation graph"),
        ("ils-px", "interactions of parameters"),
        ("deepcuts", "estimate of their parts"),
    ],
)
def test_what_a_task_does_not_declare_is_said(name, missing):
    space = product(*(choice(f"c{i}", "abc") for i in range(5)))
    with pytest.raises(UserError, match=missing):
        start(Registry().strategy(f"published:{name}"), space, 100)


def test_a_sampler_of_itself_is_refused():
    sampling = Registry().strategy("published:chameleon-sampling")
    with pytest.raises(UserError, match="must be another strategy"):
        start(sampling, spaces()["booleans"], 100, member="published:chameleon-sampling")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "off"),
    [
        ("autotvm", {"model": False}),
        ("adatune", {"model": False}),
        ("adatune", {"adaptive": False}),
        ("ansor", {"model": False}),
        ("chameleon", {"clusters": False}),
        ("flextensor", {"epsilon": 1.0, "least": 1.0}),
        ("citroen", {"pool": 5}),
        ("lfbo", {"similarity": 0.0}),
        ("dyna-ppo-mbo", {"threshold": -100.0}),
        ("hybrid-vndx", {"repaired": True}),
    ],
)
def test_a_mechanism_that_is_switched_off_changes_what_is_proposed(name, off):
    space, strategy = Space(np.full(30, 5), np.ones(30)), Registry().strategy(f"published:{name}")
    told = counted(space)
    plays = [play(start(strategy, space, 300, compiler=told, **options), uneven, 32) for options in ({}, off)]
    with_it, without = (np.concatenate([rows for rows, _ in batches]) for batches in plays)
    assert len(with_it) == len(without) == 300
    assert not np.array_equal(with_it, without)
