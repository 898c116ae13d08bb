"""The sequence models and the recommendation model compute what they should, on tiny sizes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tiny_models import (
    BERT,
    DLRM,
    GPT2,
    LABELS,
    NMT,
    RNN,
    assert_close,
    finite,
    quick,
    tiny,
    zeros,
)

from bbo_problems.tensor_compiler.models import bert, dlrm, gpt2, nmt, rnn

pytestmark = pytest.mark.slow  # compiles models that do not ship; test_models.py has those that do


def test_gpt2_decodes_to_the_scores_of_a_full_pass():
    prefill, (weights, tokens) = tiny(gpt2, **GPT2, training=False)
    decode, (_, caches, _, _) = tiny(gpt2, **GPT2, training=False, decode=True)
    caches = zeros(caches)
    for position in range(tokens.shape[1]):
        logits, caches = decode(weights, caches, np.int32(position), tokens[:, position])
    assert_close((logits, caches), prefill(weights, tokens))


def test_no_token_depends_on_later_tokens():
    _, (weights, tokens) = tiny(gpt2, **GPT2, training=False)
    changed = np.concatenate([tokens[:, :5], tokens[:, 5:] % (LABELS - 1) + 1], axis=1)
    states = quick(gpt2.states, static_argnums=2)
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


def test_nmt_reads_in_both_directions():
    encode, (weights, source) = tiny(nmt, **NMT, training=False)
    values = encode(weights, source)["values"]
    source[:, -1] = LABELS
    changed = encode(weights, source)["values"]
    assert values.shape == (5, 2, 16)
    assert not np.array_equal(values[0], changed[0])


def test_rnn_predicts_the_same_at_once_and_step_by_step():
    predict, (weights, states, tokens) = tiny(rnn, **RNN, training=False)
    states = zeros(states)
    probabilities, last = predict(weights, states, tokens)
    np.testing.assert_allclose(probabilities.sum(axis=-1), 1, rtol=1e-5)
    for time in range(tokens.shape[1]):
        stepped, states = predict(weights, states, tokens[:, time : time + 1])
    np.testing.assert_allclose(stepped, probabilities, rtol=1e-4, atol=1e-5)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), states, last)


def test_adagrad_leaves_rows_that_are_not_read():
    step, (weights, sums, features, indices, clicks) = tiny(dlrm, **DLRM, adagrad=True)
    moved, totals, _ = step(weights, zeros(sums), features, indices, clicks)
    np.testing.assert_array_equal(moved["tables"][0][LABELS:], weights["tables"][0][LABELS:])
    assert not np.array_equal(moved["tables"][0][:LABELS], weights["tables"][0][:LABELS])
    assert (totals["tables"][0][LABELS:] == 0).all()
