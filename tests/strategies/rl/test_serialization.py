"""Policies in files: a round trip, and a sentence for whatever does not fit."""

import copy
import dataclasses
import hashlib
import io
import json

import jax
import numpy as np
import pytest

from bbo_strategies.rl.inputs import Names
from bbo_strategies.rl.learner import random_policy
from bbo_strategies.rl.policy import PRETRAINED_BOUND
from bbo_strategies.rl.serialization import load, save
from bbo_strategies.rl.strategy import ReinforcementOptions
from bbo_suite import Graph, Space, Structure, Task, UserError
from bbo_suite.core import options
from bbo_suite.core.versions import PinnedFile, content

NAMES = Names(tuple("abcde"), ("x", "y", "z"))


def policy(seed=0):
    return random_policy(*NAMES.widths, np.random.default_rng(seed))


def task(*features):
    nothing = np.zeros(3, np.int64), np.empty(0, np.int32)
    graph = Graph(np.ones((2, 2), np.float32), ("b", "e"), np.array([[0, 1]], np.int32))
    declared = Structure(*nothing, np.ones((2, len(features)), np.float32), features, graph, nodes=np.arange(2))
    return Task("toy/x", Space(np.full(2, 2)), np.zeros(2, np.int64), "seconds", declared)


@pytest.fixture
def file(tmp_path):
    save(policy(), NAMES, tmp_path / "policy.eqx")
    return tmp_path / "policy.eqx"


@pytest.mark.slow
def test_a_saved_policy_is_loaded_unchanged(file):
    loaded, names = load(file.read_bytes(), str(file), task("x"))
    assert loaded.bound == PRETRAINED_BOUND and names == NAMES
    for a, b in zip(jax.tree.leaves(policy()), jax.tree.leaves(loaded), strict=True):
        assert np.array_equal(a, b)


def test_a_task_may_have_some_of_the_features_but_no_other(file):
    assert load(file.read_bytes(), str(file), task("z", "x"))
    with pytest.raises(UserError, match="does not fit toy/x: it does not know 'w'; pretrain one on problems of that"):
        load(file.read_bytes(), str(file), task("x", "w"))


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (lambda data: b"", "is not a policy"),
        (lambda data: b"\x00\xff" + data, "is not a policy"),
        (lambda data: b"[1]\n" + data, "is not a policy"),
        (lambda data: data[:-100], "is damaged"),
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "is damaged"),
        (lambda data: data.replace(b'"version": 4', b'"version": 0'), "has version 0"),
    ],
)
def test_a_file_that_is_not_a_policy_is_refused(file, damage, complaint):
    with pytest.raises(UserError, match=complaint):
        load(damage(file.read_bytes()), str(file), task("x"))


def packed(file, weights: bytes) -> bytes:
    """Return a policy of other weights, whose digest is right: anybody can compute it."""
    header = json.loads(file.read_bytes().partition(b"\n")[0]) | {"sha256": hashlib.sha256(weights).hexdigest()}
    return json.dumps(header).encode() + b"\n" + weights


def array(content, descr=None) -> bytes:
    """Return an array as a file of numpy; with a shape and a type in place of an array, only a header."""
    file = io.BytesIO()
    if descr is None:
        np.save(file, content, allow_pickle=True)
    else:
        np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": content})
    return file.getvalue()


@pytest.mark.parametrize(
    "damage",
    [
        lambda weights: b"",
        lambda weights: weights[:-1],
        lambda weights: weights + b"x",
        lambda weights: b"junk" * 100,
        lambda weights: array(np.zeros((2, 2))) + weights,
        lambda weights: array(np.array([{}], object)) + weights,
        lambda weights: array(np.zeros((64, 5), np.complex64)) + weights,
        lambda weights: array((10**6, 10**6), "<f4") + weights,
        lambda weights: array((1,) * 3000, "<f4") + weights,
        lambda weights: weights[:-4] + np.array([np.nan], "<f4").tobytes(),
    ],
)
def test_hostile_weights_with_a_valid_digest_are_refused(file, damage):
    weights = file.read_bytes().partition(b"\n")[2]
    assert load(packed(file, weights), "p", task("x"))
    with pytest.raises(UserError, match="policy p holds other weights than its header says; pretrain it again"):
        load(packed(file, damage(weights)), "p", task("x"))


def test_a_file_without_an_end_is_refused():
    with pytest.raises(UserError, match="/dev/zero cannot be read: it is larger than 64 MiB"):
        PinnedFile("/dev/zero")


def test_the_option_holds_a_digest_of_the_content(file):
    first = options.parse(ReinforcementOptions, {"pretrained": str(file)}, "strategy rl").pretrained
    assert content(first) == (str(file), file.read_bytes())
    assert PinnedFile(first) == copy.deepcopy(first) == first
    assert dataclasses.asdict(ReinforcementOptions(pretrained=first))["pretrained"] == first
    save(policy(1), NAMES, file)
    assert PinnedFile(str(file)) != first
    with pytest.raises(UserError, match="has changed since"):
        content(first)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(UserError, match="cannot be read: No such file"):
        options.parse(ReinforcementOptions, {"pretrained": str(tmp_path / "no.eqx")}, "strategy rl")
    with pytest.raises(UserError, match="cannot be written"):
        save(policy(), NAMES, tmp_path / "no" / "policy.eqx")
