"""The programs that the comparison compiles: small ones around one operation, and models at sizes that compile fast."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..models import Program

_COPIES = 12

_MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "resnet-infer": ("resnet", {"batch": 8, "image": 112, "depths": (1, 1, 1, 1)}),
    "resnet-train": ("resnet", {"batch": 16, "image": 64, "depths": (1, 1, 1, 1), "training": True}),
    "resnet_v2-train": ("resnet_v2", {"batch": 8, "image": 96, "depths": (1, 1, 1, 1)}),
    "resnet_v2-infer": ("resnet_v2", {"batch": 32, "image": 128, "depths": (1, 1, 1, 1), "training": False}),
    "mobilenet-train": ("mobilenet", {"batch": 4, "image": 96, "width": 0.5}),
    "mobilenet-infer": ("mobilenet", {"batch": 8, "image": 128, "training": False}),
    "ssd-infer": ("ssd", {"batch": 2, "image": 300, "classes": 21, "training": False}),
    "unet-train": ("unet", {"batch": 8, "image": 16, "width": 64, "multiples": (1, 2), "blocks": 1, "attention": 8}),
    "unet-infer": ("unet", {"batch": 16, "width": 128, "multiples": (1, 2), "blocks": 1, "training": False}),
    "transformer-train": ("transformer", {"batch": 4, "sequence": 256, "depth": 1}),
    "transformer-narrow-train": ("transformer", {"batch": 8, "sequence": 128, "depth": 1, "width": 256, "heads": 4}),
    "gpt2-train": ("gpt2", {"batch": 2, "sequence": 256, "depth": 1, "vocabulary": 8192}),
    "gpt2-prefill": ("gpt2", {"batch": 1, "sequence": 512, "depth": 2, "vocabulary": 8192, "training": False}),
    "gpt2-decode": (
        "gpt2",
        {"batch": 16, "sequence": 256, "depth": 2, "vocabulary": 8192, "training": False, "decode": True},
    ),
    "bert-train": ("bert", {"batch": 8, "depth": 1, "vocabulary": 8192}),
    "bert-wide-train": ("bert", {"batch": 4, "sequence": 256, "depth": 1, "width": 1024, "heads": 16, "context": 256}),
    "bert-infer": ("bert", {"batch": 16, "depth": 2, "vocabulary": 8192, "training": False}),
    "translate-train": ("translate", {"batch": 16, "depth": 1, "vocabulary": 8192}),
    "translate-decode": (
        "translate",
        {"batch": 32, "depth": 1, "vocabulary": 8192, "training": False, "decode": True},
    ),
    "moe-train": ("moe", {"batch": 4, "sequence": 128, "depth": 2, "experts": 8, "vocabulary": 4096, "hidden": 1024}),
    "moe-infer": (
        "moe",
        {"batch": 4, "sequence": 256, "depth": 2, "experts": 16, "vocabulary": 4096, "training": False},
    ),
    "nmt-train": ("nmt", {"batch": 64, "sequence": 20, "depth": 2, "units": 512, "vocabulary": 8192}),
    "nmt-encode": ("nmt", {"batch": 32, "depth": 2, "training": False}),
    "rnn-train": ("rnn", {"batch": 128, "sequence": 32, "depth": 2}),
    "rnn-infer": ("rnn", {"batch": 20, "sequence": 35, "hidden": 1024, "training": False}),
    "wavernn-infer": ("wavernn", {"batch": 8, "frames": 8}),
    "wavernn-train": ("wavernn", {"batch": 16, "frames": 2, "units": 512, "training": True}),
    "dlrm-train": ("dlrm", {"batch": 1024, "largest": 10_000}),
    "dlrm-infer": ("dlrm", {"batch": 512, "largest": 10_000, "data": "kaggle", "training": False}),
}


def names() -> list[str]:
    """Return the names of all programs."""
    from .generated import FAMILIES

    return [*_MODELS, *(f"{family}-{number}" for number in range(_COPIES) for family in FAMILIES)]


def program(name: str) -> Program:
    """Return a program by its name; imports JAX."""
    from ..models import _build
    from .generated import program as generated

    if name in _MODELS:
        module, sizes = _MODELS[name]
        return partial(_build, module, **sizes)()
    return generated(name)
