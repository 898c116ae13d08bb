"""SSD300 (Liu et al., SSD: Single Shot MultiBox Detector, 2016), training and inference.

The backbone is the paper's VGG-16 or, as in MLPerf (Mattson et al., MLPerf Training Benchmark, 2020), ResNet-34 up to
its third stage. The ground truth is given per default box; non-maximum suppression runs on the host. Boxes are
fractions of the image. Training has float32 weights and computes in bfloat16.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from . import Program
from .layers import Tree, abstract, log_softmax, softmax
from .resnet import stage, stage_weights, stem
from .vision import biased_conv, conv_weights, half, max_pool, moving_average, relu, sgd, unit_weights, with_statistics

SCALES = (0.07, 0.15, 0.33, 0.51, 0.69, 0.87, 1.05)  # of the boxes of each map; the last one is beyond the last map
RATIOS = ((2,), (2, 3), (2, 3), (2, 3), (2,), (2,))  # aspect ratios of the boxes of a map, besides 1
COUNTS = tuple(2 + 2 * len(ratios) for ratios in RATIOS)  # boxes at each place of a map
EXTRAS = ((4, 8), (4, 8), (2, 4), (2, 4), (2, 4))  # channels of the two convolutions of each extra layer, in widths
UNPADDED = 2  # this many of the last extra layers have no padding, which shrinks the map
RESNET_STAGES = ((1, 1, 3), (1, 2, 4), (2, 4, 6))  # widths in, widths out, blocks
VGG_STAGES = ((1, 2), (2, 2), (4, 3), (8, 3), (8, 3))  # widths, convolutions
DILATION = 6
VARIANCES = (0.1, 0.2)  # of centres and of sizes: what the targets are divided by
NEGATIVES = 3  # background boxes in the loss for each matched one
EPSILON = 1e-6
LEARNING_RATE, WEIGHT_DECAY = 1e-3, 5e-4


def _resnet_weights(width: int) -> Tree:
    """The abstract weights of ResNet-34 up to its third stage."""
    stages = [stage_weights(i * width, o * width, blocks, bottleneck=False) for i, o, blocks in RESNET_STAGES]
    return {"stem": unit_weights(7, 3, width), "stages": stages}


def _resnet(weights: Tree, images: jax.Array, seen: list[Tree]) -> list[jax.Array]:
    """One map: [batch, image, image, 3] -> [batch, image / 8, image / 8, 4 * width]."""
    x = stem(images, weights["stem"], seen)
    for blocks, stride in zip(weights["stages"], (1, 2, 1), strict=True):
        x = stage(x, blocks, stride, seen)
    return [x]


def _vgg_weights(width: int) -> Tree:
    """The abstract weights of VGG-16 whose first dense layers are convolutions."""
    stages, channels = [], 3
    for multiple, count in VGG_STAGES:
        inputs = [channels] + [multiple * width] * (count - 1)
        stages.append([conv_weights(3, each, multiple * width) for each in inputs])
        channels = multiple * width
    dense = [conv_weights(3, channels, 16 * width), conv_weights(1, 16 * width, 16 * width)]
    return {"stages": stages, "scale": abstract(channels), "dense": dense}


def _unit_length(x: jax.Array, scale: jax.Array) -> jax.Array:
    """The vector at each place, scaled to length 1 and then by channel: [N, H, W, C] -> [N, H, W, C]."""
    full = x.astype(jnp.float32)
    length = jnp.square(full).sum(axis=-1, keepdims=True)
    return (full * lax.rsqrt(length + EPSILON) * scale).astype(x.dtype)


def _atrous(x: jax.Array, weights: Tree, padding: int, dilation: int) -> jax.Array:
    """A convolution with a bias, a padding and a dilation: [N, H, W, C] -> [N, H', W', O]."""
    kernel = weights["kernel"].astype(x.dtype)
    y = lax.conv_general_dilated(
        x,
        kernel,
        window_strides=(1, 1),
        padding=[(padding, padding)] * 2,
        rhs_dilation=(dilation, dilation),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    return y + weights["bias"].astype(x.dtype)


def _vgg(weights: Tree, images: jax.Array, seen: list[Tree]) -> list[jax.Array]:
    """Two maps: [batch, image, image, 3] -> [batch, image / 8, image / 8, 8 * width], [batch, image / 16, ...]."""
    del seen  # there is no batch norm
    x, outputs = images, []
    for number, convolutions in enumerate(weights["stages"]):
        x = max_pool(x, 2, 2) if number else x
        for each in convolutions:
            x = relu(biased_conv(x, each))
        outputs.append(x)
    x = relu(_atrous(max_pool(x, 3, 1), weights["dense"][0], padding=DILATION, dilation=DILATION))
    return [_unit_length(outputs[3], weights["scale"]), relu(biased_conv(x, weights["dense"][1]))]


BACKBONES = {  # weights, function, widths of the maps
    "resnet34": (_resnet_weights, _resnet, (4,)),
    "vgg16": (_vgg_weights, _vgg, (8, 16)),
}


def _extra_weights(inputs: int, channels: int, outputs: int) -> Tree:
    """The abstract weights of an extra layer."""
    return {"reduce": conv_weights(1, inputs, channels), "expand": conv_weights(3, channels, outputs)}


def _weights(backbone: str, width: int, classes: int) -> Tree:
    """The abstract weights of the network in training."""
    backbone_weights, _, maps = BACKBONES[backbone]
    extras = EXTRAS[len(maps) - 1 :]
    channels = [width * multiple for multiple in (*maps, *(outputs for _, outputs in extras))]
    layers = zip(channels[len(maps) - 1 :], extras, strict=False)
    return {
        "backbone": backbone_weights(width),
        "extras": [_extra_weights(inputs, width * hidden, width * outputs) for inputs, (hidden, outputs) in layers],
        "classes": [conv_weights(3, each, count * classes) for each, count in zip(channels, COUNTS, strict=True)],
        "boxes": [conv_weights(3, each, count * 4) for each, count in zip(channels, COUNTS, strict=True)],
    }


def _extra(x: jax.Array, layer: Tree, padded: bool) -> jax.Array:
    """An extra layer: [N, H, W, C] -> [N, H / 2, W / 2, O], or [N, H - 2, W - 2, O] without padding."""
    x = relu(biased_conv(x, layer["reduce"]))
    return relu(biased_conv(x, layer["expand"], 2) if padded else _atrous(x, layer["expand"], 0, 1))


def _head(maps: Sequence[jax.Array], layers: Sequence[Tree], values: int) -> jax.Array:
    """The predictions for the default boxes of all maps: [batch, H, W, C] each -> [batch, boxes, values]."""
    outputs = [biased_conv(x, layer) for x, layer in zip(maps, layers, strict=True)]
    return jnp.concatenate([x.reshape(x.shape[0], -1, values) for x in outputs], axis=1).astype(jnp.float32)


def _default_sizes(number: int) -> jax.Array:
    """Widths and heights of the default boxes at each place of a map: [boxes, 2]."""
    scale, larger = SCALES[number : number + 2]
    sizes = [(scale, scale), ((scale * larger) ** 0.5,) * 2]
    for ratio in RATIOS[number]:
        wide, narrow = scale * ratio**0.5, scale / ratio**0.5
        sizes += [(wide, narrow), (narrow, wide)]
    return jnp.array(sizes, jnp.float32)


def _default_boxes(maps: Sequence[jax.Array]) -> jax.Array:
    """The centres and sizes of the default boxes of all maps, x before y: [boxes, 4]."""
    boxes = []
    for number, x in enumerate(maps):
        sizes = _default_sizes(number)
        places = (jnp.arange(x.shape[1], dtype=jnp.float32) + 0.5) / x.shape[1]
        grid = jnp.stack(jnp.meshgrid(places, places), axis=-1)[:, :, None]
        shape = (*grid.shape[:2], len(sizes), 2)
        both = [jnp.broadcast_to(part, shape) for part in (grid, sizes)]
        boxes.append(jnp.concatenate(both, axis=-1).reshape(-1, 4))
    return jnp.concatenate(boxes)


def _predictions(
    weights: Tree, images: jax.Array, seen: list[Tree], backbone: str
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Scores, offsets and default boxes: [batch, image, image, 3] -> [batch, boxes, classes], [..., 4], [boxes, 4]."""
    maps = BACKBONES[backbone][1](weights["backbone"], images, seen)
    padded = len(weights["extras"]) - UNPADDED
    for position, layer in enumerate(weights["extras"]):
        maps.append(_extra(maps[-1], layer, position < padded))
    offsets = _head(maps, weights["boxes"], 4)
    scores = _head(maps, weights["classes"], weights["classes"][0]["bias"].size // COUNTS[0])
    return scores, offsets, _default_boxes(maps)


def _encoded(boxes: jax.Array, default: jax.Array) -> jax.Array:
    """Offsets of boxes from their default boxes, both as centres and sizes: [batch, boxes, 4] -> the same."""
    centres = (boxes[..., :2] - default[:, :2]) / (VARIANCES[0] * default[:, 2:])
    sizes = jnp.log(boxes[..., 2:] / default[:, 2:]) / VARIANCES[1]
    return jnp.concatenate([centres, sizes], axis=-1)


def _decoded(offsets: jax.Array, default: jax.Array) -> jax.Array:
    """The lower and upper corners of the boxes at offsets from default boxes: [batch, boxes, 4] -> the same."""
    centres = default[:, :2] + VARIANCES[0] * offsets[..., :2] * default[:, 2:]
    sizes = default[:, 2:] * jnp.exp(VARIANCES[1] * offsets[..., 2:])
    return jnp.concatenate([centres - sizes / 2, centres + sizes / 2], axis=-1)


def _smooth(x: jax.Array) -> jax.Array:
    """The smooth L1 loss (Girshick, Fast R-CNN, 2015), elementwise."""
    size = jnp.abs(x)
    return jnp.where(size < 1, 0.5 * x * x, size - 0.5)


def _mined(losses: jax.Array, matched: jax.Array) -> jax.Array:
    """True for matched boxes and the background boxes of largest loss: [batch, boxes] -> [batch, boxes] of bool."""
    losses = lax.stop_gradient(jnp.where(matched, 0, losses))
    ranks = jnp.argsort(jnp.argsort(losses, axis=-1, descending=True), axis=-1)
    return matched | (ranks < NEGATIVES * matched.sum(axis=-1, keepdims=True))


def _loss(
    weights: Tree, images: jax.Array, boxes: jax.Array, labels: jax.Array, backbone: str
) -> tuple[jax.Array, list[Tree]]:
    """The loss of positions and classes per matched box, and the statistics of the batch norms."""
    seen: list[Tree] = []
    scores, offsets, default = _predictions(weights, images, seen, backbone)
    matched = labels > 0
    places = jnp.where(matched, _smooth(offsets - _encoded(boxes, default)).sum(axis=-1), 0)
    losses = -jnp.take_along_axis(log_softmax(scores), labels[..., None], axis=-1, mode="clip")[..., 0]
    classes = jnp.where(_mined(losses, matched), losses, 0)
    return (places + classes).sum() / jnp.maximum(1, matched.sum()), seen


def train_step(
    weights: Tree,
    velocity: Tree,
    statistics: list[Tree],
    images: jax.Array,
    boxes: jax.Array,
    labels: jax.Array,
    *,
    backbone: str,
) -> tuple[Tree, Tree, list[Tree], jax.Array]:
    """Weights, velocity and running statistics after one step, and the loss on the batch before it.

    Images are [batch, image, image, 3] of bfloat16. Each default box has the centre and size of the true box that it
    matches, [batch, boxes, 4], and its class, [batch, boxes] of int32. A box that matches none has class 0 and any
    size above 0.
    """
    (loss, seen), gradients = jax.value_and_grad(_loss, has_aux=True)(weights, images, boxes, labels, backbone)
    weights, velocity = sgd(weights, velocity, gradients, LEARNING_RATE, WEIGHT_DECAY)
    return weights, velocity, moving_average(statistics, seen), loss


def detect(weights: Tree, images: jax.Array, *, backbone: str) -> tuple[jax.Array, jax.Array]:
    """Class probabilities and corners of boxes: [batch, image, image, 3] -> [batch, boxes, classes], [batch, boxes, 4].

    Images are bfloat16, the results float32.
    """
    scores, offsets, default = _predictions(weights, images, [], backbone)
    return softmax(scores), _decoded(offsets, default)


def build(
    *,
    batch: int = 32,
    image: int = 300,
    backbone: str = "resnet34",
    width: int = 64,
    classes: int = 81,
    training: bool = True,
) -> Program:
    """One training step on a batch of images, or inference; the backbone is `resnet34` or `vgg16`.

    `classes` includes the background; with images smaller than 257 the last map is empty.
    """
    weights = _weights(backbone, width, classes)
    images = abstract(batch, image, image, 3, dtype=jnp.bfloat16)
    inference_weights = with_statistics(half(weights))
    if not training:
        return partial(detect, backbone=backbone), (inference_weights, images)
    _, boxes = jax.eval_shape(partial(detect, backbone=backbone), inference_weights, images)
    labels = abstract(*boxes.shape[:2], dtype=jnp.int32)
    _, statistics = jax.eval_shape(partial(_loss, backbone=backbone), weights, images, boxes, labels)
    return partial(train_step, backbone=backbone), (weights, weights, statistics, images, boxes, labels)
