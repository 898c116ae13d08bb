"""Small models, each a function without arguments that returns a JAX function and its example arguments.

A user's file looks the same. `checkpoint_name(x, "name")` marks a value whose layout and fusion are tuned.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.ad_checkpoint import checkpoint_name

from .marks import Program

Array = jax.Array


def _array(*dims: int, dtype: Any = jnp.bfloat16) -> jax.ShapeDtypeStruct:  # noqa: ANN401 - a scalar type
    return jax.ShapeDtypeStruct(dims, dtype)


def _normalised(x: Array) -> Array:
    wide = x.astype(jnp.float32)
    centred = wide - wide.mean(-1, keepdims=True)
    return (centred * lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + 1e-5)).astype(x.dtype)


def _attended(x: Array, wq: Array, wk: Array, wv: Array, wo: Array) -> Array:
    """Attend from everywhere to everywhere; `(d, h, k)` weights in, `(h, k, d)` weights out."""
    q, k, v = (checkpoint_name(jnp.einsum("btd,dhk->bthk", x, w), n) for w, n in ((wq, "q"), (wk, "k"), (wv, "v")))
    scores = checkpoint_name(jnp.einsum("bqhk,bshk->bhqs", q, k) / 8.0, "scores")
    shares = checkpoint_name(jax.nn.softmax(scores.astype(jnp.float32)).astype(x.dtype), "shares")
    mixed = checkpoint_name(jnp.einsum("bhqs,bshk->bqhk", shares, v), "mixed")
    return jnp.einsum("bthk,hkd->btd", mixed, wo)


def attention() -> Program:
    """Self-attention with eight heads and its four projections."""
    return _attended, (_array(2, 256, 512), *[_array(512, 8, 64)] * 3, _array(8, 64, 512))


def transformer() -> Program:
    """One layer of a transformer: attention and two dense layers, both with a norm and a residual connection."""

    def f(x: Array, wq: Array, wk: Array, wv: Array, wo: Array, w1: Array, w2: Array) -> Array:
        y = checkpoint_name(_normalised(x), "norm1")
        x = checkpoint_name(x + _attended(y, wq, wk, wv, wo), "residual")
        y = checkpoint_name(_normalised(x), "norm2")
        hidden = checkpoint_name(jax.nn.gelu(y @ w1), "hidden")
        return x + hidden @ w2

    weights = (*[_array(256, 4, 64)] * 3, _array(4, 64, 256), _array(256, 1024), _array(1024, 256))
    return f, (_array(2, 256, 256), *weights)


def mlp() -> Program:
    """A training step of a perceptron of three layers: gradients and new weights."""

    def loss(weights: list[Array], x: Array, target: Array) -> Array:
        for i, w in enumerate(weights[:-1]):
            x = checkpoint_name(jax.nn.relu(checkpoint_name(x @ w, f"sum{i}")), f"hidden{i}")
        logits = checkpoint_name(x @ weights[-1], "logits").astype(jnp.float32)
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * target, -1))

    def f(weights: list[Array], x: Array, target: Array) -> list[Array]:
        gradients = jax.grad(loss)(weights, x, target)
        return [w - (0.01 * checkpoint_name(g, f"gradient{i}")).astype(w.dtype)
                for i, (w, g) in enumerate(zip(weights, gradients, strict=True))]  # fmt: skip

    widths = (256, 512, 512, 128)
    weights = [_array(*pair) for pair in pairwise(widths)]
    return f, (weights, _array(512, 256), _array(512, 128, dtype=jnp.float32))


def conv() -> Program:
    """A bottleneck of a residual network: three convolutions with scales, of which one has a window."""

    def convolved(x: Array, w: Array) -> Array:
        return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def f(x: Array, w1: Array, w2: Array, w3: Array, s1: Array, s2: Array, s3: Array) -> Array:
        y = checkpoint_name(jax.nn.relu(checkpoint_name(convolved(x, w1), "conv1") * s1), "relu1")
        y = checkpoint_name(jax.nn.relu(checkpoint_name(convolved(y, w2), "conv2") * s2), "relu2")
        y = checkpoint_name(convolved(y, w3), "conv3")
        return jax.nn.relu(x + y * s3).mean((1, 2))

    weights = (_array(1, 1, 256, 64), _array(3, 3, 64, 64), _array(1, 1, 64, 256))
    return f, (_array(8, 28, 28, 256), *weights, _array(64), _array(64), _array(256))


def lstm() -> Program:
    """A recurrent layer over 24 steps: a loop."""

    def f(x: Array, c: Array, h: Array, wx: Array, wh: Array, b: Array) -> tuple[Array, Array]:
        def step(state: tuple[Array, Array], x: Array) -> tuple[tuple[Array, Array], Array]:
            c, h = state
            gates = checkpoint_name(x @ wx + h @ wh + b, "gates")
            i, forget, g, o = jnp.split(gates, 4, -1)
            c = checkpoint_name(jax.nn.sigmoid(forget) * c + jax.nn.sigmoid(i) * jnp.tanh(g), "cell")
            h = checkpoint_name(jax.nn.sigmoid(o) * jnp.tanh(c), "state")
            return (c, h), h

        (c, h), outputs = lax.scan(step, (c, h), x)
        return h, checkpoint_name(outputs, "outputs")

    state, wide = _array(32, 256), _array(256, 1024)
    return f, (_array(24, 32, 256), state, state, wide, wide, _array(1024))


def dlrm() -> Program:
    """A recommender: embeddings of 8 tables, their products with each other, and two perceptrons."""

    def f(dense: Array, ids: Array, tables: Array, w1: Array, w2: Array, w3: Array, w4: Array) -> Array:
        bottom = checkpoint_name(jax.nn.relu(checkpoint_name(jax.nn.relu(dense @ w1), "bottom1") @ w2), "bottom2")
        rows = jax.vmap(lambda table, row: table[row], (0, 1), 1)(tables, ids)
        vectors = checkpoint_name(jnp.concatenate([bottom[:, None], rows], 1), "vectors")
        products = checkpoint_name(jnp.einsum("bif,bjf->bij", vectors, vectors), "products")
        top = jnp.concatenate([bottom, products.reshape(len(dense), -1)], 1)
        return checkpoint_name(jax.nn.relu(checkpoint_name(top, "features") @ w3), "top") @ w4

    ids = _array(512, 8, dtype=jnp.int32)
    weights = (_array(16, 256), _array(256, 64), _array(64 + 81, 256), _array(256, 1))
    return f, (_array(512, 16), ids, _array(8, 1000, 64), *weights)


def norm() -> Program:
    """Element by element and row by row, no matrix product: a norm, a gate, a softmax and an entropy."""

    def f(x: Array, scale: Array, gate: Array) -> tuple[Array, Array]:
        y = checkpoint_name(_normalised(x) * scale, "norm")
        y = checkpoint_name(y * jax.nn.silu(gate), "gated")
        shares = checkpoint_name(jax.nn.softmax(y.astype(jnp.float32)), "shares")
        entropy = -jnp.sum(shares * jnp.log(shares + 1e-6), -1)
        return checkpoint_name(shares.astype(x.dtype) * x, "weighted").transpose(0, 2, 1), entropy

    return f, (_array(4, 256, 1024), _array(1024), _array(4, 256, 1024))
