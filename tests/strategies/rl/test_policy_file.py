"""Policies in files: a round trip, files of the older form, and a sentence for what does not fit."""

import copy
import dataclasses
import io
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest

from bbo_strategies.rl.policy import FILE, PRETRAINED_BOUND, Names, load, policy_shape, random_policy, save
from bbo_strategies.rl.strategy import ReinforcementOptions
from bbo_suite import Graph, Space, Structure, Task, UserError
from bbo_suite.core import options
from bbo_suite.core.versions import PinnedFile, content

NAMES = Names(tuple("abcde"), ("x", "y", "z"))
OLD = Path(__file__).parents[3] / "results" / "transfer" / "policy.eqx"


def policy(seed=0):
    return random_policy(*NAMES.widths, np.random.default_rng(seed))


def task(*features, nodes=("b", "e")):
    nothing = np.zeros(3, np.int64), np.empty(0, np.int32)
    graph = Graph(np.ones((2, 2), np.float32), nodes, np.array([[0, 1]], np.int32))
    declared = Structure(*nothing, np.ones((2, len(features)), np.float32), features, graph, nodes=np.arange(2))
    return Task("toy/x", Space(np.full(2, 2)), np.zeros(2, np.int64), "seconds", declared)


@pytest.fixture
def file(tmp_path):
    save(policy(), NAMES, tmp_path / "policy.npz")
    return tmp_path / "policy.npz"


def test_a_saved_policy_is_loaded_unchanged(file):
    loaded, names = load(file.read_bytes(), str(file), task("x"))
    assert loaded.bound == PRETRAINED_BOUND and names == NAMES
    for a, b in zip(jax.tree.leaves(policy()), jax.tree.leaves(loaded), strict=True):
        assert np.array_equal(a, b)


def test_a_policy_of_the_older_form_is_read_as_equinox_reads_it():
    old = OLD.read_bytes()
    loaded, names = load(old, str(OLD), task("log values", nodes=("is source", "is free")))
    shape = policy_shape(*names.widths, PRETRAINED_BOUND)
    wanted = eqx.tree_deserialise_leaves(io.BytesIO(old.partition(b"\n")[2]), shape)
    for a, b in zip(jax.tree.leaves(wanted), jax.tree.leaves(loaded), strict=True):
        assert np.array_equal(a, b)


def test_a_task_may_have_some_of_the_features_but_no_other(file):
    assert load(file.read_bytes(), str(file), task("z", "x"))
    with pytest.raises(UserError, match="does not know 'w'"):
        load(file.read_bytes(), str(file), task("x", "w"))


@pytest.mark.parametrize("damage", [{"0": np.full((64, 5), np.nan, np.float32)}, {"99": np.zeros(1, np.float32)}])
def test_other_weights_than_the_header_says_are_refused(file, damage):
    header, arrays = FILE.load(file.read_bytes(), "p")
    FILE.save(file, header, arrays | damage)
    with pytest.raises(UserError, match="policy of rl p is damaged"):
        load(file.read_bytes(), "p", task("x"))


def test_the_option_holds_a_digest_of_the_content(file):
    first = options.parse(ReinforcementOptions, {"pretrained": str(file)}, "strategy rl").pretrained
    assert content(first) == (str(file), file.read_bytes())
    assert PinnedFile(first) == copy.deepcopy(first) == first
    assert dataclasses.asdict(ReinforcementOptions(pretrained=first))["pretrained"] == first
    save(policy(1), NAMES, file)
    assert PinnedFile(str(file)) != first
    with pytest.raises(UserError, match="has changed since"):
        content(first)
