"""The U-Net of a diffusion model (Ho et al., Denoising Diffusion Probabilistic Models, 2020), training and sampling.

Residual blocks with group norm take an embedding of the time, and attend over the whole image at one resolution. The
share of the signal in a noised image, the paper's cumulative alpha, is an argument: [steps + 1], from 1 before the
first step. Training has float32 weights, computes in bfloat16 and has no dropout; the optimiser is Adam with a
running average of the weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import lax

from . import Program
from .layers import Tree, abstract, dense, dense_weights, norm_weights, softmax
from .vision import adam, adam_state, biased_conv, conv_weights, half, silu

COLOURS = 3
GROUPS = 32
EPSILON = 1e-6
LONGEST_PERIOD = 10_000
LEARNING_RATE, AVERAGE_DECAY = 2e-4, 0.9999


def _part_weights(inputs: int, outputs: int, time: int, attends: bool) -> Tree:
    """The abstract weights of a residual block, with or without attention after it; `time` is its embedding's size."""
    residual = {
        "first_norm": norm_weights(inputs),
        "first": conv_weights(3, inputs, outputs),
        "time": dense_weights(time, outputs),
        "second_norm": norm_weights(outputs),
        "second": conv_weights(3, outputs, outputs),
    } | ({"shortcut": dense_weights(inputs, outputs)} if inputs != outputs else {})
    attention = {
        "norm": norm_weights(outputs),
        "inputs": dense_weights(outputs, 3 * outputs),
        "output": dense_weights(outputs, outputs),
    }
    return {"residual": residual} | ({"attention": attention} if attends else {})


def _encoder_weights(widths: Sequence[int], blocks: int, time: int, attending: int) -> tuple[list[Tree], list[int]]:
    """The abstract weights of the levels on the way down, and the channels of their skip connections."""
    levels: list[Tree] = []
    channels, skips = widths[0], [widths[0]]
    for number, outputs in enumerate(widths):
        inputs = [channels] + [outputs] * (blocks - 1)
        level: Tree = {"parts": [_part_weights(each, outputs, time, number == attending) for each in inputs]}
        last = number == len(widths) - 1
        levels.append(level if last else level | {"down": conv_weights(3, outputs, outputs)})
        skips += [outputs] * (blocks if last else blocks + 1)
        channels = outputs
    return levels, skips


def _decoder_weights(widths: Sequence[int], skips: list[int], blocks: int, time: int, attending: int) -> list[Tree]:
    """The abstract weights of the levels on the way up."""
    levels: list[Tree] = []
    channels = widths[-1]
    for number, outputs in reversed(list(enumerate(widths))):
        inputs = [each + skips.pop() for each in [channels] + [outputs] * blocks]
        level: Tree = {"parts": [_part_weights(each, outputs, time, number == attending) for each in inputs]}
        levels.append(level | {"up": conv_weights(3, outputs, outputs)} if number else level)
        channels = outputs
    return levels


def _weights(width: int, multiples: Sequence[int], blocks: int, attending: int) -> Tree:
    """The abstract weights of the network in training, whose level number `attending` has attention."""
    widths, time = [width * multiple for multiple in multiples], 4 * width
    encoder, skips = _encoder_weights(widths, blocks, time, attending)
    return {
        "time": [dense_weights(width, time), dense_weights(time, time)],
        "input": conv_weights(3, COLOURS, width),
        "encoder": encoder,
        "middle": [_part_weights(widths[-1], widths[-1], time, attends) for attends in (True, False)],
        "decoder": _decoder_weights(widths, skips, blocks, time, attending),
        "norm": norm_weights(widths[0]),
        "output": conv_weights(3, widths[0], COLOURS),
    }


def _group_norm(x: jax.Array, norm: Tree) -> jax.Array:
    """Group norm in float32 (Wu and He, 2018): [N, H, W, C] -> [N, H, W, C]."""
    full = x.astype(jnp.float32).reshape(*x.shape[:3], GROUPS, -1)
    centred = full - full.mean(axis=(1, 2, 4), keepdims=True)
    variance = jnp.square(centred).mean(axis=(1, 2, 4), keepdims=True)
    normal = (centred * lax.rsqrt(variance + EPSILON)).reshape(x.shape)
    return (normal * norm["scale"] + norm["offset"]).astype(x.dtype)


def _residual(x: jax.Array, block: Tree, time: jax.Array) -> jax.Array:
    """A residual block: [N, H, W, C] and [N, time] -> [N, H, W, O]."""
    y = biased_conv(silu(_group_norm(x, block["first_norm"])), block["first"])
    y = y + dense(time, block["time"])[:, None, None]
    y = biased_conv(silu(_group_norm(y, block["second_norm"])), block["second"])
    return y + (dense(x, block["shortcut"]) if "shortcut" in block else x)


def _attention(x: jax.Array, block: Tree) -> jax.Array:
    """Self-attention over all places by one head, with a softmax in float32: [N, H, W, C] -> [N, H, W, C]."""
    inputs = dense(_group_norm(x, block["norm"]), block["inputs"]).reshape(x.shape[0], -1, 3 * x.shape[-1])
    query, key, value = jnp.split(inputs, 3, axis=-1)
    scores = jnp.einsum("nqc,nkc->nqk", query, key).astype(jnp.float32) * x.shape[-1] ** -0.5
    mixed = jnp.einsum("nqk,nkc->nqc", softmax(scores).astype(x.dtype), value)
    return x + dense(mixed.reshape(x.shape), block["output"])


def _part(x: jax.Array, part: Tree, time: jax.Array) -> jax.Array:
    """A residual block and the attention after it, if any: [N, H, W, C] and [N, time] -> [N, H, W, O]."""
    x = _residual(x, part["residual"], time)
    return _attention(x, part["attention"]) if "attention" in part else x


def _time(weights: list[Tree], times: jax.Array) -> jax.Array:
    """The embedding of step numbers, activated: [N] of int32 -> [N, time] of bfloat16."""
    count = weights[0]["kernel"].shape[0] // 2
    rates = jnp.exp(jnp.arange(count, dtype=jnp.float32) * (-math.log(LONGEST_PERIOD) / (count - 1)))
    phases = times[:, None] * rates
    waves = jnp.concatenate([jnp.sin(phases), jnp.cos(phases)], axis=-1).astype(jnp.bfloat16)
    return silu(dense(silu(dense(waves, weights[0])), weights[1]))


def _doubled(x: jax.Array) -> jax.Array:
    """Every place repeated in a 2x2 square: [N, H, W, C] -> [N, 2 * H, 2 * W, C]."""
    batch, height, width, channels = x.shape
    repeated = jnp.broadcast_to(x[:, :, None, :, None], (batch, height, 2, width, 2, channels))
    return repeated.reshape(batch, 2 * height, 2 * width, channels)


def _encode(x: jax.Array, levels: list[Tree], time: jax.Array) -> list[jax.Array]:
    """The skip connections to the way up; the last one is the output of the way down."""
    skips = [x]
    for level in levels:
        for part in level["parts"]:
            skips.append(_part(skips[-1], part, time))
        if "down" in level:
            skips.append(biased_conv(skips[-1], level["down"], stride=2))
    return skips


def _decode(x: jax.Array, levels: list[Tree], skips: list[jax.Array], time: jax.Array) -> jax.Array:
    """The way up: [N, H, W, C] of the last level and the skip connections -> [N, image, image, width]."""
    for level in levels:
        for part in level["parts"]:
            x = _part(jnp.concatenate([x, skips.pop()], axis=-1), part, time)
        x = biased_conv(_doubled(x), level["up"]) if "up" in level else x
    return x


def _noise(weights: Tree, images: jax.Array, times: jax.Array) -> jax.Array:
    """The noise predicted in images: [N, image, image, 3] and [N] or [1] of int32 -> [N, image, image, 3]."""
    time = _time(weights["time"], times)
    skips = _encode(biased_conv(images.astype(jnp.bfloat16), weights["input"]), weights["encoder"], time)
    x = skips[-1]
    for part in weights["middle"]:
        x = _part(x, part, time)
    x = _decode(x, weights["decoder"], skips, time)
    return biased_conv(silu(_group_norm(x, weights["norm"])), weights["output"]).astype(jnp.float32)


def _loss(weights: Tree, signal: jax.Array, key: jax.Array, images: jax.Array) -> jax.Array:
    """The mean squared error of the predicted noise at random steps: [N, image, image, 3] -> []."""
    time_key, noise_key = jax.random.split(key)
    times = jax.random.randint(time_key, images.shape[:1], 1, signal.size)
    noise = jax.random.normal(noise_key, images.shape)
    share = signal[times][:, None, None, None]
    noised = jnp.sqrt(share) * images + jnp.sqrt(1 - share) * noise
    return jnp.square(_noise(weights, noised, times) - noise).mean()


def train_step(
    weights: Tree, average: Tree, state: Tree, key: jax.Array, signal: jax.Array, images: jax.Array
) -> tuple[Tree, Tree, Tree, jax.Array, jax.Array]:
    """Weights, their average, Adam's state and the random key after one step, and the loss on the batch before it.

    Images are [batch, image, image, 3] between -1 and 1.
    """
    following, key = jax.random.split(key)
    loss, gradients = jax.value_and_grad(_loss)(weights, signal, key, images)
    weights, state = adam(weights, state, gradients, LEARNING_RATE)
    average = jax.tree.map(lambda a, w: AVERAGE_DECAY * a + (1 - AVERAGE_DECAY) * w, average, weights)
    return weights, average, state, following, loss


def denoise(weights: Tree, images: jax.Array, time: jax.Array, key: jax.Array, signal: jax.Array) -> jax.Array:
    """One step of sampling, the paper's algorithm 2: [batch, image, image, 3] after step `time` -> those before it.

    `time` is [] of int32, counted from 1.
    """
    share, cleaner = signal[time], signal[time - 1]
    alpha = share / cleaner
    mean = (images - (1 - alpha) * lax.rsqrt(1 - share) * _noise(weights, images, time[None])) * lax.rsqrt(alpha)
    noise = jax.random.normal(key, images.shape)
    return mean + jnp.where(time > 1, jnp.sqrt(1 - alpha), 0) * noise


def build(
    *,
    batch: int = 128,
    image: int = 32,
    width: int = 128,
    multiples: Sequence[int] = (1, 2, 2, 2),
    blocks: int = 2,
    attention: int = 16,
    steps: int = 1000,
    training: bool = True,
) -> Program:
    """One training step on a batch of images, or one step of sampling, with attention at the resolution `attention`.

    The default sizes are the paper's for CIFAR-10; those for images of 256 have the multiples (1, 1, 2, 2, 4, 4).
    """
    attending = [image >> level for level in range(len(multiples))].index(attention)
    weights = _weights(width, multiples, blocks, attending)
    images = abstract(batch, image, image, COLOURS)
    key, signal = abstract(2, dtype=jnp.uint32), abstract(steps + 1)
    if not training:
        return denoise, (half(weights), images, abstract(dtype=jnp.int32), key, signal)
    return train_step, (weights, weights, adam_state(weights), key, signal, images)
