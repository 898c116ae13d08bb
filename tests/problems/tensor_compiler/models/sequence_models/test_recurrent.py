"""NMT, WaveRNN and the recurrent language model compute what they should, on tiny sizes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tiny_models import LABELS, NMT, RNN, WAVERNN, assert_close, finite, quick, tiny, zeros

from bbo_problems.tensor_compiler.models import nmt, rnn, wavernn

pytestmark = pytest.mark.slow  # compiles models that do not ship; test_models.py has those that do


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
