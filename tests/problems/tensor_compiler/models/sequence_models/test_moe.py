"""The mixture of experts computes what it should, on tiny sizes."""

import jax
import numpy as np
import pytest
from tiny_models import MOE, finite, quick, tiny

from bbo_problems.tensor_compiler.models import moe

pytestmark = pytest.mark.slow  # compiles models that do not ship; test_models.py has those that do


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
