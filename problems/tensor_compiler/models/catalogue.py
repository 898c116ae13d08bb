"""All programs by name: those that ship, and variants of every model that are lowered when first used.

A variant's name says which model it is, what it does and at which sizes: `gpt2-355m-train-b4-s1024` is a training step
of GPT-2 with 355 million parameters, on a batch of 4 sequences of 1024 tokens. `LAYERED` holds small programs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from . import MODELS, Program, build_model

_MODES: dict[str, dict[str, bool]] = {
    "train": {"training": True},
    "adagrad": {"training": True, "adagrad": True},
    "infer": {"training": False},
    "prefill": {"training": False},
    "encode": {"training": False},
    "decode": {"training": False, "decode": True},
}
_SIZES = {
    "b": "batch",
    "s": "sequence",
    "f": "frames",
    "i": "image",
    "c": "classes",
    "l": "lookups",
}
"""The sizes that stand at the end of a name, by their letter."""

_RESNET_50, _RESNET_101, _RESNET_152 = ({"depths": depths} for depths in ((3, 4, 6, 3), (3, 4, 23, 3), (3, 8, 36, 3)))
_RESNET_18 = {"depths": (2, 2, 2, 2), "bottleneck": False}
_RESNET_34 = {"depths": (3, 4, 6, 3), "bottleneck": False}
_UNET_64 = {"image": 64, "multiples": (1, 2, 3, 4), "blocks": 3}
_UNET_256 = {"image": 256, "multiples": (1, 1, 2, 2, 4, 4)}
_LARGE = {"depth": 24, "width": 1024, "heads": 16}  # BERT large and GPT-2 of 355 million parameters
_TINY = {"depth": 2, "width": 128, "heads": 2}
_BIG = {"width": 1024, "heads": 16}  # the big Transformer of Vaswani et al.
_KAGGLE = {"data": "kaggle", "bottom": (512, 256, 64, 16), "top": (512, 256)}
_SWITCH = {"depth": 12, "experts": 32}
_MOE_8 = {"depth": 12, "experts": 8}
_MOE_LARGE = {"depth": 12, "width": 1024, "heads": 16, "hidden": 4096, "experts": 64}
_RNN_LARGE = {"hidden": 1500, "vocabulary": 10_000}

# Model, variant and mode; the sizes at the end of each name; all other sizes that are not the model's defaults.
_VARIANTS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("resnet-50-train", "b32 b256", _RESNET_50),
    ("resnet-101-train", "b32 b256", _RESNET_101),
    ("resnet-152-train", "b32 b256", _RESNET_152),
    ("resnet-50-infer", "b1 b128", _RESNET_50),
    ("resnet-101-infer", "b1 b128", _RESNET_101),
    ("resnet-152-infer", "b1 b128", _RESNET_152),
    ("resnet-18-train", "b64", _RESNET_18),
    ("resnet-34-train", "b64", _RESNET_34),
    ("resnet-34-infer", "b8", _RESNET_34),
    ("resnet-50x2-train", "b32", {"width": 128}),
    ("resnet_v2-50-train", "b32 b128", _RESNET_50),
    ("resnet_v2-101-train", "b32 b128", _RESNET_101),
    ("resnet_v2-152-train", "b32 b128", _RESNET_152),
    ("resnet_v2-50-infer", "b1 b64", _RESNET_50),
    ("resnet_v2-101-infer", "b1 b64", _RESNET_101),
    ("resnet_v2-152-infer", "b1 b64", _RESNET_152),
    ("resnet_v2-50x2-train", "b32", {"width": 128}),
    ("mobilenet-0.5-train", "b128", {"width": 0.5}),
    ("mobilenet-0.75-train", "b96", {"width": 0.75}),
    ("mobilenet-1.0-train", "b16 b256", {}),
    ("mobilenet-1.4-train", "b64", {"width": 1.4}),
    ("mobilenet-0.5-infer", "b1", {"width": 0.5}),
    ("mobilenet-1.0-infer", "b1 b64", {}),
    ("mobilenet-1.4-infer", "b32", {"width": 1.4}),
    ("mobilenet-1.0-train", "b128-i160", {}),
    ("ssd-resnet34-train", "b8 b32", {}),
    ("ssd-vgg16-train", "b8 b32", {"backbone": "vgg16"}),
    ("ssd-resnet34-infer", "b1 b32", {}),
    ("ssd-vgg16-infer", "b1 b32", {"backbone": "vgg16"}),
    ("ssd-resnet34-train", "b128", {}),
    ("ssd-resnet34x2-train", "b16", {"width": 128}),
    ("ssd-vgg16-train", "b16-i512", {"backbone": "vgg16"}),
    ("ssd-vgg16-infer", "b8-c21", {"backbone": "vgg16"}),
    ("unet-32-train", "b32 b128", {}),
    ("unet-32-infer", "b1 b256", {}),
    ("unet-32-w64-train", "b128", {"width": 64}),
    ("unet-32-w256-train", "b64", {"width": 256}),
    ("unet-64-train", "b32", _UNET_64),
    ("unet-64-infer", "b16", _UNET_64),
    ("unet-256-train", "b8 b64", _UNET_256),
    ("unet-256-infer", "b1 b32", _UNET_256),
    ("convdraw-t32-train", "b16 b64", {}),
    ("convdraw-t16-train", "b64", {"steps": 16}),
    ("convdraw-t32-train", "b32-i64", {}),
    ("convdraw-t32-h256-train", "b64", {"hidden": 256, "latent": 16}),
    ("convdraw-t32u4-train", "b64", {"unroll": 4}),
    ("convdraw-t8u8-train", "b64", {"steps": 8, "unroll": 8}),
    ("convdraw-t16u16-train", "b32", {"steps": 16, "unroll": 16}),
    ("convdraw-t32u32-train", "b16-i64", {"unroll": 32}),
    ("convdraw-t32-infer", "b64", {}),
    ("convdraw-t32u32-infer", "b16", {"unroll": 32}),
    ("gpt2-124m-train", "b8-s1024 b1-s1024 b16-s256 b64-s128", {}),
    ("gpt2-124m-prefill", "b1-s128 b1-s1024 b16-s512", {}),
    ("gpt2-124m-decode", "b1-s1024 b32-s512 b128-s256", {}),
    ("gpt2-355m-train", "b4-s1024 b16-s256", _LARGE),
    ("gpt2-355m-prefill", "b8-s1024 b1-s256", _LARGE),
    ("gpt2-355m-decode", "b1-s1024 b64-s512", _LARGE),
    ("bert-base-train", "b32-s128 b256-s128 b8-s512 b32-s512", {}),
    ("bert-base-infer", "b1-s128 b1-s512 b8-s384 b128-s64", {}),
    ("bert-large-train", "b16-s128 b64-s128 b4-s512", _LARGE),
    ("bert-large-infer", "b1-s384 b32-s384 b64-s128", _LARGE),
    ("bert-tiny-train", "b256-s128", _TINY),
    ("bert-tiny-infer", "b64-s128", _TINY),
    ("translate-base-train", "b64-s64 b256-s32 b16-s256", {}),
    ("translate-base-encode", "b1-s64 b64-s64", {}),
    ("translate-base-decode", "b1-s64 b64-s64 b512-s128", {}),
    ("translate-big-train", "b32-s64 b128-s64 b8-s256", _BIG),
    ("translate-big-encode", "b16-s128", _BIG),
    ("translate-big-decode", "b4-s128 b128-s64", _BIG),
    ("nmt-train", "b128-s50 b32-s25 b512-s50", {}),
    ("nmt-4layer-train", "b128-s50", {"depth": 4}),
    ("nmt-2layer-train", "b256-s80", {"depth": 2, "units": 512}),
    ("nmt-encode", "b1-s25 b128-s50", {}),
    ("nmt-decode", "b1-s25 b128-s50", {}),
    ("nmt-4layer-decode", "b512-s80", {"depth": 4}),
    ("wavernn-infer", "b1-f80 b16-f80 b128-f400", {}),
    ("wavernn-384-infer", "b1-f80", {"units": 384}),
    ("wavernn-2048-infer", "b8-f80", {"units": 2048}),
    ("wavernn-train", "b32-f4 b128-f8", {}),
    ("wavernn-2048-train", "b64-f4", {"units": 2048}),
    ("dlrm-terabyte-train", "b2048 b65536", {}),
    ("dlrm-terabyte-adagrad", "b8192", {}),
    ("dlrm-terabyte-train", "b4096-l10", {}),
    ("dlrm-terabyte-infer", "b1 b2048 b512-l32", {}),
    ("dlrm-kaggle-train", "b128 b16384", _KAGGLE),
    ("dlrm-kaggle-adagrad", "b2048", _KAGGLE),
    ("dlrm-kaggle-infer", "b64 b8192", _KAGGLE),
    ("moe-switch-base-train", "b8-s512 b32-s128", {}),
    ("moe-switch-base-infer", "b8-s512 b1-s2048", {}),
    ("moe-32-train", "b16-s512 b64-s128", _SWITCH),
    ("moe-32-infer", "b32-s512", _SWITCH),
    ("moe-8-train", "b8-s1024", _MOE_8),
    ("moe-8-infer", "b1-s1024", _MOE_8),
    ("moe-large-64-infer", "b4-s512", _MOE_LARGE),
    ("rnn-medium-train", "b20-s35", {"hidden": 650, "vocabulary": 10_000}),
    ("rnn-large-train", "b128-s35", _RNN_LARGE),
    ("rnn-4layer-train", "b64-s128", {"depth": 4, "hidden": 1024}),
    ("rnn-infer", "b512-s64", {}),
    ("rnn-large-infer", "b1-s35 b256-s1", _RNN_LARGE),
)


def _variants() -> Iterator[tuple[str, Callable[..., Program]]]:
    """Yield each variant's name and what builds it."""
    for variant, endings, others in _VARIANTS:
        model, _, rest = variant.partition("-")
        for ending in endings.split():
            sizes = {_SIZES[letter]: int(size) for letter, size in re.findall(r"([a-z])(\d+)", ending)}
            mode = _MODES[rest.rpartition("-")[2]]
            yield f"{variant}-{ending}", partial(build_model, model, **sizes, **mode, **others)


PROGRAMS: dict[str, Callable[..., Program]] = MODELS | dict(_variants())

LAYERS = (1, 2, 6)
_LAYERED_SIZES: dict[str, Callable[[int], dict[str, object]]] = {
    "bert": lambda layers: {"batch": 1, "depth": layers},
    "convdraw": lambda layers: {"batch": 1, "steps": 6, "unroll": layers},
    "dlrm": lambda layers: {"batch": 16, "bottom": (512,) * layers + (128,), "top": (512,) * layers + (256,)},
    "gpt2": lambda layers: {"batch": 1, "sequence": 128, "depth": layers},
    "moe": lambda layers: {"batch": 1, "depth": layers, "experts": 8},
    "nmt": lambda layers: {"batch": 8, "sequence": 16, "depth": layers + 1},
    "resnet": lambda layers: {"batch": 1, "depths": (layers, layers), "bottleneck": False},
    "resnet_v2": lambda layers: {"batch": 1, "depths": (layers, layers)},
    "rnn": lambda layers: {"batch": 8, "sequence": 16, "depth": layers},
    "translate": lambda layers: {"batch": 1, "depth": layers},
}
LAYERED: dict[str, Callable[[], Program]] = {
    f"{model}-l{layers}{suffix}": partial(build_model, model, **sizes(layers), training=not suffix)
    for model, sizes in _LAYERED_SIZES.items()
    for layers in LAYERS
    for suffix in ("", "-infer")
}
"""Small programs of 1, 2 and 6 layers: their sizes hardly change what a compiler's passes can do, the layers do.

`gpt2-l2` is a training step, `gpt2-l2-infer` inference. A layer of a ResNet is a block in each of two stages, one of
ConvDraw an unrolled step, one of DLRM a layer of both networks. NMT has one more layer, since its first differs.
"""
