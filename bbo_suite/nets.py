"""Networks: layers, padding, compilation for one thread, and parameters as arrays of a file.

Importing this loads JAX and configures it, see `_configure`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.compilation_cache import compilation_cache
from jaxtyping import Array
from llvmlite import binding
from numpy.typing import NDArray

from .files.cache import cache_folder

ONE_THREAD = {"xla_cpu_multi_thread_eigen": False}
"""With several threads sums are split differently on other machines, and a run would not repeat exactly."""
Result = TypeVar("Result")
Weights = list[tuple[jax.Array, jax.Array]]
"""The matrix and the constants of each layer of a perceptron."""
Model = TypeVar("Model")
SEGMENT = 128
"""The number of places of a segment of `SegmentedAttention`."""
_HEADS = 4
_HIDDEN = 2  # width of a feed-forward layer, in widths of the embedding


def _configure() -> None:
    """Keep JAX on the CPU and its compiled code in the user's cache folder; the user's own settings take precedence.

    JAX would reserve an accelerator, on which runs do not repeat exactly. Compiling the network takes up to a minute,
    loading it a second.
    """
    if not jax.config.jax_platforms:  # type: ignore[attr-defined]
        jax.config.update("jax_platforms", "cpu")
    if not jax.config.jax_compilation_cache_dir and (folder := _writable_cache()):  # type: ignore[attr-defined]
        jax.config.update("jax_compilation_cache_dir", str(folder))
        compilation_cache.reset_cache()  # otherwise JAX uses no cache if it has compiled anything before


def _writable_cache() -> Path | None:
    """Return a folder for code compiled for this processor, or None if it cannot be made.

    Code that was compiled for other instruction sets may crash, and its results differ in the last digits.
    """
    processor = f"{binding.get_host_cpu_name()} {binding.get_host_cpu_features().flatten()}"
    folder = cache_folder(f"jax-{hashlib.sha256(processor.encode()).hexdigest()[:12]}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder


_configure()


def jit(function: Callable[..., Result], **options: Any) -> Callable[..., Result]:  # noqa: ANN401 - those of `jax.jit`
    """Compile a function for one thread, with further options of `jax.jit`."""
    return jax.jit(function, compiler_options=ONE_THREAD, **options)


def filter_jit(function: Callable[..., Result]) -> Callable[..., Result]:
    """Compile a function for one thread; arguments that are no arrays are constants, as with `equinox.filter_jit`."""
    compiled: Any = eqx.filter_jit  # its types know no options of `jax.jit`
    return compiled(function, compiler_options=ONE_THREAD)


def new_weights(sizes: tuple[int, ...], seed: int) -> Weights:
    """Return random weights of layers from `sizes[i]` to `sizes[i + 1]` numbers (He et al. 2015).

    These are arrays, for small networks that are called often: a call of a compiled function on them takes a tenth of a
    millisecond, on Equinox's modules three, most of it in Python.
    """
    keys = jax.random.split(jax.random.key(seed), len(sizes) - 1)
    draw = jax.nn.initializers.he_uniform()
    return [(draw(k, (a, b)), jnp.zeros(b)) for k, a, b in zip(keys, sizes[:-1], sizes[1:], strict=True)]


def perceptron(weights: Weights, inputs: jax.Array) -> jax.Array:
    """Return the `(n, outputs)` of `(n, inputs)`, with ReLU between the layers."""
    for matrix, constants in weights[:-1]:
        inputs = jax.nn.relu(inputs @ matrix + constants)
    return inputs @ weights[-1][0] + weights[-1][1]


def linear_layers(sizes: tuple[int, ...], key: Array) -> tuple[eqx.nn.Linear, ...]:
    """Return layers from `sizes[i]` to `sizes[i + 1]` numbers, as modules."""
    keys = jax.random.split(key, len(sizes) - 1)
    return tuple(eqx.nn.Linear(a, b, key=k) for a, b, k in zip(sizes, sizes[1:], keys, strict=False))


def dense(layer: eqx.nn.Linear, h: Array) -> Array:
    """Apply a layer to the last axis."""
    product = h @ layer.weight.T
    return product if layer.bias is None else product + layer.bias


class MaxSage(eqx.Module):
    """A layer of GraphSAGE (Hamilton et al. 2017), with the max-pooling aggregator of its section 3.3.

    `h' = norm(h + relu(W [h; max over producers; max over consumers]))`, where neighbours send `relu(W_p h)`. Each
    direction of the edges has a `W_p` of its own. The sum with `h` and the normalisation are ours.
    """

    pool: eqx.nn.Linear
    update: eqx.nn.Linear
    norm: eqx.nn.LayerNorm

    def __init__(self, width: int, key: Array) -> None:
        first, second = jax.random.split(key)
        self.pool = eqx.nn.Linear(width, 2 * width, key=first)
        self.update = eqx.nn.Linear(3 * width, width, key=second)
        self.norm = eqx.nn.LayerNorm(width)

    def __call__(self, h: Array, edges: Array) -> Array:
        """Return `(n, width)` embeddings from those of the layer before and `(m, 2)` producers and consumers."""
        down, up = jnp.split(jax.nn.relu(jax.vmap(self.pool)(h)), 2, axis=1)
        n = len(h)
        # messages are never negative, so a node without neighbours receives 0
        below = jnp.maximum(jax.ops.segment_max(down[edges[:, 0]], edges[:, 1], n), 0)
        above = jnp.maximum(jax.ops.segment_max(up[edges[:, 1]], edges[:, 0], n), 0)
        joined = jnp.concatenate([h, below, above], axis=1)
        return jax.vmap(self.norm)(h + jax.nn.relu(jax.vmap(self.update)(joined)))


class MeanSage(eqx.Module):
    """A layer of GraphSAGE for batches of small graphs, with the mean aggregator; else as `MaxSage`.

    `h' = norm(h + relu(W [h; mean over producers; mean over consumers]))`.
    """

    update: eqx.nn.Linear
    norm: eqx.nn.LayerNorm

    def __init__(self, width: int, key: Array) -> None:
        self.update, self.norm = eqx.nn.Linear(3 * width, width, key=key), eqx.nn.LayerNorm(width)

    def __call__(self, h: Array, below: Array, above: Array) -> Array:
        """Return `(b, n, width)` embeddings; the `(b, n, n)` matrices are those of `averages`."""
        joined = jnp.concatenate([h, below @ h, above @ h], axis=2)
        return jax.vmap(jax.vmap(self.norm))(h + jax.nn.relu(dense(self.update, joined)))


def averages(edges: Array, n: int) -> tuple[Array, Array]:
    """Return the `(b, n, n)` matrices that average over producers, and over consumers, of `(b, m, 2)` edges."""
    graphs = jnp.arange(len(edges))[:, None]
    adjacent = jnp.zeros((len(edges), n, n)).at[graphs, edges[:, :, 1], edges[:, :, 0]].set(1.0, mode="drop")
    return _rows_averaged(adjacent), _rows_averaged(adjacent.swapaxes(1, 2))


def _rows_averaged(matrix: Array) -> Array:
    return matrix / jnp.maximum(matrix.sum(axis=2, keepdims=True), 1.0)


def attention(queries: Array, keys: Array, values: Array, mask: Array | None = None) -> Array:
    """Return the `(q, heads, c)` means of `(k, heads, c)` values, weighted by how well `(k, heads, c)` keys match.

    Args:
      mask: `(k,)` false for what is not attended to.
    """
    scores = jnp.einsum("qhc,khc->hqk", queries, keys) / jnp.sqrt(queries.shape[2])
    if mask is not None:
        scores = jnp.where(mask, scores, -1e9)
    return jnp.einsum("hqk,khc->qhc", jax.nn.softmax(scores, axis=2), values)


def heads(h: Array) -> Array:
    """Return `(n, width)` numbers as `(n, heads, c)`."""
    return h.reshape(len(h), _HEADS, -1)


class EncoderLayer(eqx.Module):
    """A layer of a Transformer encoder, normalised before each part."""

    mixed: eqx.nn.Linear
    merge: eqx.nn.Linear
    inner: eqx.nn.Linear
    outer: eqx.nn.Linear
    norms: tuple[eqx.nn.LayerNorm, eqx.nn.LayerNorm]

    def __init__(self, width: int, key: Array) -> None:
        k = jax.random.split(key, 4)
        self.mixed, self.merge = eqx.nn.Linear(width, 3 * width, key=k[0]), eqx.nn.Linear(width, width, key=k[1])
        self.inner = eqx.nn.Linear(width, _HIDDEN * width, key=k[2])
        self.outer = eqx.nn.Linear(_HIDDEN * width, width, key=k[3])
        self.norms = (eqx.nn.LayerNorm(width), eqx.nn.LayerNorm(width))

    def __call__(self, h: Array) -> Array:
        """Return `(tokens, width)` embeddings."""
        h = h + self._attend(jax.vmap(self.norms[0])(h))
        return h + jax.vmap(lambda row: self.outer(jax.nn.gelu(self.inner(self.norms[1](row)))))(h)

    def _attend(self, h: Array) -> Array:
        queries, keys, values = jnp.split(heads(jax.vmap(self.mixed)(h)), 3, axis=2)
        return jax.vmap(self.merge)(attention(queries, keys, values).reshape(len(h), -1))


class SegmentedAttention(eqx.Module):
    """A layer of Transformer-XL (Dai et al. 2019) without positions, modulated by the whole graph.

    Each segment attends to itself and to the segment before it, through which no gradient flows (section 3.2). So
    memory grows linearly with the length. GO (Zhou et al. 2020) uses such layers and multiplies their output by a gate
    that is computed from the mean embedding of the graph ("superposition").
    """

    queries: eqx.nn.Linear
    keys: eqx.nn.Linear
    merge: eqx.nn.Linear
    inner: eqx.nn.Linear
    outer: eqx.nn.Linear
    gate: eqx.nn.Linear
    norms: tuple[eqx.nn.LayerNorm, eqx.nn.LayerNorm]

    def __init__(self, width: int, key: Array) -> None:
        k = jax.random.split(key, 6)
        self.queries = eqx.nn.Linear(width, width, use_bias=False, key=k[0])
        self.keys = eqx.nn.Linear(width, 2 * width, use_bias=False, key=k[1])
        self.merge = eqx.nn.Linear(width, width, key=k[2])
        self.inner = eqx.nn.Linear(width, _HIDDEN * width, key=k[3])
        self.outer = eqx.nn.Linear(_HIDDEN * width, width, key=k[4])
        self.gate = eqx.nn.Linear(width, width, key=k[5])
        self.norms = (eqx.nn.LayerNorm(width), eqx.nn.LayerNorm(width))

    def __call__(self, h: Array, real: Array) -> Array:
        """Return `(d, width)` embeddings; `d` is a multiple of `SEGMENT`, `real` `(d,)` is false for padding."""
        h = jax.vmap(self.norms[0])(h + self._attend(h, real))
        h = h + jax.vmap(lambda row: self.outer(jax.nn.relu(self.inner(row))))(h)
        mean = (h * real[:, None]).sum(axis=0) / jnp.maximum(real.sum(), 1)
        return jax.vmap(self.norms[1])(2 * h * jax.nn.sigmoid(self.gate(mean)))

    def _attend(self, h: Array, real: Array) -> Array:
        width = h.shape[1]
        segments, mask = h.reshape(-1, SEGMENT, width), real.reshape(-1, SEGMENT)
        before = jax.lax.stop_gradient(jnp.concatenate([jnp.zeros_like(segments[:1]), segments[:-1]]))
        previous_mask = jnp.concatenate([jnp.zeros_like(mask[:1]), mask[:-1]])
        mixed = jax.vmap(self._segment)(segments, jnp.hstack([before, segments]), jnp.hstack([previous_mask, mask]))
        return jax.vmap(self.merge)(mixed.reshape(-1, width))

    def _segment(self, segment: Array, context: Array, mask: Array) -> Array:
        """Return `(segment, width)`: for each element the weighted mean of what it attends to in `(k, width)`."""
        keys, values = jnp.split(heads(jax.vmap(self.keys)(context)), 2, axis=2)
        return attention(heads(jax.vmap(self.queries)(segment)), keys, values, mask).reshape(segment.shape)


def clipped_objective(logs: Array, old: Array | NDArray, advantages: Array | NDArray, clip: float) -> Array:
    """Return the `(n,)` clipped objective of PPO (Schulman et al. 2017, equation 7), to be maximised.

    Args:
      logs, old: the log-probability of each choice now, and when it was made.
      advantages: of the choices.
      clip: the range of the ratio of probabilities.
    """
    ratio = jnp.exp(jnp.clip(logs - old, -20.0, 20.0))
    return jnp.minimum(ratio * advantages, jnp.clip(ratio, 1 - clip, 1 + clip) * advantages)


def padded(rows: NDArray, n: int, value: float = 0) -> NDArray:
    """Return rows with copies of a value behind them, `n` in all: compiled code should see few shapes."""
    rest = np.full((n - len(rows), *rows.shape[1:]), value, rows.dtype)
    return np.concatenate([rows, rest])


def parameters(model: Any, stored: Callable[[Any], type] = lambda _: np.float32) -> dict[str, NDArray]:  # noqa: ANN401
    """Return the arrays of a model by their numbers, as a file holds them.

    Args:
      stored: returns the type of an array in the file.
    """
    leaves = jax.tree.leaves(eqx.filter(model, eqx.is_array))
    return {str(i): np.asarray(leaf, stored(leaf)) for i, leaf in enumerate(leaves)}


def with_parameters(
    shape: Model, arrays: Mapping[str, NDArray], stored: Callable[[Any], type] = lambda _: np.float32
) -> Model:
    """Return a model with the arrays of a file.

    Args:
      shape: the model, with shapes in place of arrays (see `equinox.filter_eval_shape`).
      stored: as in `parameters`.

    Raises:
      ValueError: the number of the arrays, or the shape, type or content of one, is not that of such a model.
    """
    wanted, structure = jax.tree.flatten(shape)
    if len(arrays) != len(wanted):
        raise ValueError(f"it has {len(arrays)} arrays instead of {len(wanted)}")
    return jax.tree.unflatten(structure, [_checked(arrays, str(i), leaf, stored) for i, leaf in enumerate(wanted)])


def _checked(arrays: Mapping[str, NDArray], name: str, wanted: Any, stored: Callable[[Any], type]) -> Array:  # noqa: ANN401
    array = arrays.get(name)
    if array is None or array.shape != wanted.shape or array.dtype != stored(wanted):
        raise ValueError(f"array {name} has another shape or type")
    if not np.isfinite(array).all():
        raise ValueError(f"array {name} has numbers that are not finite")
    return jnp.asarray(array, jnp.float32)
