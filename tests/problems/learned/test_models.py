"""Networks, their losses, their training, and their files."""

import io
import json
import pickle
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bbo_problems.learned.kernels import KERNEL_FEATURES, NODE_FEATURES
from bbo_problems.learned.model import CostModel, load, save
from bbo_problems.learned.network import REDUCTIONS, WIDTH, Network, Reduction, Standard
from bbo_problems.learned.report import check_unseen, chosen_ape, errors, mape
from bbo_problems.learned.training import GRAPH, RELATIVE, fit, log_mse, rank, scored, train
from bbo_suite import UserError
from bbo_suite.nets import averages


def untrained(reduction="mean"):
    standards = [Standard(jnp.zeros(n), jnp.ones(n)) for n in (len(NODE_FEATURES), len(KERNEL_FEATURES))]
    made = [Network(*standards, recipe.kinds, reduction, jax.random.key(0)) for recipe in (GRAPH, RELATIVE)]
    return CostModel("v5e", ("transformer",), reduction, *made, np.array([0.1, 0.2]))


def test_errors_are_those_of_the_definitions():
    assert mape(np.array([2.0, 3.0]), np.array([1.0, 4.0])) == pytest.approx(62.5)
    seconds, starts = np.array([1.0, 2.0, 4.0, 3.0]), np.array([0, 2, 4])
    assert chosen_ape(np.array([5.0, 1.0, 9.0, 7.0]), seconds, starts) == pytest.approx(25.0)
    assert chosen_ape(seconds, seconds, starts) == 0.0


def test_the_rank_loss_counts_pairs_in_the_wrong_order():
    logs, real = jnp.array([[0.0, 1.0, 9.0]]), jnp.array([[True, True, False]])
    right, wrong = (float(rank(jnp.array([s]), logs, real)) for s in ([-9.0, 9.0, 0.0], [9.0, -9.0, 0.0]))
    assert right < 1e-6 and wrong == pytest.approx(18, abs=1e-3)
    assert float(rank(jnp.ones((1, 3)), jnp.ones((1, 3)), real)) == 0.0  # equal times are in no order


def test_log_mse_ignores_padding():
    scores, logs, real = jnp.array([[1.0, 5.0]]), jnp.array([[3.0, 0.0]]), jnp.array([[True, False]])
    assert float(log_mse(scores, logs, real)) == 4.0


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.slow] if kind == "transformer" else []) for kind in REDUCTIONS]
)
def test_padding_does_not_change_a_reduction(kind):
    reduction = Reduction(kind, 8, jax.random.key(1))
    h = jax.random.normal(jax.random.key(2), (1, 3, 8))
    padded = jnp.concatenate([h, 7 * jnp.ones((1, 2, 8))], axis=1)
    few = reduction(h, jnp.ones((1, 3), bool))
    assert np.allclose(few, reduction(padded, jnp.arange(5)[None] < 3), atol=1e-5)


def test_neighbours_are_averaged_and_padding_is_none():
    below, above = averages(jnp.array([[[0, 2], [1, 2], [3, 3]]]), 3)
    assert np.allclose(below[0], [[0, 0, 0], [0, 0, 0], [0.5, 0.5, 0]])
    assert np.allclose(above[0], [[0, 0, 1], [0, 0, 1], [0, 0, 0]])


@pytest.mark.slow
def test_training_beats_the_analytical_model_and_chance_on_what_it_saw(kernels):
    model = fit(kernels, 40, "mean", np.random.default_rng(0), lambda *_: None)
    for kind, network in (("graph", model.absolute), ("tiles", model.relative), ("flags", model.relative)):
        learned, own = errors(scored(network, kind, kernels), kind, kernels)["rnn"], kernels.settings(kind)
        chance = np.random.default_rng(0).random(len(own.seconds))
        other = np.log(own.estimates) if kind == "graph" else chance  # the analytical model finds all best tiles here
        assert learned < errors(other, kind, kernels)["rnn"] / 3, kind
    assert (model.slopes > 0).all()


@pytest.mark.slow
def test_a_loss_that_is_not_a_number_ends_the_training(kernels):
    broken = replace(kernels, seconds=np.where(np.arange(len(kernels)) == 3, np.nan, kernels.seconds))
    with pytest.raises(UserError, match="the loss is not a number in epoch 1; train with another seed"):
        train(broken, replace(GRAPH, epochs=2), np.random.default_rng(0), lambda *_: None)


@pytest.mark.slow
def test_an_operation_that_was_never_seen_is_predicted_as_unknown(kernels):
    network = train(kernels, replace(GRAPH, epochs=2), np.random.default_rng(0), lambda *_: None)
    strange = replace(kernels, graphs=replace(kernels.graphs, opcodes=0 * kernels.graphs.opcodes))
    assert np.isfinite(scored(network, "graph", strange)).all()


def test_data_without_a_choice_cannot_be_learned(kernels):
    few = kernels.take(np.arange(2))
    none = few.tiles.take(np.empty(0, np.int64))
    empty = replace(none, starts=np.zeros(3, np.int64))
    with pytest.raises(UserError, match="no kernel with two settings that fit"):
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


def changed(file, header=(), **arrays):
    """Return a model with changes in its header and arrays; an array None is left out."""
    with np.load(file) as old:
        new = {name: old[name] for name in old.files}
    new |= {"header": np.array(json.dumps(json.loads(new["header"].item()) | dict(header)))} | arrays
    packed = io.BytesIO()
    np.savez(packed, **{name: array for name, array in new.items() if array is not None})
    return packed.getvalue()


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a file ran code",))


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (lambda file: b"", "m is not a file of arrays"),
        (lambda file: pickle.dumps(Bomb()), "m is not a file of arrays"),
        (lambda file: changed(file, slopes=np.array([Bomb(), 1], object)), "m is not a file of arrays"),
        (lambda file: changed(file, header={"version": 7}), "has version 7, but 1 is needed; train one with"),
        (lambda file: changed(file, header={"cost model": -1}), "has cost model -1, but"),
        (lambda file: changed(file, header={"kind": "policy"}), "has kind policy, but learned cost model is needed"),
        (lambda file: changed(file, header={"reduction": "x"}), "holds other numbers than its header says"),
        (lambda file: changed(file, **{"3": None}), "holds other numbers than its header says"),
        (lambda file: changed(file, **{"999": np.zeros(1, np.float32)}), "holds other numbers than its header says"),
        (lambda file: changed(file, **{"4": np.full(WIDTH, np.nan, np.float32)}), "holds other numbers"),
        (lambda file: changed(file, slopes=np.array([1.0])), "holds other numbers than its header says"),
    ],
)
def test_a_file_that_is_not_a_model_is_refused_and_runs_no_code(file, damage, complaint):
    with pytest.raises(UserError, match=complaint):
        load(damage(file), "m")


def test_a_model_is_not_judged_on_what_it_was_trained_on(kernels):
    with pytest.raises(UserError, match="was trained on rnn; give data of other programs"):
        check_unseen(replace(untrained(), programs=("rnn",)), kernels)
    with pytest.raises(UserError, match="the model is for v4, the data for v5e"):
        check_unseen(replace(untrained(), machine="v4"), kernels)
