"""Networks, their losses, their training, and their files."""

import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bbo_problems.learned.kernels import KERNEL_FEATURES, NODE_FEATURES
from bbo_problems.learned.model import REDUCTIONS, WIDTH, CostModel, Network, Reduction, Standard, load, save
from bbo_problems.learned.training import GRAPH, RELATIVE, check_unseen, errors, fit, rank, scored, train
from bbo_suite import UserError

pytestmark = pytest.mark.slow  # networks are compiled, on a data set that is made with compiled code


def untrained(reduction="mean"):
    standards = [Standard(jnp.zeros(n), jnp.ones(n)) for n in (len(NODE_FEATURES), len(KERNEL_FEATURES))]
    made = [Network(*standards, recipe.kinds, reduction, jax.random.key(0)) for recipe in (GRAPH, RELATIVE)]
    return CostModel("v5e", ("transformer",), reduction, *made, np.array([0.1, 0.2]))


def test_the_rank_loss_counts_pairs_in_the_wrong_order():
    logs, real = jnp.array([[0.0, 1.0, 9.0]]), jnp.array([[True, True, False]])
    right, wrong = (float(rank(jnp.array([s]), logs, real)) for s in ([-9.0, 9.0, 0.0], [9.0, -9.0, 0.0]))
    assert right < 1e-6 and wrong == pytest.approx(18, abs=1e-3)
    assert float(rank(jnp.ones((1, 3)), jnp.ones((1, 3)), real)) == 0.0  # equal times are in no order


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.slow] if kind == "transformer" else []) for kind in REDUCTIONS]
)
def test_padding_does_not_change_a_reduction(kind):
    reduction = Reduction(kind, 8, jax.random.key(1))
    h = jax.random.normal(jax.random.key(2), (1, 3, 8))
    padded = jnp.concatenate([h, 7 * jnp.ones((1, 2, 8))], axis=1)
    few = reduction(h, jnp.ones((1, 3), bool))
    assert np.allclose(few, reduction(padded, jnp.arange(5)[None] < 3), atol=1e-5)


@pytest.mark.thorough
def test_training_beats_the_analytical_model_and_chance_on_what_it_saw(kernels):
    model = fit(kernels, 40, "mean", np.random.default_rng(0), lambda *_: None)
    for kind, network in (("graph", model.absolute), ("tiles", model.relative), ("flags", model.relative)):
        learned, own = errors(scored(network, kind, kernels), kind, kernels)["rnn"], kernels.settings(kind)
        chance = np.random.default_rng(0).random(len(own.seconds))
        other = np.log(own.estimates) if kind == "graph" else chance  # the analytical model finds all best tiles here
        assert learned < errors(other, kind, kernels)["rnn"] / 3, kind
    assert (model.slopes > 0).all()


def test_a_loss_that_is_not_a_number_ends_the_training(kernels):
    broken = replace(kernels, seconds=np.where(np.arange(len(kernels)) == 3, np.nan, kernels.seconds))
    with pytest.raises(UserError, match="not a number in epoch 1"):
        train(broken, replace(GRAPH, epochs=2), np.random.default_rng(0), lambda *_: None)


def test_data_without_a_choice_cannot_be_learned(kernels):
    few = kernels.take(np.arange(2))
    none = few.tiles.take(np.empty(0, np.int64))
    empty = replace(none, starts=np.zeros(3, np.int64))
    with pytest.raises(UserError, match="two settings that fit"):
        train(replace(few, tiles=empty, flags=empty), RELATIVE, np.random.default_rng(0), lambda *_: None)


@pytest.fixture
def file(tmp_path):
    save(untrained(), tmp_path / "model.npz")
    return tmp_path / "model.npz"


def test_a_saved_model_is_loaded_unchanged(file):
    back, made = load(file.read_bytes(), "m"), untrained()
    for a, b in zip(
        jax.tree.leaves((back.absolute, back.relative)), jax.tree.leaves((made.absolute, made.relative)), strict=True
    ):
        assert np.array_equal(a, b)
    assert back.programs == made.programs and np.array_equal(back.slopes, made.slopes)


@pytest.mark.parametrize(
    ("header", "arrays"),
    [
        ({"reduction": "x"}, {}),
        ({}, {"3": None}),
        ({}, {"999": np.zeros(1, np.float32)}),
        ({}, {"4": np.full(WIDTH, np.nan, np.float32)}),
        ({}, {"slopes": np.array([1.0])}),
    ],
)
def test_numbers_that_do_not_fit_the_header_are_refused(file, header, arrays):
    with np.load(file) as old:
        stored = {name: old[name] for name in old.files}
    text = json.dumps(json.loads(stored["header"].tobytes()) | header).encode()
    stored |= {"header": np.frombuffer(text, np.uint8)} | arrays
    np.savez(file, **{name: array for name, array in stored.items() if array is not None})
    with pytest.raises(UserError, match="damaged"):
        load(file.read_bytes(), "m")


def test_a_model_is_not_judged_on_what_it_was_trained_on(kernels):
    with pytest.raises(UserError, match="was trained on rnn"):
        check_unseen(replace(untrained(), programs=("rnn",)), kernels)
    with pytest.raises(UserError, match="is for v4, the data for v5e"):
        check_unseen(replace(untrained(), machine="v4"), kernels)
