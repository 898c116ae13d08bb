"""ResNet v2 (He et al., Identity Mappings in Deep Residual Networks, 2016), inference and training.

Batch norm and activation come before each convolution, so that blocks are joined by plain sums. As in
version 1.5 the stride of a stage is in the 3x3 convolution of its first block. Training has float32 weights and
computes in bfloat16.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from . import Program
from .layers import Tree, abstract, conv, dense, dense_weights, norm_weights, softmax
from .vision import batch_norm, classifier_training, half, max_pool, relu, with_statistics

EXPANSION = 4  # a block's output has this many times the channels of its 3x3 convolution


def _unit_weights(size: int, inputs: int, outputs: int) -> Tree:
    """The abstract weights of a batch norm and the convolution that follows it."""
    return {"norm": norm_weights(inputs), "kernel": abstract(size, size, inputs, outputs)}


def _block_weights(inputs: int, channels: int) -> Tree:
    """The abstract weights of a bottleneck block, with a projection where the shortcut changes shape."""
    outputs = EXPANSION * channels
    block = {
        "reduce": _unit_weights(1, inputs, channels),
        "spatial": _unit_weights(3, channels, channels),
        "expand": _unit_weights(1, channels, outputs),
    }
    return block | ({"shortcut": {"kernel": abstract(1, 1, inputs, outputs)}} if inputs != outputs else {})


def _stage_weights(inputs: int, channels: int, blocks: int) -> list[Tree]:
    """The abstract weights of the blocks of one resolution."""
    return [_block_weights(EXPANSION * channels if position else inputs, channels) for position in range(blocks)]


def _weights(depths: Sequence[int], width: int, classes: int) -> Tree:
    """The abstract weights of the network in training."""
    widths = [width << stage for stage in range(len(depths))]
    inputs = [width, *(EXPANSION * channels for channels in widths)]
    return {
        "stem": {"kernel": abstract(7, 7, 3, width)},
        "stages": [_stage_weights(*sizes) for sizes in zip(inputs[:-1], widths, depths, strict=True)],
        "norm": norm_weights(inputs[-1]),
        "output": dense_weights(inputs[-1], classes),
    }


def _active(x: jax.Array, norm: Tree, seen: list[Tree]) -> jax.Array:
    """Batch norm and activation: [N, H, W, C] -> [N, H, W, C]."""
    return relu(batch_norm(x, norm, seen))


def _block(x: jax.Array, block: Tree, stride: int, seen: list[Tree]) -> jax.Array:
    """A bottleneck block; a projection starts after the first norm: [N, H, W, C] -> [N, H / stride, W / stride, O]."""
    first = _active(x, block["reduce"]["norm"], seen)
    y = conv(first, block["reduce"]["kernel"])
    y = conv(_active(y, block["spatial"]["norm"], seen), block["spatial"]["kernel"], stride)
    y = conv(_active(y, block["expand"]["norm"], seen), block["expand"]["kernel"])
    return y + (conv(first, block["shortcut"]["kernel"], stride) if "shortcut" in block else x)


def _logits(weights: Tree, images: jax.Array, seen: list[Tree]) -> jax.Array:
    """Scores of the classes: [batch, image, image, 3] -> [batch, classes]."""
    x = max_pool(conv(images, weights["stem"]["kernel"], stride=2))
    for number, stage in enumerate(weights["stages"]):
        for position, block in enumerate(stage):
            x = _block(x, block, 2 if number > 0 and position == 0 else 1, seen)
    x = _active(x, weights["norm"], seen)
    return dense(x.mean(axis=(1, 2)), weights["output"])


def resnet_v2(weights: Tree, images: jax.Array) -> jax.Array:
    """Class probabilities: [batch, image, image, 3] of bfloat16 -> [batch, classes] of float32."""
    return softmax(_logits(weights, images, []))


def build(
    *,
    batch: int = 32,
    image: int = 224,
    depths: Sequence[int] = (3, 4, 6, 3),
    width: int = 64,
    classes: int = 1000,
    training: bool = True,
) -> Program:
    """One training step on a batch of images, or inference.

    The default depths make ResNet-50, (3, 4, 23, 3) make ResNet-101 and (3, 8, 36, 3) ResNet-152.
    """
    weights = _weights(depths, width, classes)
    if training:
        return classifier_training(_logits, weights, batch, image)
    return resnet_v2, (with_statistics(half(weights)), abstract(batch, image, image, 3, dtype=jnp.bfloat16))
