"""ResNet inference (He et al., Deep Residual Learning for Image Recognition, 2016).

Version 1.5: the stride of a stage is in the 3x3 convolution of its first block. Batch norm is left unfused, as
frameworks print it.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import lax

from . import Program
from .layers import Tree, abstract, conv, dense, dense_weights, softmax

EXPANSION = 4  # a block's output has this many times the channels of its 3x3 convolution
EPSILON = 1e-5


def _unit_weights(size: int, inputs: int, outputs: int) -> Tree:
    """The abstract weights of a convolution and its batch norm."""
    norm = {name: abstract(outputs) for name in ("scale", "offset", "mean", "variance")}
    return {"kernel": abstract(size, size, inputs, outputs, dtype=jnp.bfloat16), "norm": norm}


def _block_weights(inputs: int, channels: int, projected: bool) -> Tree:
    """The abstract weights of a bottleneck block, with a projection where the shortcut changes shape."""
    outputs = EXPANSION * channels
    block = {
        "reduce": _unit_weights(1, inputs, channels),
        "spatial": _unit_weights(3, channels, channels),
        "expand": _unit_weights(1, channels, outputs),
    }
    return block | ({"shortcut": _unit_weights(1, inputs, outputs)} if projected else {})


def _stage_weights(inputs: int, channels: int, blocks: int) -> list[Tree]:
    """The abstract weights of the blocks of one resolution."""
    rest = [_block_weights(EXPANSION * channels, channels, projected=False) for _ in range(blocks - 1)]
    return [_block_weights(inputs, channels, projected=True), *rest]


def _weights(depths: Sequence[int], width: int, classes: int) -> Tree:
    """The abstract weights of the network."""
    widths = [width << stage for stage in range(len(depths))]
    inputs = [width, *(EXPANSION * channels for channels in widths)]
    stages = [_stage_weights(*sizes) for sizes in zip(inputs[:-1], widths, depths, strict=True)]
    output = dense_weights(inputs[-1], classes, dtype=jnp.bfloat16)
    return {"stem": _unit_weights(7, 3, width), "stages": stages, "output": output}


def _batch_norm(x: jax.Array, norm: Tree) -> jax.Array:
    """Batch norm with known statistics, in float32: [N, H, W, C] -> [N, H, W, C]."""
    centred = x.astype(jnp.float32) - norm["mean"]
    normal = centred * lax.rsqrt(norm["variance"] + EPSILON)
    return (normal * norm["scale"] + norm["offset"]).astype(x.dtype)


def _unit(x: jax.Array, unit: Tree, stride: int = 1) -> jax.Array:
    """A convolution and its batch norm: [N, H, W, C] -> [N, H / stride, W / stride, O]."""
    return _batch_norm(conv(x, unit["kernel"], stride), unit["norm"])


def _relu(x: jax.Array) -> jax.Array:
    """The positive part, elementwise."""
    return jnp.maximum(x, 0)


def _block(x: jax.Array, block: Tree, stride: int) -> jax.Array:
    """A bottleneck block: [N, H, W, C] -> [N, H / stride, W / stride, 4 * channels]."""
    y = _relu(_unit(x, block["reduce"]))
    y = _relu(_unit(y, block["spatial"], stride))
    y = _unit(y, block["expand"])
    shortcut = _unit(x, block["shortcut"], stride) if "shortcut" in block else x
    return _relu(y + shortcut)


def _max_pool(x: jax.Array) -> jax.Array:
    """The maximum over windows of 3x3: [N, H, W, C] -> [N, H / 2, W / 2, C]."""
    lowest = jnp.array(-jnp.inf, x.dtype)
    return lax.reduce_window(x, lowest, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (1, 1), (0, 0)))


def resnet(weights: Tree, images: jax.Array) -> jax.Array:
    """Class probabilities: [batch, image, image, 3] of bfloat16 -> [batch, classes] of float32."""
    x = _max_pool(_relu(_unit(images, weights["stem"], stride=2)))
    for number, stage in enumerate(weights["stages"]):
        for position, block in enumerate(stage):
            x = _block(x, block, stride=2 if number > 0 and position == 0 else 1)
    return softmax(dense(x.mean(axis=(1, 2)), weights["output"]))


def build(
    *,
    batch: int = 32,
    image: int = 224,
    depths: Sequence[int] = (3, 4, 6, 3),
    width: int = 64,
    classes: int = 1000,
) -> Program:
    """Inference on a batch of images; the default depths make ResNet-50, (3, 4, 23, 3) make ResNet-101."""
    return resnet, (_weights(depths, width, classes), abstract(batch, image, image, 3, dtype=jnp.bfloat16))
