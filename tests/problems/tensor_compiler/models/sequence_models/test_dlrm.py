"""The recommendation model computes what it should, on tiny sizes."""

import jax
import numpy as np
import pytest
from tiny_models import DLRM, LABELS, quick, tiny, zeros

from bbo_problems.tensor_compiler.models import dlrm

pytestmark = pytest.mark.slow  # compiles models that do not ship; test_models.py has those that do


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
