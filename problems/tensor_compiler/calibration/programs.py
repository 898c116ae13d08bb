"""The programs that the comparison compiles: small ones around one operation, and models at sizes that compile fast."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..models import Program, build_model

Array = jax.Array

_COPIES = 12
_DTYPES = (jnp.float32, jnp.bfloat16)
_UNARY = (jnp.tanh, jnp.exp, jnp.abs, jax.nn.gelu, jax.nn.sigmoid, lax.rsqrt, jnp.negative, jax.nn.relu, jnp.log1p)
_BINARY = (jnp.add, jnp.multiply, jnp.maximum, jnp.subtract, jnp.divide)

_MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "resnet-infer": ("resnet", {"batch": 8, "image": 112, "depths": (1, 1, 1, 1)}),
    "resnet-train": ("resnet", {"batch": 16, "image": 64, "depths": (1, 1, 1, 1), "training": True}),
    "resnet_v2-train": ("resnet_v2", {"batch": 8, "image": 96, "depths": (1, 1, 1, 1)}),
    "resnet_v2-infer": ("resnet_v2", {"batch": 32, "image": 128, "depths": (1, 1, 1, 1), "training": False}),
    "mobilenet-train": ("mobilenet", {"batch": 4, "image": 96, "width": 0.5}),
    "mobilenet-infer": ("mobilenet", {"batch": 8, "image": 128, "training": False}),
    "ssd-infer": ("ssd", {"batch": 2, "image": 300, "classes": 21, "training": False}),
    "unet-train": ("unet", {"batch": 8, "image": 16, "width": 64, "multiples": (1, 2), "blocks": 1, "attention": 8}),
    "unet-infer": ("unet", {"batch": 16, "width": 128, "multiples": (1, 2), "blocks": 1, "training": False}),
    "transformer-train": ("transformer", {"batch": 4, "sequence": 256, "depth": 1}),
    "transformer-narrow-train": ("transformer", {"batch": 8, "sequence": 128, "depth": 1, "width": 256, "heads": 4}),
    "gpt2-train": ("gpt2", {"batch": 2, "sequence": 256, "depth": 1, "vocabulary": 8192}),
    "gpt2-prefill": ("gpt2", {"batch": 1, "sequence": 512, "depth": 2, "vocabulary": 8192, "training": False}),
    "gpt2-decode": (
        "gpt2",
        {"batch": 16, "sequence": 256, "depth": 2, "vocabulary": 8192, "training": False, "decode": True},
    ),
    "bert-train": ("bert", {"batch": 8, "depth": 1, "vocabulary": 8192}),
    "bert-wide-train": ("bert", {"batch": 4, "sequence": 256, "depth": 1, "width": 1024, "heads": 16, "context": 256}),
    "bert-infer": ("bert", {"batch": 16, "depth": 2, "vocabulary": 8192, "training": False}),
    "translate-train": ("translate", {"batch": 16, "depth": 1, "vocabulary": 8192}),
    "translate-decode": (
        "translate",
        {"batch": 32, "depth": 1, "vocabulary": 8192, "training": False, "decode": True},
    ),
    "moe-train": ("moe", {"batch": 4, "sequence": 128, "depth": 2, "experts": 8, "vocabulary": 4096, "hidden": 1024}),
    "moe-infer": (
        "moe",
        {"batch": 4, "sequence": 256, "depth": 2, "experts": 16, "vocabulary": 4096, "training": False},
    ),
    "nmt-train": ("nmt", {"batch": 64, "sequence": 20, "depth": 2, "units": 512, "vocabulary": 8192}),
    "nmt-encode": ("nmt", {"batch": 32, "depth": 2, "training": False}),
    "rnn-train": ("rnn", {"batch": 128, "sequence": 32, "depth": 2}),
    "rnn-infer": ("rnn", {"batch": 20, "sequence": 35, "hidden": 1024, "training": False}),
    "wavernn-infer": ("wavernn", {"batch": 8, "frames": 8}),
    "wavernn-train": ("wavernn", {"batch": 16, "frames": 2, "units": 512, "training": True}),
    "dlrm-train": ("dlrm", {"batch": 1024, "largest": 10_000}),
    "dlrm-infer": ("dlrm", {"batch": 512, "largest": 10_000, "data": "kaggle", "training": False}),
}


def names() -> list[str]:
    """Return the names of all programs."""
    return [*_MODELS, *(f"{family}-{number}" for number in range(_COPIES) for family in FAMILIES)]


def program(name: str) -> Program:
    """Return a program by its name; imports JAX."""
    if name in _MODELS:
        module, sizes = _MODELS[name]
        return build_model(module, **sizes)
    return generated(name)


def generated(name: str) -> Program:
    """Return the generated `family-number`; its shapes are drawn from its name.

    It holds a few unrelated copies of the operation, because compiling a generated costs more than an extra kernel.
    """
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    parts = [FAMILIES[name.rpartition("-")[0]](rng) for _ in range(4)]
    starts = np.cumsum([0, *(len(arguments) for _, arguments in parts)])

    def every(*arguments: Array) -> list[Any]:
        ends = zip(parts, starts, starts[1:], strict=False)
        return [function(*arguments[start:end]) for (function, _), start, end in ends]

    return every, tuple(argument for _, arguments in parts for argument in arguments)


def _size(rng: np.random.Generator, low: float, high: float) -> int:
    """Return a log-uniform size that is a multiple of 128 or of 8, or any number."""
    size = 2 ** rng.uniform(np.log2(low), np.log2(high))
    step = rng.choice([1, 8, 128], p=[0.2, 0.3, 0.5])
    return max(int(low), round(size / step) * step)


def _shape(rng: np.random.Generator, rank: int, most: float = 2**24) -> tuple[int, ...]:
    """Return a shape of at most `most` elements whose last dimensions are the largest."""
    dims = [
        _size(rng, 64, 4096),
        *(_size(rng, 8, 1024) for _ in range(rank > 1)),
        *rng.integers(2, 33, max(0, rank - 2)),
    ]
    while np.prod(dims) > most:
        dims[int(np.argmax(dims))] //= 2
    return tuple(int(d) for d in dims[::-1])


def _array(rng: np.random.Generator, *dims: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(dims, _DTYPES[rng.integers(2)])


def _alike(array: jax.ShapeDtypeStruct, *dims: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(dims, array.dtype)


def _dot(rng: np.random.Generator) -> Program:
    rows, columns, depth = (_size(rng, 8, 4096) for _ in range(3))
    left = _array(rng, rows, depth)
    return lambda x, w: x @ w, (left, _alike(left, depth, columns))


def _dot_fused(rng: np.random.Generator) -> Program:
    _, (left, right) = _dot(rng)
    before, after = (_UNARY[i] for i in rng.integers(len(_UNARY), size=2))
    return lambda x, w, b: after(before(x) @ w + b), (left, right, _alike(left, right.shape[1]))


def _dot_transposed(rng: np.random.Generator) -> Program:
    _, (left, right) = _dot(rng)
    if rng.random() < 0.5:
        return lambda x, w: x.T @ w, (_alike(left, *left.shape[::-1]), right)
    return lambda x, w: x @ w.T, (left, _alike(left, *right.shape[::-1]))


def _dot_batched(rng: np.random.Generator) -> Program:
    batch, rows, columns, depth = int(rng.integers(2, 65)), *(_size(rng, 16, 1024) for _ in range(3))
    left = _array(rng, batch, rows, depth)
    return lambda x, y: jnp.einsum("bmk,bkn->bmn", x, y), (left, _alike(left, batch, depth, columns))


def _conv(rng: np.random.Generator) -> tuple[Callable[..., Array], tuple[Any, ...]]:
    size, batch = int(rng.choice([7, 8, 14, 16, 28, 32, 56, 64, 112])), int(rng.choice([1, 4, 8, 16, 32, 64]))
    taps, stride = int(rng.choice([1, 1, 3, 3, 3, 5, 7])), int(rng.choice([1, 1, 1, 2]))
    features, outputs = (int(rng.choice([3, 16, 32, 64, 96, 128, 192, 256, 512])) for _ in range(2))
    while batch * size * size * max(features, outputs) > 2**24:
        size //= 2
    image = _array(rng, batch, size, size, features)
    names = ("NHWC", "HWIO", "NHWC")
    padding = str(rng.choice(["SAME", "SAME", "VALID"])) if size >= taps else "SAME"
    convolve = partial(
        lax.conv_general_dilated, window_strides=(stride, stride), padding=padding, dimension_numbers=names
    )
    return convolve, (image, _alike(image, taps, taps, features, outputs))


def _conv_fused(rng: np.random.Generator) -> Program:
    convolve, (image, filters) = _conv(rng)
    return lambda x, w, b: jax.nn.relu(convolve(x, w) * b + b), (image, filters, _alike(image, filters.shape[-1]))


def _conv_gradient(rng: np.random.Generator) -> Program:
    convolve, arguments = _conv(rng)
    wanted = int(rng.integers(2))
    return jax.grad(lambda x, w: jnp.sum(jnp.square(convolve(x, w)).astype(jnp.float32)), wanted), arguments


def _conv_depthwise(rng: np.random.Generator) -> Program:
    convolve, (image, filters) = _conv(rng)
    features = image.shape[-1]
    grouped = partial(convolve, feature_group_count=features)
    return grouped, (image, _alike(image, *filters.shape[:2], 1, features))


def _reduce(rng: np.random.Generator) -> Program:
    rank = int(rng.integers(1, 5))
    axes = tuple(int(a) for a in rng.permutation(rank)[: rng.integers(1, rank + 1)])
    reduce = (jnp.sum, jnp.max, jnp.mean)[rng.integers(3)]
    before = _UNARY[rng.integers(len(_UNARY))] if rng.random() < 0.5 else jnp.asarray
    return lambda x: reduce(before(x), axis=axes), (_array(rng, *_shape(rng, rank)),)


def _elementwise(rng: np.random.Generator) -> Program:
    first = _array(rng, *_shape(rng, int(rng.integers(1, 5))))
    others = [_alike(first, *first.shape[int(rng.integers(len(first.shape))) :]) for _ in range(rng.integers(0, 4))]
    unary = [_UNARY[i] for i in rng.integers(len(_UNARY), size=rng.integers(1, 6))]
    binary = [_BINARY[i] for i in rng.integers(len(_BINARY), size=len(others))]

    def chain(x: Array, *rest: Array) -> Array:
        for both, other in zip(binary, rest, strict=True):
            x = both(x, other)
        for alone in unary:
            x = alone(x)
        return x

    return chain, (first, *others)


def _transpose(rng: np.random.Generator) -> Program:
    rank = int(rng.integers(2, 5))
    order = tuple(int(a) for a in rng.permutation(rank))
    return lambda x: jnp.transpose(x, order) + 1, (_array(rng, *_shape(rng, rank)),)


def _move(rng: np.random.Generator) -> Program:
    x = _array(rng, *_shape(rng, int(rng.integers(2, 4)), 2**22))
    axis, half = int(rng.integers(len(x.shape))), x.shape[0] // 2
    moves: tuple[Callable[[Array], Array], ...] = (
        lambda a: jnp.concatenate([a, a * 2], axis),
        lambda a: jnp.pad(a, [(1, 2)] * a.ndim),
        lambda a: lax.slice_in_dim(a, 1, a.shape[axis], axis=axis),
        lambda a: jnp.flip(a, axis),
        lambda a: a.reshape(-1, a.shape[0]),
        lambda a: jnp.take(a, jnp.arange(half) * 2, axis=0),
        lambda a: jnp.repeat(a, 2, axis),
        lambda a: jnp.cumsum(a, axis),
    )
    return moves[rng.integers(len(moves))], (x,)


def _normalise(rng: np.random.Generator) -> Program:
    x = _array(rng, *_shape(rng, int(rng.integers(2, 5))))
    axis = int(rng.integers(len(x.shape)))
    if rng.random() < 0.5:
        return partial(jax.nn.softmax, axis=axis), (x,)
    return partial(jax.nn.standardize, axis=axis), (x,)


def _pool(rng: np.random.Generator) -> Program:
    _, (image, _) = _conv(rng)
    size, stride = int(rng.choice([2, 3])), int(rng.choice([1, 2]))
    window, strides = (1, size, size, 1), (1, stride, stride, 1)
    return lambda x: lax.reduce_window(x, -jnp.inf, lax.max, window, strides, "SAME"), (image,)


FAMILIES: dict[str, Callable[[np.random.Generator], Program]] = {
    "dot": _dot,
    "dot-fused": _dot_fused,
    "dot-transposed": _dot_transposed,
    "dot-batched": _dot_batched,
    "conv": _conv,
    "conv-fused": _conv_fused,
    "conv-gradient": _conv_gradient,
    "conv-depthwise": _conv_depthwise,
    "reduce": _reduce,
    "elementwise": _elementwise,
    "transpose": _transpose,
    "move": _move,
    "normalise": _normalise,
    "pool": _pool,
}
