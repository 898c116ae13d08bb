"""The sequence models and the recommendation model compute what they should, on tiny sizes."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tiny_models import (
    BERT,
    DLRM,
    GPT2,
    LABELS,
    MOE,
    NMT,
    RNN,
    TRANSLATE,
    WAVERNN,
    assert_close,
    finite,
    quick,
    tiny,
    zeros,
)

from bbo_problems.tensor_compiler.models import bert, dlrm, gpt2, moe, nmt, rnn, translate, wavernn

pytestmark = pytest.mark.slow  # compiles models that do not ship; test_models.py has those that do


def test_gpt2_reads_a_prompt():
    prefill, (weights, tokens) = tiny(gpt2, **GPT2, training=False)
    logits, caches = prefill(weights, tokens)
    assert logits.shape == (2, 11)
    assert [cache["key"].shape for cache in caches] == [(2, 8, 2, 8)] * 2
    assert finite((logits, caches))


def test_gpt2_decodes_to_the_scores_of_a_full_pass():
    prefill, (weights, tokens) = tiny(gpt2, **GPT2, training=False)
    decode, (_, caches, _, _) = tiny(gpt2, **GPT2, training=False, decode=True)
    caches = zeros(caches)
    for position in range(tokens.shape[1]):
        logits, caches = decode(weights, caches, np.int32(position), tokens[:, position])
    assert_close((logits, caches), prefill(weights, tokens))


@pytest.mark.parametrize("module", [gpt2, moe])
def test_no_token_depends_on_later_tokens(module):
    _, (weights, tokens) = tiny(module, **(GPT2 if module is gpt2 else MOE), training=False)
    changed = np.concatenate([tokens[:, :5], tokens[:, 5:] % (LABELS - 1) + 1], axis=1)
    if module is gpt2:
        states = quick(gpt2.states, static_argnums=2)
    else:
        states = quick(partial(moe._states, slack=moe.INFERENCE_CAPACITY), static_argnums=2)
    before, after = (states(weights, read, 2)[0] for read in (tokens, changed))
    np.testing.assert_array_equal(before[:, :5], after[:, :5])
    assert not np.allclose(before[:, 5:].astype(jnp.float32), after[:, 5:].astype(jnp.float32))


def test_bert_encodings_do_not_depend_on_padding():
    encode, (weights, inputs) = tiny(bert, **BERT, training=False)
    inputs["real"][:, 12:] = False
    states, pooled = encode(weights, inputs)
    assert (states.shape, pooled.shape) == ((4, 16, 16), (4, 16))
    assert finite((states, pooled))
    inputs["tokens"][:, 12:] = 0
    again, pooled_again = encode(weights, inputs)
    np.testing.assert_array_equal(states[:, :12], again[:, :12])
    np.testing.assert_array_equal(pooled, pooled_again)


def test_bert_encodings_depend_on_later_tokens():
    encode, (weights, inputs) = tiny(bert, **BERT, training=False)
    states, _ = encode(weights, inputs)
    inputs["tokens"][:, -1] = 0
    changed, _ = encode(weights, inputs)
    assert not np.array_equal(states[:, 0], changed[:, 0])


def test_bert_counts_only_the_masked_tokens_that_count():
    _, (weights, *_, inputs, targets) = tiny(bert, **BERT)
    targets["counts"][:, 1:] = False
    loss_of = quick(bert._loss, static_argnums=3)
    loss = loss_of(weights, inputs, targets, 2)
    targets["tokens"][:, 1:] = 0
    assert loss_of(weights, inputs, targets, 2) == loss


def test_translate_decodes_to_the_scores_of_a_full_pass():
    encode, (weights, source) = tiny(translate, **TRANSLATE, training=False)
    source[1, 4:] = translate.PADDING
    decode, (_, _, _, caches, _, _) = tiny(translate, **TRANSLATE, training=False, decode=True)
    memories, caches = encode(weights, source), zeros(caches)
    target = (source + 3) % LABELS
    logits = quick(translate._logits)(weights, source, target)
    for position in range(target.shape[1]):
        scores, caches = decode(weights, source, memories, caches, np.int32(position), target[:, position])
        assert scores.shape == (2, 11)
        assert_close(scores, logits[:, position])


def test_translate_depends_neither_on_padding_nor_on_later_tokens():
    _, (weights, source) = tiny(translate, **TRANSLATE, training=False)
    target = (source + 3) % LABELS
    logits_of = quick(translate._logits)
    logits = logits_of(weights, source, target)
    changed = np.concatenate([target[:, :4], target[:, 4:] % (LABELS - 1) + 1], axis=1)
    np.testing.assert_array_equal(logits[:, :4], logits_of(weights, source, changed)[:, :4])
    padded = np.pad(source, ((0, 0), (0, 2)), constant_values=translate.PADDING)
    assert_close(logits, logits_of(weights, padded, target))


def test_smoothed_loss_is_that_of_the_smoothed_labels():
    _, (weights, *_, source, target) = tiny(translate, **TRANSLATE)
    scores = jax.nn.log_softmax(quick(translate._logits)(weights, source, target[:, :-1]).astype(jnp.float32))
    labels = 0.9 * jax.nn.one_hot(target[:, 1:], 11) + 0.1 / 11
    np.testing.assert_allclose(
        quick(translate._loss)(weights, source, target), -(labels * scores).sum(-1).mean(), rtol=1e-5
    )


def test_nmt_decodes_the_likeliest_token_of_a_full_pass():
    encode, (weights, source) = tiny(nmt, **NMT, training=False)
    source[1, 3:] = nmt.PADDING
    decode, (_, _, state, _) = tiny(nmt, **NMT, training=False, decode=True)
    memory, state = encode(weights, source), zeros(state)
    target = (source + 3) % LABELS
    logits = quick(nmt._logits)(weights, source, target).astype(jnp.float32)
    for time in range(target.shape[1]):
        tokens, state = decode(weights, memory, state, target[:, time])
        assert tokens.shape == (2,)
        assert_close(logits[time][np.arange(2), tokens], logits[time].max(axis=-1))
    assert finite((memory["keys"], memory["values"], state))


def test_nmt_reads_in_both_directions():
    encode, (weights, source) = tiny(nmt, **NMT, training=False)
    values = encode(weights, source)["values"]
    source[:, -1] = LABELS
    changed = encode(weights, source)["values"]
    assert values.shape == (5, 2, 16)
    assert not np.array_equal(values[0], changed[0])


def test_wavernn_draws_samples_along_the_states_of_training():
    draw, (weights, carry, mel, _) = tiny(wavernn, **WAVERNN)
    chances = np.random.default_rng(1).random((3, 4, 2, 2), np.float32)
    last, samples = draw(weights, carry, mel, chances)
    assert samples.shape == (3, 4, 2, 2)
    assert ((samples >= 0) & (samples < 256)).all()
    np.testing.assert_array_equal(samples[-1, -1], last["sample"])
    known = np.concatenate([carry["sample"][None], np.asarray(samples).reshape(12, 2, 2)])
    _, state = quick(wavernn._loss)(weights, carry["state"], mel, known)
    assert_close(state, last["state"])


def test_wavernn_draws_by_the_probabilities():
    chances = np.random.default_rng(1).random(4000, np.float32)
    logits = np.full((4000, 256), -np.inf, np.float32)
    logits[:, 7], logits[:, 200] = np.log(0.25), np.log(0.75)
    bits = np.asarray(quick(wavernn._drawn)(logits, chances))
    assert set(np.unique(bits)) == {7, 200}
    assert (bits == 7).mean() == pytest.approx(0.25, abs=0.03)


def test_rnn_predicts_the_same_at_once_and_step_by_step():
    predict, (weights, states, tokens) = tiny(rnn, **RNN, training=False)
    states = zeros(states)
    probabilities, last = predict(weights, states, tokens)
    np.testing.assert_allclose(probabilities.sum(axis=-1), 1, rtol=1e-5)
    for time in range(tokens.shape[1]):
        stepped, states = predict(weights, states, tokens[:, time : time + 1])
    np.testing.assert_allclose(stepped, probabilities, rtol=1e-4, atol=1e-5)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), states, last)


def test_dlrm_scores():
    score, arguments = tiny(dlrm, **DLRM, training=False)
    probabilities = score(*arguments)
    assert probabilities.shape == (32,)
    assert ((probabilities > 0) & (probabilities < 1)).all()


def test_dlrm_interactions_are_products_of_all_pairs():
    vectors = np.float32(np.random.default_rng(0).normal(size=(3, 4, 5)))
    products = quick(dlrm._interactions)(vectors)
    expected = [(vectors[:, i] * vectors[:, j]).sum(-1) for i in range(4) for j in range(i)]
    np.testing.assert_allclose(products, np.stack(expected, axis=1), rtol=1e-4, atol=1e-5)


def test_dlrm_updates_rows_as_a_dense_step_would():
    step, (weights, features, indices, clicks) = tiny(dlrm, **DLRM)
    indices = np.minimum(indices, 2)  # many rows are read more than once
    gradients = quick(jax.grad(lambda w: dlrm._loss(w, dlrm._read(w["tables"], indices), features, clicks)))(weights)
    expected = jax.tree.map(lambda w, g: w - dlrm.LEARNING_RATE * g, weights, gradients)
    moved, _ = step(weights, features, indices, clicks)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), moved, expected)


def test_adagrad_leaves_rows_that_are_not_read():
    step, (weights, sums, features, indices, clicks) = tiny(dlrm, **DLRM, adagrad=True)
    moved, totals, _ = step(weights, zeros(sums), features, indices, clicks)
    np.testing.assert_array_equal(moved["tables"][0][LABELS:], weights["tables"][0][LABELS:])
    assert not np.array_equal(moved["tables"][0][:LABELS], weights["tables"][0][:LABELS])
    assert (totals["tables"][0][LABELS:] == 0).all()


def test_moe_predicts():
    predict, (weights, tokens) = tiny(moe, **MOE, training=False)
    logits = predict(weights, tokens)
    assert logits.shape == (2, 11)
    assert finite(logits)
    assert ["router" in layer for layer in weights["layers"]] == [False, True, False, True]


experts_of = quick(moe._experts, static_argnums=2)


def experts_layer(experts):
    _, (weights, _) = tiny(moe, **MOE | {"experts": experts}, training=False)
    x = np.float32(np.random.default_rng(2).normal(size=(2, 8, 16)))
    return x, jax.tree.map(np.float32, weights["layers"][1])


def test_one_expert_is_a_dense_layer():
    x, layer = experts_layer(1)
    y, balance = experts_of(x, layer, 1.0)
    expected = np.maximum(x @ layer["expand"][0], 0) @ layer["contract"][0]
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)
    assert balance == 1


def test_an_expert_takes_the_first_tokens_up_to_its_capacity():
    x, layer = experts_layer(4)
    layer["router"][:] = np.arange(4) == 2
    y, balance = experts_of(np.abs(x), layer, 1.5)  # every token prefers expert 2, which takes 3 of 8
    y = np.asarray(y)
    assert (y[:, :3] != 0).any(axis=-1).all()
    assert (y[:, 3:] == 0).all()
    assert balance > 1


def test_each_token_goes_to_its_likeliest_expert():
    x, layer = experts_layer(4)
    y = np.asarray(experts_of(x, layer, 4.0)[0])
    shares = np.asarray(jax.nn.softmax(x @ layer["router"]))
    for where in np.ndindex(2, 8):
        best = int(shares[where].argmax())
        expected = shares[where][best] * (np.maximum(x[where] @ layer["expand"][best], 0) @ layer["contract"][best])
        np.testing.assert_allclose(y[where], expected, rtol=1e-3, atol=1e-4)
