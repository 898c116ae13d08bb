"""MobileNet v2 (Sandler et al., MobileNetV2: Inverted Residuals and Linear Bottlenecks, 2018), training and inference.

Compute is bfloat16; training has its weights in float32; the optimiser is SGD with momentum on a label-smoothed
cross-entropy.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from . import Program
from .layers import Tree, abstract, conv, dense, dense_weights, log_softmax, softmax
from .vision import half

STAGES = (  # expansion, channels, blocks, stride of the first block: table 2 of the paper
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
STEM, HEAD = 32, 1280
EPSILON = 1e-3
STATISTICS_DECAY = 0.99
SMOOTHING = 0.1
LEARNING_RATE, MOMENTUM = 0.05, 0.9


class _Block(NamedTuple):
    """The sizes of one inverted residual block."""

    inputs: int
    expansion: int
    outputs: int
    stride: int


def _scaled(channels: int, width: float) -> int:
    """A channel count times the width multiplier: a multiple of 8 at most a tenth below the product."""
    nearest = max(8, int(channels * width + 4) // 8 * 8)
    return nearest + 8 if nearest < 0.9 * channels * width else nearest


def _plan(width: float) -> list[_Block]:
    """The blocks of the network at a width multiplier."""
    blocks: list[_Block] = []
    inputs = _scaled(STEM, width)
    for expansion, channels, count, stride in STAGES:
        for position in range(count):
            outputs = _scaled(channels, width)
            blocks.append(_Block(inputs, expansion, outputs, stride if position == 0 else 1))
            inputs = outputs
    return blocks


def _unit_weights(size: int, inputs: int, outputs: int) -> Tree:
    """The abstract weights of a convolution and its batch norm."""
    return {"kernel": abstract(size, size, inputs, outputs), "scale": abstract(outputs), "offset": abstract(outputs)}


def _block_weights(block: _Block) -> Tree:
    """The abstract weights of an inverted residual block."""
    hidden = block.inputs * block.expansion
    expand = {"expand": _unit_weights(1, block.inputs, hidden)} if block.expansion > 1 else {}
    return expand | {"depthwise": _unit_weights(3, 1, hidden), "project": _unit_weights(1, hidden, block.outputs)}


def _weights(width: float, classes: int) -> Tree:
    """The abstract weights of the network."""
    plan = _plan(width)
    head = _scaled(HEAD, max(1.0, width))
    return {
        "stem": _unit_weights(3, 3, plan[0].inputs),
        "blocks": [_block_weights(block) for block in plan],
        "head": _unit_weights(1, plan[-1].outputs, head),
        "output": dense_weights(head, classes),
    }


def _unit_statistics(unit: Tree) -> Tree:
    """The abstract running statistics that belong to the weights of a convolution and its batch norm."""
    return {"mean": unit["scale"], "variance": unit["scale"]}


def _statistics(weights: Tree) -> Tree:
    """The abstract running statistics that belong to the weights of the network."""
    blocks = [{name: _unit_statistics(unit) for name, unit in block.items()} for block in weights["blocks"]]
    return {"stem": _unit_statistics(weights["stem"]), "blocks": blocks, "head": _unit_statistics(weights["head"])}


def _averaged(running: jax.Array, current: jax.Array) -> jax.Array:
    """A running statistic, moved towards the statistic of the batch: [C] and [C] -> [C]."""
    return STATISTICS_DECAY * running + (1 - STATISTICS_DECAY) * current


def _unit(x: jax.Array, unit: Tree, statistics: Tree, training: bool, stride: int = 1) -> tuple[jax.Array, Tree]:
    """A convolution and its batch norm in float32, and the running statistics, which training updates.

    Training normalises by the statistics of the batch, inference by the running ones.
    [N, H, W, C] -> [N, H / stride, W / stride, O].
    """
    y = conv(x, unit["kernel"], stride).astype(jnp.float32)
    mean = y.mean(axis=(0, 1, 2)) if training else statistics["mean"]
    centred = y - mean
    variance = jnp.square(centred).mean(axis=(0, 1, 2)) if training else statistics["variance"]
    normal = centred * lax.rsqrt(variance + EPSILON)
    updated = jax.tree.map(_averaged, statistics, {"mean": mean, "variance": variance}) if training else statistics
    return (normal * unit["scale"] + unit["offset"]).astype(x.dtype), updated


def _relu6(x: jax.Array) -> jax.Array:
    """The part of x between 0 and 6, elementwise."""
    return lax.clamp(jnp.array(0, x.dtype), x, jnp.array(6, x.dtype))


def _block(x: jax.Array, weights: Tree, statistics: Tree, block: _Block, training: bool) -> tuple[jax.Array, Tree]:
    """An inverted residual block and its running statistics: [N, H, W, C] -> [N, H / stride, W / stride, O]."""
    updated = {}
    y = x
    if "expand" in weights:
        y, updated["expand"] = _unit(y, weights["expand"], statistics["expand"], training)
        y = _relu6(y)
    y, updated["depthwise"] = _unit(y, weights["depthwise"], statistics["depthwise"], training, block.stride)
    y, updated["project"] = _unit(_relu6(y), weights["project"], statistics["project"], training)
    residual = block.stride == 1 and block.inputs == block.outputs
    return x + y if residual else y, updated


def _logits(
    weights: Tree, statistics: Tree, images: jax.Array, plan: list[_Block], training: bool
) -> tuple[jax.Array, Tree]:
    """Scores of the classes and running statistics: [batch, image, image, 3] -> [batch, classes]."""
    x, stem = _unit(images, weights["stem"], statistics["stem"], training, stride=2)
    x, blocks = _relu6(x), []
    for block_weights, block_statistics, block in zip(weights["blocks"], statistics["blocks"], plan, strict=True):
        x, updated = _block(x, block_weights, block_statistics, block, training)
        blocks.append(updated)
    x, head = _unit(x, weights["head"], statistics["head"], training)
    logits = dense(_relu6(x).mean(axis=(1, 2)), weights["output"])
    return logits, {"stem": stem, "blocks": blocks, "head": head}


def _loss(
    weights: Tree, statistics: Tree, images: jax.Array, labels: jax.Array, plan: list[_Block]
) -> tuple[jax.Array, Tree]:
    """The label-smoothed cross-entropy and the updated statistics: [batch, image, image, 3], [batch] -> []."""
    logits, statistics = _logits(weights, statistics, images, plan, training=True)
    classes = logits.shape[-1]
    hot = labels[:, None] == jnp.arange(classes)
    targets = jnp.where(hot, 1 - SMOOTHING, 0) + SMOOTHING / classes
    return -(targets * log_softmax(logits)).sum(axis=-1).mean(), statistics


def train_step(
    weights: Tree, velocity: Tree, statistics: Tree, images: jax.Array, labels: jax.Array, *, plan: list[_Block]
) -> tuple[Tree, Tree, Tree, jax.Array]:
    """Weights, velocity and running statistics after one step, and the loss on the batch before it.

    Images are [batch, image, image, 3] of bfloat16, labels [batch] of int32.
    """
    gradient = jax.value_and_grad(_loss, has_aux=True)
    (loss, statistics), gradients = gradient(weights, statistics, images, labels, plan)
    velocity = jax.tree.map(lambda v, g: MOMENTUM * v + g, velocity, gradients)
    weights = jax.tree.map(lambda w, v: w - LEARNING_RATE * v, weights, velocity)
    return weights, velocity, statistics, loss


def mobilenet(weights: Tree, statistics: Tree, images: jax.Array, *, plan: list[_Block]) -> jax.Array:
    """Class probabilities: [batch, image, image, 3] of bfloat16 -> [batch, classes] of float32."""
    logits, _ = _logits(weights, statistics, images, plan, training=False)
    return softmax(logits)


def build(
    *, batch: int = 64, image: int = 224, width: float = 1.0, classes: int = 1000, training: bool = True
) -> Program:
    """One training step on a batch of images, or inference; `width` is the paper's width multiplier."""
    weights = _weights(width, classes)
    images = abstract(batch, image, image, 3, dtype=jnp.bfloat16)
    if not training:
        return partial(mobilenet, plan=_plan(width)), (half(weights), _statistics(weights), images)
    labels = abstract(batch, dtype=jnp.int32)
    return partial(train_step, plan=_plan(width)), (weights, weights, _statistics(weights), images, labels)
