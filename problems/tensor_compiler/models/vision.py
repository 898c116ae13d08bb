"""Parts that several vision models share: convolutions, norms, pooling, optimisers and the training of a classifier.

Weights are those of training, in float32; `half` and `with_statistics` turn them into those of inference.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike

from . import Program
from .layers import Tree, abstract, conv, cross_entropy, norm_weights

Network = Callable[[Tree, jax.Array, list[Tree]], jax.Array]
"""Weights and images to logits; the statistics of the batch norms are appended to the list."""

EPSILON = 1e-5
STATISTICS_DECAY = 0.9
MOMENTUM = 0.9
DECAY_FIRST, DECAY_SECOND, ADAM_EPSILON = 0.9, 0.999, 1e-8
LEARNING_RATE, WEIGHT_DECAY = 0.1, 1e-4  # of a classifier: section 3.4 of He et al., 2016


@jax.custom_jvp
def relu(x: jax.Array) -> jax.Array:
    """The positive part, elementwise; its derivative at 0 is 0."""
    return jnp.maximum(x, 0)


@relu.defjvp
def _relu_jvp(primals: tuple[jax.Array], tangents: tuple[jax.Array]) -> tuple[jax.Array, jax.Array]:
    """The value and the directional derivative of `relu`."""
    positive = primals[0] > 0
    return relu(*primals), lax.select(positive, tangents[0], jnp.zeros_like(tangents[0]))


def silu(x: jax.Array) -> jax.Array:
    """The sigmoid linear unit, elementwise."""
    return x * lax.logistic(x)


def max_pool(x: jax.Array, size: int = 3, stride: int = 2, lowest: ArrayLike = -jnp.inf) -> jax.Array:
    """The maximum over windows, which may overlap the border: [N, H, W, C] -> [N, H / stride, W / stride, C].

    It has a derivative if `lowest`, the smallest value of the type, is not a tracer.
    """
    around = ((size - 1) // 2, size // 2)
    padding = ((0, 0), around, around, (0, 0))
    return lax.reduce_window(x, lowest, lax.max, (1, size, size, 1), (1, stride, stride, 1), padding)


def unit_weights(size: int, inputs: int, outputs: int) -> Tree:
    """The abstract weights of `unit` in training."""
    return {"kernel": abstract(size, size, inputs, outputs), "norm": norm_weights(outputs)}


def conv_weights(size: int, inputs: int, outputs: int) -> Tree:
    """The abstract weights of `biased_conv` in training."""
    return {"kernel": abstract(size, size, inputs, outputs), "bias": abstract(outputs)}


def half(weights: Tree) -> Tree:
    """The abstract weights with kernels and biases in bfloat16; norms stay in float32."""

    def halved(path: tuple[Any, ...], leaf: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
        return abstract(*leaf.shape, dtype=jnp.bfloat16) if path[-1].key in ("kernel", "bias") else leaf

    return jax.tree_util.tree_map_with_path(halved, weights)


def with_statistics(weights: Any) -> Any:  # noqa: ANN401
    """The abstract weights of inference: those of training, and the statistics of each batch norm."""
    if isinstance(weights, list):
        return [with_statistics(part) for part in weights]
    if not isinstance(weights, dict):
        return weights
    statistics = {"mean": weights["scale"], "variance": weights["scale"]} if "offset" in weights else {}
    return {name: with_statistics(part) for name, part in weights.items()} | statistics


def biased_conv(x: jax.Array, weights: Tree, stride: int = 1) -> jax.Array:
    """A convolution with a bias, in the type of `x`: [N, H, W, C] -> [N, H / stride, W / stride, O]."""
    return conv(x, weights["kernel"], stride) + weights["bias"].astype(x.dtype)


def batch_norm(x: jax.Array, norm: Tree, seen: list[Tree]) -> jax.Array:
    """Batch norm in float32 (Ioffe and Szegedy, 2015): [N, H, W, C] -> [N, H, W, C].

    It uses the statistics among its weights, as in inference. Without them it uses those of the batch and appends them
    to `seen`.
    """
    full = x.astype(jnp.float32)
    mean = norm["mean"] if "mean" in norm else full.mean(axis=(0, 1, 2))
    centred = full - mean
    variance = norm["variance"] if "variance" in norm else jnp.square(centred).mean(axis=(0, 1, 2))
    if "mean" not in norm:
        seen.append({"mean": mean, "variance": variance})
    normal = centred * lax.rsqrt(variance + EPSILON)
    return (normal * norm["scale"] + norm["offset"]).astype(x.dtype)


def unit(x: jax.Array, weights: Tree, seen: list[Tree], stride: int = 1) -> jax.Array:
    """A convolution and its batch norm: [N, H, W, C] -> [N, H / stride, W / stride, O]."""
    return batch_norm(conv(x, weights["kernel"], stride), weights["norm"], seen)


def moving_average(running: list[Tree], seen: list[Tree]) -> list[Tree]:
    """Running statistics moving_average towards those of the batch."""
    return jax.tree.map(lambda r, s: STATISTICS_DECAY * r + (1 - STATISTICS_DECAY) * s, running, seen)


def sgd(weights: Tree, velocity: Tree, gradients: Tree, rate: float, decay: float) -> tuple[Tree, Tree]:
    """Weights and velocity after a step of gradient descent with momentum and weight decay."""
    velocity = jax.tree.map(lambda v, g, w: MOMENTUM * v + g + decay * w, velocity, gradients, weights)
    return jax.tree.map(lambda w, v: w - rate * v, weights, velocity), velocity


def adam_state(weights: Tree) -> Tree:
    """The abstract state of `adam`: the moments of the gradients and the number of steps done."""
    return {"first": weights, "second": weights, "time": abstract()}


def adam(weights: Tree, state: Tree, gradients: Tree, rate: float) -> tuple[Tree, Tree]:
    """Weights and state after a step of Adam (Kingma and Ba, 2015)."""
    time = state["time"] + 1
    first = jax.tree.map(lambda m, g: DECAY_FIRST * m + (1 - DECAY_FIRST) * g, state["first"], gradients)
    second = jax.tree.map(lambda v, g: DECAY_SECOND * v + (1 - DECAY_SECOND) * g * g, state["second"], gradients)
    rate = rate * jnp.sqrt(1 - DECAY_SECOND**time) / (1 - DECAY_FIRST**time)
    weights = jax.tree.map(lambda w, m, v: w - rate * m / (jnp.sqrt(v) + ADAM_EPSILON), weights, first, second)
    return weights, {"first": first, "second": second, "time": time}


def _classifier_loss(
    weights: Tree, images: jax.Array, labels: jax.Array, network: Network
) -> tuple[jax.Array, list[Tree]]:
    """The cross-entropy and the statistics of the batch norms: [batch, image, image, 3], [batch] -> []."""
    seen: list[Tree] = []
    return cross_entropy(network(weights, images, seen), labels), seen


def train_step(
    weights: Tree, velocity: Tree, statistics: list[Tree], images: jax.Array, labels: jax.Array, *, network: Network
) -> tuple[Tree, Tree, list[Tree], jax.Array]:
    """A classifier's weights, velocity and running statistics after one step, and the loss on the batch before it.

    Images are [batch, image, image, 3] of bfloat16, labels [batch] of int32.
    """
    gradient = jax.value_and_grad(_classifier_loss, has_aux=True)
    (loss, seen), gradients = gradient(weights, images, labels, network)
    weights, velocity = sgd(weights, velocity, gradients, LEARNING_RATE, WEIGHT_DECAY)
    return weights, velocity, moving_average(statistics, seen), loss


def classifier_training(network: Network, weights: Tree, batch: int, image: int) -> Program:
    """One training step of a classifier by gradient descent with momentum."""
    images, labels = abstract(batch, image, image, 3, dtype=jnp.bfloat16), abstract(batch, dtype=jnp.int32)
    _, statistics = jax.eval_shape(partial(_classifier_loss, network=network), weights, images, labels)
    return partial(train_step, network=network), (weights, weights, statistics, images, labels)
