"""GPT-2, BERT and the translating transformer compute what they should, on tiny sizes."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tiny_models import BERT, GPT2, LABELS, MOE, TRANSLATE, assert_close, finite, quick, tiny, zeros

from bbo_problems.tensor_compiler.models import bert, gpt2, moe, translate

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
