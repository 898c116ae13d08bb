"""Proposals: which values they set, and that none comes twice; policies in files."""

import copy
import dataclasses
import io
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest

from bbo_strategies.rl.policy import BOUND, FILE, PRETRAINED_BOUND, Names, load, policy_shape, random_policy, save
from bbo_strategies.rl.proposals import GroupTests, ParameterValues, draw, log_softmax, proposals_of
from bbo_strategies.rl.strategy import ReinforcementOptions
from bbo_suite import Graph, Space, Structure, Task, UserError
from bbo_suite.core import options
from bbo_suite.core.versions import PinnedFile, content

RNG = np.random.default_rng(0)


def test_a_score_is_the_preference_for_the_new_values_over_the_old():
    space = Space([3, 1, 4])
    values, state = ParameterValues(space), np.array([1, 0, 3])
    configs = np.array([[2, 0, 0], [1, 0, 3], [0, 0, 3]])
    made = proposals_of(configs, state, np.array([0, 1, 2]), np.ones(3, bool), values)
    worth, weights = np.array([0.1, 0.2, 0.4, 0.0, 0.1, 0.2, 0.3]), np.array([0.0, 0.5, 0.0, 0.0])
    wanted = BOUND * np.tanh(np.array([(0.4 - 0.2 + 0.0 - 0.3) / np.sqrt(2), 0.5, 0.1 - 0.2]) / BOUND)
    assert np.allclose(made.scores(worth, weights, BOUND), wanted)


def test_the_first_draw_has_the_probabilities_of_the_policy():
    is_open = np.array([True, True, False, True])
    logs = log_softmax(np.array([0.0, 1.0, 5.0, 2.0]), is_open)
    assert np.exp(logs).sum() == pytest.approx(1) and logs[2] == -np.inf
    drawn = np.array([draw(logs, 3, RNG) for _ in range(4000)])
    assert np.allclose(np.bincount(drawn[:, 0], minlength=4) / 4000, np.exp(logs), atol=0.03)
    assert (np.sort(drawn, axis=1) == [0, 1, 3]).all()


def changed(rows):
    return [set(np.flatnonzero(row)) for row in rows]


def test_what_is_preferred_most_is_tried_together_and_halved():
    margins = np.array([3.0, 2.0, 2.5, 2.2, -1.0, -1.5, -9.0, -np.inf])
    tests, state = GroupTests(Space(np.full(8, 2)), np.ones(8, np.int64), margins, 9), np.zeros(8, np.int64)
    assert changed(tests.draw(state, 9)) == [{0, 1, 2, 3}, {4, 5}]
    tests.learn(1.0, np.array([2.0, 0.5]))
    assert changed(tests.draw(state, 9)) == [{0, 2}, {1, 3}]
    tests.learn(1.0, np.array([1.0, 1.0]))
    assert not len(tests.draw(state, 9)), "what costs nothing is left out"


def test_the_tests_end_when_nothing_pays():
    tests, state = GroupTests(Space(np.full(8, 2)), np.ones(8, np.int64), np.zeros(8), 3), np.zeros(8, np.int64)
    for groups in (1, 2, 0):
        rows = tests.draw(state, 2)
        assert len(rows) == groups
        tests.learn(1.0, np.full(len(rows), 2.0))


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


@pytest.mark.slow
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
