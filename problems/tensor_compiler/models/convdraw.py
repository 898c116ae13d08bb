"""Convolutional DRAW (Gregor et al., Towards Conceptual Compression, 2016), training and generation.

A variational autoencoder that draws an image in many steps on a canvas, which holds the mean and the logarithm of the
variance of every value. Encoder and decoder are convolutional LSTMs at half the image's resolution. States and canvas
are float32, convolutions bfloat16; the optimiser is Adam. Steps are scanned; a loop's body holds `unroll` of them.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from . import Program
from .layers import Tree, abstract, lstm
from .vision import adam, adam_state, biased_conv, conv_weights, half

COLOURS = 3
SIZE = 5  # of the kernels
LEARNING_RATE = 5e-4


class _Sizes(NamedTuple):
    """The sizes that do not follow from the shapes of the weights."""

    batch: int
    image: int
    steps: int
    unroll: int


def _weights(hidden: int, latent: int) -> Tree:
    """The abstract weights of the network in training."""
    return {
        "encoder_image": conv_weights(SIZE, 2 * COLOURS, 4 * hidden),
        "encoder_state": conv_weights(SIZE, 2 * hidden, 4 * hidden),
        "posterior": conv_weights(SIZE, hidden, 2 * latent),
        "prior": conv_weights(SIZE, hidden, 2 * latent),
        "decoder_image": conv_weights(SIZE, 2 * COLOURS, 4 * hidden),
        "decoder_state": conv_weights(SIZE, latent + hidden, 4 * hidden),
        "canvas": conv_weights(SIZE, hidden, 4 * 2 * COLOURS),
    }


def _conv(x: jax.Array, weights: Tree, stride: int = 1) -> jax.Array:
    """A convolution with a bias, computed in bfloat16: [N, H, W, C] -> [N, H / stride, W / stride, O] of float32."""
    return biased_conv(x.astype(jnp.bfloat16), weights, stride).astype(jnp.float32)


def _concatenated(*parts: jax.Array) -> jax.Array:
    """The channels of all parts: [N, H, W, C] each -> [N, H, W, sum of C]."""
    return jnp.concatenate(parts, axis=-1)


def _cells(gates: jax.Array, memory: jax.Array) -> Tree:
    """The next state of an LSTM: [N, H, W, 4 * hidden] and [N, H, W, hidden] -> hidden and memory cells."""
    hidden, memory = lstm(gates, memory)
    return {"hidden": hidden, "memory": memory}


def _upsampled(x: jax.Array) -> jax.Array:
    """Channels spread over squares of 2x2 places: [N, H, W, 4 * C] -> [N, 2 * H, 2 * W, C]."""
    batch, height, width, channels = x.shape
    squares = x.reshape(batch, height, width, 2, 2, channels // 4).transpose(0, 1, 3, 2, 4, 5)
    return squares.reshape(batch, 2 * height, 2 * width, channels // 4)


def _normal(x: jax.Array, weights: Tree) -> tuple[jax.Array, jax.Array]:
    """The mean and the logarithm of the variance of the latent values: [N, H, W, hidden] -> [N, H, W, latent] each."""
    mean, spread = jnp.split(_conv(x, weights), 2, axis=-1)
    return mean, spread


def _sampled(normal: tuple[jax.Array, jax.Array], noise: jax.Array) -> jax.Array:
    """Latent values of a normal distribution, from standard normal noise: [N, H, W, latent]."""
    mean, spread = normal
    return mean + jnp.exp(0.5 * spread) * noise


def _divergence(posterior: tuple[jax.Array, jax.Array], prior: tuple[jax.Array, jax.Array]) -> jax.Array:
    """The Kullback-Leibler divergence of two normal distributions, of each image: [N, H, W, latent] -> [N]."""
    (mean, spread), (prior_mean, prior_spread) = posterior, prior
    ratio = jnp.exp(spread - prior_spread) + jnp.square(mean - prior_mean) * jnp.exp(-prior_spread)
    return 0.5 * (prior_spread - spread + ratio - 1).sum(axis=(1, 2, 3))


def _encoded(weights: Tree, state: Tree, images: jax.Array) -> Tree:
    """The encoder's next state, from the images, their difference from the canvas, and the decoder's state."""
    error = images - state["canvas"][..., :COLOURS]
    gates = _conv(_concatenated(images, error), weights["encoder_image"], stride=2)
    gates = gates + _conv(
        _concatenated(state["encoder"]["hidden"], state["decoder"]["hidden"]), weights["encoder_state"]
    )
    return _cells(gates, state["encoder"]["memory"])


def _draw(weights: Tree, state: Tree, latent: jax.Array) -> tuple[Tree, jax.Array]:
    """The decoder's next state and the next canvas, from latent values: [N, image / 2, image / 2, latent]."""
    gates = _conv(state["canvas"], weights["decoder_image"], stride=2)
    gates = gates + _conv(_concatenated(latent, state["decoder"]["hidden"]), weights["decoder_state"])
    decoder = _cells(gates, state["decoder"]["memory"])
    return decoder, state["canvas"] + _upsampled(_conv(decoder["hidden"], weights["canvas"]))


def _step(weights: Tree, images: jax.Array, state: Tree, key: jax.Array) -> tuple[Tree, jax.Array]:
    """One step of training: the next state, and the divergence of posterior and prior, [N]."""
    encoder = _encoded(weights, state, images)
    prior = _normal(state["decoder"]["hidden"], weights["prior"])
    posterior = _normal(encoder["hidden"], weights["posterior"])
    latent = _sampled(posterior, jax.random.normal(key, posterior[0].shape))
    decoder, canvas = _draw(weights, state, latent)
    return {"encoder": encoder, "decoder": decoder, "canvas": canvas}, _divergence(posterior, prior)


def _dream(weights: Tree, state: Tree, key: jax.Array) -> tuple[Tree, None]:
    """One step of generation, whose latent values come from the prior: the next state."""
    prior = _normal(state["decoder"]["hidden"], weights["prior"])
    latent = _sampled(prior, jax.random.normal(key, prior[0].shape))
    decoder, canvas = _draw(weights, state, latent)
    return {"decoder": decoder, "canvas": canvas}, None


def _start(weights: Tree, sizes: _Sizes) -> Tree:
    """The state before the first step: all zero."""
    cells = jnp.zeros((sizes.batch, sizes.image // 2, sizes.image // 2, weights["prior"]["kernel"].shape[2]))
    canvas = jnp.zeros((sizes.batch, sizes.image, sizes.image, 2 * COLOURS))
    return {"decoder": {"hidden": cells, "memory": cells}, "canvas": canvas}


def _loss(weights: Tree, key: jax.Array, images: jax.Array, sizes: _Sizes) -> jax.Array:
    """The negative evidence lower bound in nats per value, of images: [batch, image, image, 3] -> []."""
    start = _start(weights, sizes)
    keys = jax.random.split(key, sizes.steps)
    step = partial(_step, weights, images)
    last, divergences = lax.scan(step, start | {"encoder": start["decoder"]}, keys, unroll=sizes.unroll)
    mean, spread = jnp.split(last["canvas"], 2, axis=-1)
    surprise = 0.5 * (jnp.square(images - mean) * jnp.exp(-spread) + spread + math.log(2 * math.pi))
    return (surprise.sum() + divergences.sum()) / images.size


def train_step(
    weights: Tree, state: Tree, key: jax.Array, images: jax.Array, *, sizes: _Sizes
) -> tuple[Tree, Tree, jax.Array, jax.Array]:
    """Weights, Adam's state and the random key after one step, and the loss on the batch before it.

    Images are [batch, image, image, 3], with uniform noise added to their discrete values.
    """
    following, key = jax.random.split(key)
    loss, gradients = jax.value_and_grad(_loss)(weights, key, images, sizes)
    weights, state = adam(weights, state, gradients, LEARNING_RATE)
    return weights, state, following, loss


def generate(weights: Tree, key: jax.Array, *, sizes: _Sizes) -> jax.Array:
    """The means of images drawn from the prior: [batch, image, image, 3]."""
    keys = jax.random.split(key, sizes.steps)
    last, _ = lax.scan(partial(_dream, weights), _start(weights, sizes), keys, unroll=sizes.unroll)
    return last["canvas"][..., :COLOURS]


def build(
    *,
    batch: int = 64,
    image: int = 32,
    steps: int = 32,
    hidden: int = 160,
    latent: int = 12,
    unroll: int = 1,
    training: bool = True,
) -> Program:
    """One training step on a batch of images, or the generation of images."""
    weights, key = _weights(hidden, latent), abstract(2, dtype=jnp.uint32)
    sizes = _Sizes(batch, image, steps, unroll)
    if not training:
        return partial(generate, sizes=sizes), (half(weights), key)
    return partial(train_step, sizes=sizes), (weights, adam_state(weights), key, abstract(batch, image, image, COLOURS))
