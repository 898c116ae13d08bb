"""ResNet (He et al., Deep Residual Learning for Image Recognition, 2016), inference and training.

Version 1.5: the stride of a stage is in the 3x3 convolution of its first block. Batch norm is not fused, as in
the programs of frameworks. Training has float32 weights and computes in bfloat16.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from . import Program
from .layers import Tree, abstract, dense, dense_weights, softmax
from .vision import classifier_training, half, max_pool, relu, unit, unit_weights, with_statistics

EXPANSION = 4  # a bottleneck block's output has this many times the channels of its 3x3 convolution


def _block_weights(inputs: int, channels: int, bottleneck: bool) -> Tree:
    """The abstract weights of a block, with a projection where the shortcut changes shape."""
    outputs = EXPANSION * channels if bottleneck else channels
    if bottleneck:
        block = {
            "reduce": unit_weights(1, inputs, channels),
            "spatial": unit_weights(3, channels, channels),
            "expand": unit_weights(1, channels, outputs),
        }
    else:
        block = {"first": unit_weights(3, inputs, channels), "second": unit_weights(3, channels, channels)}
    return block | ({"shortcut": unit_weights(1, inputs, outputs)} if inputs != outputs else {})


def stage_weights(inputs: int, channels: int, blocks: int, bottleneck: bool) -> list[Tree]:
    """The abstract weights of the blocks of one resolution."""
    outputs = EXPANSION * channels if bottleneck else channels
    return [_block_weights(outputs if position else inputs, channels, bottleneck) for position in range(blocks)]


def _weights(depths: Sequence[int], width: int, classes: int, bottleneck: bool) -> Tree:
    """The abstract weights of the network in training."""
    widths = [width << stage for stage in range(len(depths))]
    inputs = [width, *(EXPANSION * channels if bottleneck else channels for channels in widths)]
    sizes = zip(inputs[:-1], widths, depths, strict=True)
    stages = [stage_weights(*stage_sizes, bottleneck) for stage_sizes in sizes]
    return {"stem": unit_weights(7, 3, width), "stages": stages, "output": dense_weights(inputs[-1], classes)}


def _bottleneck(x: jax.Array, block: Tree, stride: int, seen: list[Tree]) -> jax.Array:
    """The branch of a bottleneck block: [N, H, W, C] -> [N, H / stride, W / stride, 4 * channels]."""
    y = relu(unit(x, block["reduce"], seen))
    y = relu(unit(y, block["spatial"], seen, stride))
    return unit(y, block["expand"], seen)


def _basic(x: jax.Array, block: Tree, stride: int, seen: list[Tree]) -> jax.Array:
    """The branch of a basic block: [N, H, W, C] -> [N, H / stride, W / stride, channels]."""
    return unit(relu(unit(x, block["first"], seen, stride)), block["second"], seen)


def stage(x: jax.Array, blocks: list[Tree], stride: int, seen: list[Tree]) -> jax.Array:
    """The blocks of one resolution: [N, H, W, C] -> [N, H / stride, W / stride, O]."""
    for position, block in enumerate(blocks):
        step = 1 if position else stride
        y = (_bottleneck if "reduce" in block else _basic)(x, block, step, seen)
        shortcut = unit(x, block["shortcut"], seen, step) if "shortcut" in block else x
        x = relu(y + shortcut)
    return x


def stem(images: jax.Array, weights: Tree, seen: list[Tree]) -> jax.Array:
    """The first convolution and its pooling: [batch, image, image, 3] -> [batch, image / 4, image / 4, width]."""
    x = relu(unit(images, weights, seen, stride=2))
    # In inference the bound is traced, so JAX emits a general window reduction, which has no derivative.
    lowest = jnp.array(-jnp.inf, x.dtype) if "mean" in weights["norm"] else -jnp.inf
    return max_pool(x, lowest=lowest)


def _logits(weights: Tree, images: jax.Array, seen: list[Tree]) -> jax.Array:
    """Scores of the classes: [batch, image, image, 3] -> [batch, classes]."""
    x = stem(images, weights["stem"], seen)
    for number, blocks in enumerate(weights["stages"]):
        x = stage(x, blocks, 2 if number else 1, seen)
    return dense(x.mean(axis=(1, 2)), weights["output"])


def resnet(weights: Tree, images: jax.Array) -> jax.Array:
    """Class probabilities: [batch, image, image, 3] of bfloat16 -> [batch, classes] of float32."""
    return softmax(_logits(weights, images, []))


def build(
    *,
    batch: int = 32,
    image: int = 224,
    depths: Sequence[int] = (3, 4, 6, 3),
    width: int = 64,
    classes: int = 1000,
    bottleneck: bool = True,
    training: bool = False,
) -> Program:
    """Inference or one training step on a batch of images.

    The default depths make ResNet-50, (3, 4, 23, 3) make ResNet-101 and (3, 8, 36, 3) ResNet-152. Without bottlenecks
    (2, 2, 2, 2) make ResNet-18 and (3, 4, 6, 3) ResNet-34.
    """
    weights = _weights(depths, width, classes, bottleneck)
    if training:
        return classifier_training(_logits, weights, batch, image)
    return resnet, (with_statistics(half(weights)), abstract(batch, image, image, 3, dtype=jnp.bfloat16))
