"""Tiny programs of all models: training lowers the loss and keeps every shape, and results are what they should be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bbo_problems.tensor_compiler.models import (
    MODELS,
    bert,
    convdraw,
    dlrm,
    gpt2,
    mobilenet,
    moe,
    nmt,
    resnet,
    resnet_v2,
    rnn,
    sequence,
    ssd,
    translate,
    unet,
    vision,
    wavernn,
)

from .tiny import LABELS, assert_close, finite, for_images, losses_of, quick, tiny, zeros

GPT2 = {"batch": 2, "sequence": 8, "depth": 2, "width": 16, "heads": 2, "vocabulary": 11}
BERT = {"batch": 4, "sequence": 16, "depth": 2, "width": 16, "heads": 2, "context": 20, "vocabulary": 11}
TRANSLATE = {"batch": 2, "sequence": 6, "depth": 2, "width": 16, "heads": 2, "vocabulary": 11}
NMT = {"batch": 2, "sequence": 5, "depth": 4, "units": 16, "vocabulary": 11}
WAVERNN = {"batch": 2, "frames": 3, "hop": 4, "units": 16, "bands": 5}
DLRM = {"batch": 32, "bottom": (8, 4), "top": (16, 8), "largest": 50, "lookups": 2}
MOE = {"batch": 2, "sequence": 8, "depth": 4, "width": 16, "heads": 2, "hidden": 32, "experts": 4, "vocabulary": 11}
RNN = {"batch": 2, "sequence": 5, "depth": 2, "hidden": 8, "vocabulary": 11}
SHIPPED = {"batch": 2, "sequence": 8, "depth": 2, "width": 16, "heads": 2, "hidden": 32, "vocabulary": 11}
RESNET = {"batch": 8, "image": 32, "depths": (1, 2), "width": 8, "classes": 10}
MOBILENET = {"batch": 8, "image": 32, "width": 0.1, "classes": 10}
SSD = {"batch": 1, "image": 260, "width": 4, "classes": 10}
UNET = {"batch": 8, "image": 8, "width": 32, "multiples": (1, 2), "blocks": 1, "attention": 4, "steps": 20}
CONVDRAW = {"batch": 4, "image": 8, "steps": 3, "hidden": 8, "latent": 2}


class Training(NamedTuple):
    """How a tiny model is trained.

    Attributes:
      build, sizes: the program.
      empty: its arguments that start from zero.
      untrained: the loss of an untrained network, where it is known.
      time: the step number at first; the schedules of BERT and of `translate` begin with rates of almost nothing.
      draw: returns values of weights and inputs.
      module, rate: whose learning rate is set, so that progress shows within these steps.
      steps: how many.
    """

    build: Callable[..., Any]
    sizes: dict[str, Any]
    empty: tuple[int, ...] = (1,)
    untrained: float | None = None
    time: int = 0
    draw: Callable[..., Any] | None = None
    module: Any = None
    rate: float = 0.0
    steps: int = 30


TRAINED = {
    "transformer": Training(MODELS["transformer"], SHIPPED, (1, 2), np.log(11), draw=for_images),
    "rnn": Training(MODELS["rnn"], RNN, (1,), np.log(11), draw=for_images),
    "mobilenet": Training(MODELS["mobilenet"], MOBILENET, (1,), np.log(10), 0, for_images, mobilenet, 0.005),
    "gpt2": Training(gpt2.build, GPT2 | {"depth": 1}, (1, 2), np.log(11)),
    "bert": Training(bert.build, BERT | {"depth": 1}, (1, 2), np.log(11) + np.log(2), 10_000),
    "translate": Training(translate.build, TRANSLATE | {"depth": 1}, (1, 2), np.log(11), 4000),
    "nmt": Training(nmt.build, NMT | {"depth": 3}, (1, 2), np.log(11)),
    "wavernn": Training(wavernn.build, WAVERNN | {"training": True}, (1, 2, 4), 2 * np.log(256)),
    "dlrm": Training(dlrm.build, DLRM, (), np.log(2)),
    "dlrm-adagrad": Training(dlrm.build, DLRM | {"adagrad": True}, (1,), np.log(2)),
    "moe": Training(moe.build, MOE | {"depth": 2}, (1,), np.log(11) + moe.BALANCE),
    "resnet": Training(resnet.build, RESNET | {"training": True}, draw=for_images, steps=12),
    "resnet-basic": Training(resnet.build, RESNET | {"bottleneck": False, "training": True}, draw=for_images, steps=12),
    "resnet_v2": Training(resnet_v2.build, RESNET | {"training": True}, draw=for_images, steps=12),
    "ssd": Training(ssd.build, SSD | {"training": True}, (1,), None, 0, for_images, ssd, 0.02, 12),
    "unet": Training(unet.build, UNET | {"training": True}, (1, 2), draw=for_images, steps=12),
    "convdraw": Training(convdraw.build, CONVDRAW | {"training": True}, (1,), None, 0, for_images, convdraw, 0.01, 12),
}


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("name", TRAINED)
def test_training_lowers_the_loss_and_keeps_every_shape(name, monkeypatch):
    case = TRAINED[name]
    if case.module:
        monkeypatch.setattr(case.module, "LEARNING_RATE", case.rate)
    step, arguments = tiny(case.build, case.draw, **case.sizes)
    arguments = [zeros(a) if i in case.empty else a for i, a in enumerate(arguments)]
    if case.draw is None:
        arguments = [np.float32(case.time) if getattr(a, "shape", None) == () else a for a in arguments]
    if case.build is dlrm.build:
        arguments[-1] = np.float32(np.arange(case.sizes["batch"]) % 2)
    losses = losses_of(step, arguments, case.steps)
    assert case.untrained is None or losses[0] == pytest.approx(case.untrained, rel=0.5)
    assert np.mean(losses[-3:]) < 0.99 * losses[0]


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize(
    ("build", "sizes", "shape", "is_distribution"),
    [
        (resnet.build, RESNET | {"bottleneck": False}, (8, 10), True),
        (resnet_v2.build, RESNET, (8, 10), True),
        (mobilenet.build, MOBILENET, (8, 10), True),
        (ssd.build, SSD, (1, 6766, 10), True),
        (ssd.build, SSD | {"backbone": "vgg16"}, (1, 6766, 10), True),
        (unet.build, UNET, (8, 8, 8, 3), False),
        (convdraw.build, CONVDRAW, (4, 8, 8, 3), False),
    ],
)
def test_inference_gives_finite_results_of_their_shape(build, sizes, shape, is_distribution):
    function, arguments = tiny(build, for_images, **sizes, training=False)
    results = function(*arguments)
    first = results[0] if isinstance(results, tuple) else results
    assert finite(results) and first.shape == shape
    if is_distribution:
        np.testing.assert_allclose(first.sum(axis=-1), 1, rtol=1e-5)


@pytest.mark.slow
def test_unrolling_changes_no_result():
    results = []
    for unroll in (1, 3):
        function, arguments = tiny(convdraw.build, for_images, **CONVDRAW, training=False, unroll=unroll)
        results.append(function(*arguments))
    np.testing.assert_allclose(*results, atol=0.1)


@pytest.mark.slow
def test_gpt2_decodes_to_the_scores_of_a_full_pass():
    prefill, (weights, tokens) = tiny(gpt2.build, **GPT2, training=False)
    decode, (_, caches, _, _) = tiny(gpt2.build, **GPT2, training=False, decode=True)
    caches = zeros(caches)
    for position in range(tokens.shape[1]):
        logits, caches = decode(weights, caches, np.int32(position), tokens[:, position])
    assert_close((logits, caches), prefill(weights, tokens))


@pytest.mark.slow
def test_no_token_depends_on_later_tokens():
    _, (weights, tokens) = tiny(gpt2.build, **GPT2, training=False)
    changed = np.concatenate([tokens[:, :5], tokens[:, 5:] % (LABELS - 1) + 1], axis=1)
    states = quick(gpt2.states, static_argnums=2)
    before, after = (states(weights, read, 2)[0] for read in (tokens, changed))
    np.testing.assert_array_equal(before[:, :5], after[:, :5])
    assert not np.allclose(before[:, 5:].astype(jnp.float32), after[:, 5:].astype(jnp.float32))


@pytest.mark.slow
def test_bert_encodings_do_not_depend_on_padding():
    encode, (weights, inputs) = tiny(bert.build, **BERT, training=False)
    inputs["real"][:, 12:] = False
    states, pooled = encode(weights, inputs)
    assert (states.shape, pooled.shape) == ((4, 16, 16), (4, 16))
    assert finite((states, pooled))
    inputs["tokens"][:, 12:] = 0
    again, pooled_again = encode(weights, inputs)
    np.testing.assert_array_equal(states[:, :12], again[:, :12])
    np.testing.assert_array_equal(pooled, pooled_again)


@pytest.mark.slow
def test_nmt_reads_in_both_directions():
    encode, (weights, source) = tiny(nmt.build, **NMT, training=False)
    values = encode(weights, source)["values"]
    source[:, -1] = LABELS
    changed = encode(weights, source)["values"]
    assert values.shape == (5, 2, 16)
    assert not np.array_equal(values[0], changed[0])


@pytest.mark.slow
def test_rnn_predicts_the_same_at_once_and_step_by_step():
    predict, (weights, states, tokens) = tiny(rnn.build, **RNN, training=False)
    states = zeros(states)
    probabilities, last = predict(weights, states, tokens)
    np.testing.assert_allclose(probabilities.sum(axis=-1), 1, rtol=1e-5)
    for time in range(tokens.shape[1]):
        stepped, states = predict(weights, states, tokens[:, time : time + 1])
    np.testing.assert_allclose(stepped, probabilities, rtol=1e-4, atol=1e-5)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), states, last)


@pytest.mark.slow
def test_adagrad_leaves_rows_that_are_not_read():
    step, (weights, sums, features, indices, clicks) = tiny(dlrm.build, **DLRM, adagrad=True)
    moved, totals, _ = step(weights, zeros(sums), features, indices, clicks)
    np.testing.assert_array_equal(moved["tables"][0][LABELS:], weights["tables"][0][LABELS:])
    assert not np.array_equal(moved["tables"][0][:LABELS], weights["tables"][0][:LABELS])
    assert (totals["tables"][0][LABELS:] == 0).all()


@pytest.mark.slow
def test_adam_decays_matrices_separately_from_the_step():
    adam = sequence.Adam(rate=lambda time: 0.1 / time, epsilon=0.0, decay=0.5)
    weights = {"matrix": np.full((2, 2), 3.0, np.float32), "vector": np.full(2, 3.0, np.float32)}
    state = weights, zeros(weights), zeros(weights), np.float32(0)
    for rate in (0.1, 0.05):  # a gradient that stays the same makes a step of the rate's size
        before, state = state[0], adam.step(*state, {"matrix": -weights["matrix"], "vector": weights["vector"]})
        np.testing.assert_allclose(state[0]["matrix"], before["matrix"] * (1 - rate * 0.5) + rate, rtol=1e-5)
        np.testing.assert_allclose(state[0]["vector"], before["vector"] - rate, rtol=1e-5)


@pytest.mark.slow
def test_batch_norm_moves_the_statistics_that_inference_uses():
    x = jnp.asarray(np.random.default_rng(0).normal(3, 2, (8, 4, 4, 5)), jnp.float32)
    norm, seen = {"scale": jnp.ones(5), "offset": jnp.zeros(5)}, []
    trained = vision.batch_norm(x, norm, seen)
    np.testing.assert_allclose(vision.batch_norm(x, norm | seen[0], seen), trained, rtol=1e-5)
    np.testing.assert_allclose(trained.mean(axis=(0, 1, 2)), 0, atol=1e-5)
    assert len(seen) == 1
    (moved,) = vision.moving_average([{"mean": jnp.zeros(5), "variance": jnp.ones(5)}], seen)
    np.testing.assert_allclose(moved["mean"], 0.1 * x.mean(axis=(0, 1, 2)), rtol=1e-5)
