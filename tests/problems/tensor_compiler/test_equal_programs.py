"""Equal programs cost the same, however they are written: pairs of functions in JAX, through XLA's own passes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bbo_suite
from bbo_problems.tensor_compiler.hlo import reader, xla
from bbo_suite.registry import Registry
from bbo_suite.supervised import Answer

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_cache")]  # lowers and compiles 56 programs

B, S, D, H, LAYERS = 8, 256, 512, 1024, 6


def array(*dims):
    return jax.ShapeDtypeStruct(dims, jnp.bfloat16)


X, W, BACK, SCALE = array(B, S, D), array(D, H), array(H, D), array(D)
STACK, HEADS = array(LAYERS, D, D), array(B, S, 8, 64)


def mlp(x, w, back):
    return jnp.tanh(x @ w) @ back


def product(x, w):
    return jnp.tanh(x @ w)


def scanned(x, stack):
    return jax.lax.scan(lambda state, w: (jnp.tanh(state @ w), None), x, stack)[0]


def unrolled(x, stack):
    for i in range(LAYERS):
        x = jnp.tanh(x @ stack[i])
    return x


def weights_of(scores):
    return jax.nn.softmax(scores.astype(jnp.float32), -1).astype(jnp.bfloat16)


def attention(q, k, v):
    return jnp.einsum("bhqk,bkhd->bqhd", weights_of(jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8), v)


def attention_of_transposed(q, k, v):
    q, k, v = (each.transpose(0, 2, 1, 3) for each in (q, k, v))
    return (weights_of(q @ k.transpose(0, 1, 3, 2) / 8) @ v).transpose(0, 2, 1, 3)


def attention_by_vmap(q, k, v):
    return jax.vmap(jax.vmap(lambda q, k, v: weights_of(q @ k.T / 8) @ v, (1, 1, 1), 1))(q, k, v)


def normed(x, scale):
    centred = x.astype(jnp.float32) - x.astype(jnp.float32).mean(-1, keepdims=True)
    return (centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5)).astype(jnp.bfloat16) * scale


def gradient(function):
    return jax.grad(lambda w, x, back: function(x, w, back).astype(jnp.float32).sum())


def by_einsum(x, w, back):
    return jnp.einsum("bsh,hd->bsd", jnp.tanh(jnp.einsum("bsd,dh->bsh", x, w)), back)


def softmax_by_hand(x):
    shifted = jnp.exp(x - x.max(-1, keepdims=True))
    return shifted / shifted.sum(-1, keepdims=True)


PAIRS = {
    "scale": (lambda x, g: jnp.exp(x * g), lambda x, g: jnp.exp(jnp.einsum("bsk,k->bsk", x, g)), X, SCALE),
    "einsum": (product, lambda x, w: jnp.tanh(jnp.einsum("bsd,dh->bsh", x, w)), X, W),
    "rows merged": (product, lambda x, w: jnp.tanh(x.reshape(B * S, D) @ w).reshape(B, S, H), X, W),
    "turned weights": (product, lambda x, w: jnp.tanh(jnp.einsum("bsd,hd->bsh", x, w.T)), X, W),
    "turned twice": (mlp, lambda x, w, b: mlp(x.transpose(0, 2, 1).transpose(0, 2, 1), w.T.T, b), X, W, BACK),
    "operands swapped": (product, lambda x, w: jnp.tanh((w.T @ x.transpose(0, 2, 1)).transpose(0, 2, 1)), X, W),
    "times one": (mlp, lambda x, w, b: mlp(x * 1, w + 0, b * 1), X, W, BACK),
    "cast twice": (mlp, lambda x, w, b: mlp(x.astype(jnp.float32).astype(x.dtype), w, b), X, W, BACK),
    "jit inside": (mlp, lambda x, w, b: jax.jit(product)(x, w) @ b, X, W, BACK),
    "remat": (mlp, jax.checkpoint(mlp), X, W, BACK),
    "vmap": (mlp, lambda x, w, b: jax.vmap(lambda rows: mlp(rows, w, b))(x), X, W, BACK),
    "vmap of vmap": (mlp, lambda x, w, b: jax.vmap(jax.vmap(lambda row: mlp(row, w, b)))(x), X, W, BACK),
    "named": (mlp, jax.named_scope("layer")(mlp), X, W, BACK),
    "reshapes": (
        mlp,
        lambda x, w, b: mlp(x.reshape(B * S, D).reshape(B, S // 2, 2, D).reshape(B, S, D), w, b),
        X,
        W,
        BACK,
    ),
    "attention turned": (attention, attention_of_transposed, HEADS, HEADS, HEADS),
    "attention by vmap": (attention, attention_by_vmap, HEADS, HEADS, HEADS),
    "gradient": (gradient(mlp), gradient(jax.jit(mlp)), W, X, BACK),
    "gradient of einsum": (gradient(mlp), gradient(by_einsum), W, X, BACK),
    "norm": (normed, lambda x, g: jnp.einsum("bsd,d->bsd", normed(x, jnp.ones_like(g)), g), X, SCALE),
    "norm by vmap": (normed, lambda x, g: jax.vmap(lambda row: normed(row, g))(x), X, SCALE),
    "mean": (lambda x: x.mean(1), lambda x: x.sum(1) / S, X),
    "relu": (lambda x, w: jax.nn.relu(x @ w), lambda x, w: jnp.where(x @ w > 0, x @ w, 0), X, W),
    "batch last": (
        lambda x, y: jnp.einsum("bsd,btd->bst", x, y),
        lambda x, y: jnp.einsum("bsd,btd->tbs", x, y).transpose(1, 2, 0),
        X,
        X,
    ),
    "split": (product, lambda x, w: jnp.concatenate(jnp.split(product(x, w), 2, -1), -1), X, W),
    "square": (lambda x: x * x + x, lambda x: x**2 + x, X),
    "softmax": (lambda x: jax.nn.softmax(x, -1), softmax_by_hand, X),
    "computed twice": (lambda x, w: (x @ w, x @ w), lambda x, w: (x @ w,) * 2, X, W),
    "stack swapped": (scanned, lambda x, stack: scanned(x, stack.transpose(0, 2, 1)), X, STACK),
}


@pytest.fixture
def problem(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "ask_xla", lambda what, *given: Answer(getattr(xla, what)(*given)))

    def of(function, arguments):
        path = tmp_path / "f.hlo"
        path.write_text(jax.jit(function).lower(*arguments).compiler_ir("hlo").as_hlo_text())
        return Registry().load(f"joint:{path}")  # both programs have this path

    return of


@pytest.fixture
def cost(problem):
    def of(function, arguments):
        loaded = problem(function, arguments)
        return loaded.evaluate(loaded.default_row()[None]).values[0]

    return of


@pytest.mark.parametrize("name", PAIRS)
def test_two_ways_to_write_a_program_cost_the_same(name, cost):
    one, other, *arguments = PAIRS[name]
    assert cost(other, arguments) == pytest.approx(cost(one, arguments), rel=0.05)


def test_a_loop_costs_what_its_bodies_cost(cost):
    assert cost(scanned, (X, STACK)) == pytest.approx(cost(unrolled, (X, STACK)), rel=0.01)


def test_the_order_of_a_stack_does_not_matter(cost):
    orders = [(0, 1, 2), (1, 0, 2), (2, 1, 0)]
    costs = []
    for order in orders:
        stored = [0] * 3
        for place, size in zip(order, STACK.shape, strict=True):
            stored[place] = size
        costs.append(cost(lambda x, stack, order=order: scanned(x, stack.transpose(order)), (X, array(*stored))))
    assert costs == pytest.approx([costs[0]] * 3, rel=0.02)


CHAINED = {
    "mlp": ("turned twice", "times one", "cast twice", "jit inside", "vmap", "vmap of vmap", "named", "reshapes"),
    "norm": ("norm", "norm by vmap"),
    "scale": ("scale",),
    "square": ("square",),
    "softmax": ("softmax",),
}
"""Pairs of which one result is the next one's input, by what they compute."""


@pytest.mark.parametrize("seed", range(12))
def test_chains_of_random_blocks_cost_the_same_however_each_is_written(seed, cost):
    """`results/simulator_vs_xla` has more of them, with attention, loops and gradients."""
    rng = np.random.default_rng(seed)
    pairs = [PAIRS[rng.choice(CHAINED[rng.choice(list(CHAINED))])] for _ in range(rng.integers(2, 5))]

    def chain(side):
        def computed(x, *rest):
            for pair in pairs:
                x, rest = pair[side](x, *rest[: len(pair) - 3]), rest[len(pair) - 3 :]
            return x

        return computed

    arguments = (X, *(argument for pair in pairs for argument in pair[3:]))
    assert cost(chain(1), arguments) == pytest.approx(cost(chain(0), arguments), rel=0.02)


@pytest.mark.parametrize("name", ["norm", pytest.param("gradient of einsum", marks=pytest.mark.thorough)])
def test_a_search_gains_the_same_on_two_ways_to_write_a_program(name, problem):
    one, other, *arguments = PAIRS[name]
    gains = []
    for function in (one, other):
        loaded = problem(function, arguments)
        runs = (bbo_suite.search("graybox", loaded, budget=200, seed=seed) for seed in range(3))
        found = min(batch.values.min() for run in runs for batch in run)  # a single run may be unlucky
        gains.append(loaded.evaluate(loaded.default_row()[None]).values[0] / found - 1)
    assert gains[0] == pytest.approx(gains[1], abs=0.01)
