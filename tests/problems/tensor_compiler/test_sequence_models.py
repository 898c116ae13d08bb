from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bbo_problems.tensor_compiler.models import bert, dlrm, gpt2, moe, nmt, rnn, sequence, translate, wavernn

LABELS = 10  # integers drawn are from 1 and below it: below every tiny model's number of classes, and no padding
STEPS = 30
CLOSE = 0.03  # the part of its norm by which what is computed in bfloat16 may differ from the same in another way
QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}

GPT2 = {"batch": 2, "sequence": 8, "depth": 2, "width": 16, "heads": 2, "vocabulary": 11}
BERT = {"batch": 4, "sequence": 16, "depth": 2, "width": 16, "heads": 2, "context": 20, "vocabulary": 11}
TRANSLATE = {"batch": 2, "sequence": 6, "depth": 2, "width": 16, "heads": 2, "vocabulary": 11}
NMT = {"batch": 2, "sequence": 5, "depth": 4, "units": 16, "vocabulary": 11}
WAVERNN = {"batch": 2, "frames": 3, "hop": 4, "units": 16, "bands": 5}
DLRM = {"batch": 32, "bottom": (8, 4), "top": (16, 8), "largest": 50, "lookups": 2}
MOE = {"batch": 2, "sequence": 8, "depth": 4, "width": 16, "heads": 2, "hidden": 32, "experts": 4, "vocabulary": 11}
RNN = {"batch": 2, "sequence": 5, "depth": 2, "hidden": 8, "vocabulary": 11}

# Name: module, sizes, arguments that start from zero, step number that training starts at, the loss of one who knows
# nothing. The schedules of BERT and of the translating transformer begin with rates of almost nothing.
TRAINING = {
    "gpt2": (gpt2, GPT2 | {"depth": 1}, (1, 2), 0, np.log(11)),
    "bert": (bert, BERT | {"depth": 1}, (1, 2), 10_000, np.log(11) + np.log(2)),
    "translate": (translate, TRANSLATE | {"depth": 1}, (1, 2), 4000, np.log(11)),
    "nmt": (nmt, NMT | {"depth": 3}, (1, 2), 0, np.log(11)),
    "wavernn": (wavernn, WAVERNN | {"training": True}, (1, 2, 4), 0, 2 * np.log(256)),
    "dlrm": (dlrm, DLRM, (), 0, np.log(2)),
    "dlrm-adagrad": (dlrm, DLRM | {"adagrad": True}, (1,), 0, np.log(2)),
    "moe": (moe, MOE | {"depth": 2}, (1,), 0, np.log(11) + moe.BALANCE),
}
SLOW = {"bert", "nmt", "moe"}


def drawn(path, leaf, generator):
    """Values for an abstract argument: labels, flags that are set, or weights scaled by their fan-in."""
    if jnp.issubdtype(leaf.dtype, jnp.integer):
        return generator.integers(1, LABELS, leaf.shape).astype(leaf.dtype)
    if leaf.dtype == bool or getattr(path[-1], "key", None) == "scale":
        return np.ones(leaf.shape, leaf.dtype)
    if len(leaf.shape) < 2:
        return np.zeros(leaf.shape, leaf.dtype)
    return (generator.normal(size=leaf.shape) / np.sqrt(leaf.shape[-2])).astype(leaf.dtype)


def tiny(module, **sizes):
    """The tiny program and concrete arguments for it."""
    function, abstract = module.build(**sizes)
    generator = np.random.default_rng(0)
    arguments = jax.tree_util.tree_map_with_path(lambda path, leaf: drawn(path, leaf, generator), abstract)
    return quick(function), list(arguments)


def zeros(tree):
    return jax.tree.map(np.zeros_like, tree)


def shapes(tree):
    return jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), tree)


def finite(tree):
    return all(np.isfinite(np.asarray(leaf, np.float32)).all() for leaf in jax.tree.leaves(tree))


def count(tree):
    return sum(leaf.size for leaf in jax.tree.leaves(tree))


def quick(function, **options):
    """The function compiled in little time; it returns when it is done, so that its arguments may be changed then."""
    compiled = jax.jit(function, compiler_options=QUICK, **options)
    return lambda *arguments: jax.block_until_ready(compiled(*arguments))


def far(one, other):
    one, other = (np.asarray(values, np.float32) for values in (one, other))
    return np.linalg.norm(one - other) > CLOSE * np.linalg.norm(other)


def assert_close(one, other):
    assert shapes(one) == shapes(other)
    assert not any(map(far, jax.tree.leaves(one), jax.tree.leaves(other)))


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in TRAINING])
def test_training_lowers_the_loss_and_keeps_every_shape(name):
    module, sizes, empty, time, ignorant = TRAINING[name]
    step, arguments = tiny(module, **sizes)
    arguments = [zeros(a) if i in empty else a for i, a in enumerate(arguments)]
    arguments = [np.float32(time) if getattr(a, "shape", None) == () else a for a in arguments]
    if module is dlrm:
        arguments[-1] = np.float32(np.arange(sizes["batch"]) % 2)
    losses = []
    for _ in range(STEPS):
        *state, loss = step(*arguments)
        following = [*state, *arguments[len(state) :]]
        assert shapes(following) == shapes(arguments)
        arguments = following
        losses.append(float(loss))
    assert finite(arguments)
    assert losses[0] == pytest.approx(ignorant, rel=0.5)
    assert losses[-1] < 0.99 * losses[0]


def test_adam_decays_matrices_apart_from_the_step():
    adam = sequence.Adam(rate=lambda time: 0.1 / time, epsilon=0.0, decay=0.5)
    weights = {"matrix": np.full((2, 2), 3.0, np.float32), "vector": np.full(2, 3.0, np.float32)}
    state = weights, zeros(weights), zeros(weights), np.float32(0)
    for rate in (0.1, 0.05):  # a gradient that stays the same makes a step of the rate's size
        before, state = state[0], adam.step(*state, {"matrix": -weights["matrix"], "vector": weights["vector"]})
        np.testing.assert_allclose(state[0]["matrix"], before["matrix"] * (1 - rate * 0.5) + rate, rtol=1e-5)
        np.testing.assert_allclose(state[0]["vector"], before["vector"] - rate, rtol=1e-5)


def test_adafactor_steps_by_signs_where_squares_are_an_outer_product():
    gradient = np.float32(np.outer([1, 2, 3], [4, -5]))
    moments = {"rows": np.zeros(3, np.float32), "columns": np.zeros(2, np.float32)}
    weight, _ = moe._adafactor(np.full((3, 2), 2.0, np.float32), moments, gradient, np.float32(1))
    np.testing.assert_allclose(weight, 2 - 2 * moe.RATE * np.sign(gradient), rtol=1e-5)


def test_gradients_are_clipped_to_a_global_norm():
    gradients = {"a": np.float32([3, 0]), "b": np.float32([4])}
    np.testing.assert_allclose(sequence.clipped(gradients, 1.0)["b"], [0.8], rtol=1e-6)
    np.testing.assert_allclose(sequence.clipped(gradients, 6.0)["b"], [4.0], rtol=1e-6)


def test_only_labels_that_count_are_averaged():
    logits = np.float32(np.random.default_rng(0).normal(size=(3, 4)))
    labels, counted = np.int32([0, 1, 2]), np.array([True, False, True])
    expected = -np.asarray(jax.nn.log_softmax(logits))[[0, 2], [0, 2]].mean()
    assert sequence.counted_cross_entropy(logits, labels, counted) == pytest.approx(expected, rel=1e-5)


def test_gpt2_has_the_published_parameters():
    # As OpenAI released them: https://huggingface.co/openai-community/gpt2 and gpt2-medium.
    assert count(gpt2.build()[1][0]) == 124_439_808
    assert count(gpt2.build(depth=24, width=1024, heads=16)[1][0]) == 354_823_168


@pytest.mark.parametrize(
    ("sizes", "encoder", "all_weights"),
    [
        ({}, 109_482_240, 110_106_428),
        ({"depth": 24, "width": 1024, "heads": 16}, 335_141_888, 336_226_108),
    ],
)
def test_bert_has_the_published_parameters(sizes, encoder, all_weights):
    # BertModel and BertForPreTraining of bert-base-uncased and bert-large-uncased in Hugging Face's transformers; the
    # paper has 110 and 340 million.
    weights = bert.build(**sizes)[1][0]
    assert count(weights["encoder"]) == encoder
    assert count(weights) == all_weights


@pytest.mark.parametrize(("sizes", "millions"), [({}, 65), ({"width": 1024, "heads": 16}, 213)])
def test_translate_has_about_the_published_parameters(sizes, millions):
    # Table 3 of Vaswani et al.; the vocabulary is "about 37000".
    assert count(translate.build(**sizes)[1][0]) / 1e6 == pytest.approx(millions, rel=0.04)


def test_nmt_has_about_the_published_parameters():
    # Wu et al. as Shazeer et al., Outrageously Large Neural Networks, 2017, count it: 278 million.
    assert count(nmt.build()[1][0]) / 1e6 == pytest.approx(278, rel=0.02)


def test_wavernn_has_the_parameters_of_its_equations():
    # Equation 2 of the paper: one matrix R of 896 x 3 * 896, the inputs, of which c_t is seen by the fine half alone,
    # and O_1 to O_4; biases besides.
    weights = wavernn.build()[1][0]
    weights = {name: weights[name] for name in ("recurrent", "coarse", "fine")}
    matrices = 896 * 3 * 896 + 3 * 448 * (2 + 3) + 2 * (448 * 448 + 448 * 256)
    assert count(weights) == matrices + 3 * 896 + 2 * (448 + 256)


def test_dlrm_has_the_published_parameters():
    # Section 5 of the paper has 540 million for Kaggle with rows of 16; MLPerf's model has 24 billion (about 96 GB).
    kaggle = dlrm.build(data="kaggle", bottom=(512, 256, 64, 16), top=(512, 256))[1][0]
    assert round(count(kaggle["tables"]) / 1e6) == 540
    assert round(count(dlrm.build()[1][0]) / 1e9) == 24


def test_moe_has_about_the_published_parameters():
    # Table 9 of Fedus et al. has 7 billion for Switch-Base, almost all of them in 12 layers of 128 experts.
    assert round(count(moe.build()[1][0]) / 1e9) == 7


def test_gpt2_reads_a_prompt():
    prefill, (weights, tokens) = tiny(gpt2, **GPT2, training=False)
    logits, caches = prefill(weights, tokens)
    assert logits.shape == (2, 11)
    assert [cache["key"].shape for cache in caches] == [(2, 8, 2, 8)] * 2
    assert finite((logits, caches))


def test_gpt2_decodes_what_it_reads():
    prefill, (weights, tokens) = tiny(gpt2, **GPT2, training=False)
    decode, (_, caches, _, _) = tiny(gpt2, **GPT2, training=False, decode=True)
    caches = zeros(caches)
    for position in range(tokens.shape[1]):
        logits, caches = decode(weights, caches, np.int32(position), tokens[:, position])
    assert_close((logits, caches), prefill(weights, tokens))


@pytest.mark.parametrize("module", [gpt2, moe])
def test_no_token_sees_those_that_follow(module):
    _, (weights, tokens) = tiny(module, **(GPT2 if module is gpt2 else MOE), training=False)
    changed = np.concatenate([tokens[:, :5], tokens[:, 5:] % (LABELS - 1) + 1], axis=1)
    if module is gpt2:
        states = quick(gpt2.states, static_argnums=2)
    else:
        states = quick(partial(moe._states, slack=moe.INFERENCE_CAPACITY), static_argnums=2)
    before, after = (states(weights, read, 2)[0] for read in (tokens, changed))
    np.testing.assert_array_equal(before[:, :5], after[:, :5])
    assert not np.allclose(before[:, 5:].astype(jnp.float32), after[:, 5:].astype(jnp.float32))


def test_bert_encodes_without_seeing_padding():
    encode, (weights, inputs) = tiny(bert, **BERT, training=False)
    inputs["real"][:, 12:] = False
    states, pooled = encode(weights, inputs)
    assert (states.shape, pooled.shape) == ((4, 16, 16), (4, 16))
    assert finite((states, pooled))
    inputs["tokens"][:, 12:] = 0
    again, pooled_again = encode(weights, inputs)
    np.testing.assert_array_equal(states[:, :12], again[:, :12])
    np.testing.assert_array_equal(pooled, pooled_again)


def test_bert_sees_tokens_that_follow():
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


def test_translate_decodes_what_the_full_pass_scores():
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


def test_translate_sees_neither_padding_nor_what_follows():
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


def test_nmt_decodes_what_the_full_pass_scores():
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


def test_rnn_predicts_alike_at_once_and_step_by_step():
    predict, (weights, states, tokens) = tiny(rnn, **RNN, training=False)
    states = zeros(states)
    probabilities, last = predict(weights, states, tokens)
    np.testing.assert_allclose(probabilities.sum(axis=-1), 1, rtol=1e-5)
    for time in range(tokens.shape[1]):
        stepped, states = predict(weights, states, tokens[:, time : time + 1])
    np.testing.assert_allclose(stepped, probabilities, rtol=1e-4, atol=1e-5)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), states, last)
