"""Layers and losses that several models share."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import DTypeLike

Tree = dict[str, Any]  # weights by name: arrays, or nested dicts and lists of them


def abstract(*shape: int, dtype: DTypeLike = jnp.float32) -> jax.ShapeDtypeStruct:
    """An array that has a shape and a type but no values."""
    return jax.ShapeDtypeStruct(shape, dtype)


def dense_weights(inputs: int, outputs: int, dtype: DTypeLike = jnp.float32) -> Tree:
    """The abstract weights of `dense`."""
    return {"kernel": abstract(inputs, outputs, dtype=dtype), "bias": abstract(outputs, dtype=dtype)}


def dense(x: jax.Array, weights: Tree) -> jax.Array:
    """A fully connected layer in the type of `x`: [..., inputs] -> [..., outputs]."""
    return x @ weights["kernel"].astype(x.dtype) + weights["bias"].astype(x.dtype)


def norm_weights(channels: int) -> Tree:
    """The abstract weights of a layer norm, batch norm or group norm."""
    return {"scale": abstract(channels), "offset": abstract(channels)}


def conv(x: jax.Array, kernel: jax.Array, stride: int = 1) -> jax.Array:
    """A convolution in the type of `x`, padded equally on both sides: [N, H, W, C] -> [N, H / stride, W / stride, O].

    The kernel is [size, size, C / groups, O]; one of [size, size, 1, C] is a depthwise convolution.
    """
    padding = kernel.shape[0] // 2
    return lax.conv_general_dilated(
        x,
        kernel.astype(x.dtype),
        window_strides=(stride, stride),
        padding=[(padding, padding)] * 2,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=x.shape[-1] // kernel.shape[2],
    )


def lstm(gates: jax.Array, memory: jax.Array) -> tuple[jax.Array, jax.Array]:
    """One time step of an LSTM: [..., 4 * hidden], [..., hidden] -> hidden and memory, [..., hidden].

    Hochreiter and Schmidhuber, Long Short-Term Memory, 1997, with forget gates (Gers et al., 2000).
    """
    admit, keep, candidate, emit = jnp.split(gates, 4, axis=-1)
    memory = lax.logistic(keep) * memory + lax.logistic(admit) * jnp.tanh(candidate)
    return lax.logistic(emit) * jnp.tanh(memory), memory


def softmax(logits: jax.Array) -> jax.Array:
    """Probabilities over the last axis, in float32: [..., classes] -> [..., classes]."""
    logits = logits.astype(jnp.float32)
    exponentials = jnp.exp(logits - lax.stop_gradient(logits.max(axis=-1, keepdims=True)))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def log_softmax(logits: jax.Array) -> jax.Array:
    """Logarithms of the probabilities over the last axis, in float32: [..., classes] -> [..., classes]."""
    logits = logits.astype(jnp.float32)
    shifted = logits - lax.stop_gradient(logits.max(axis=-1, keepdims=True))
    return shifted - jnp.log(jnp.exp(shifted).sum(axis=-1, keepdims=True))


def cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    """The mean negative log-likelihood of the labels: [..., classes] and [...] of int32 -> []."""
    picked = jnp.take_along_axis(log_softmax(logits), labels[..., None], axis=-1, mode="clip")
    return -picked.mean()
