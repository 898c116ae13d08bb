"""The programs whose kernels are the prior of a kernel's shape, by model; the other models are left for tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

CORPUS: dict[str, tuple[str, ...]] = {
    "convdraw": (
        "convdraw-t32-infer-b64",
        "convdraw-t32-train-b16",
        "convdraw-t32-train-b32-i64",
        "convdraw-t32-h256-train-b64",
    ),
    "gpt2": (
        "gpt2-124m-train-b8-s1024",
        "gpt2-124m-prefill-b1-s128",
        "gpt2-124m-prefill-b16-s512",
        "gpt2-124m-decode-b32-s512",
        "gpt2-124m-decode-b128-s256",
        "gpt2-355m-prefill-b8-s1024",
        "gpt2-355m-train-b16-s256",
    ),
    "moe": (
        "moe-switch-base-train-b32-s128",
        "moe-switch-base-infer-b8-s512",
        "moe-8-infer-b1-s1024",
        "moe-32-infer-b32-s512",
    ),
    "resnet": (
        "resnet50",
        "resnet-18-train-b64",
        "resnet-34-infer-b8",
        "resnet-50-infer-b1",
        "resnet-50-train-b32",
        "resnet-101-infer-b128",
    ),
    "resnet_v2": ("resnet_v2-50-infer-b1", "resnet_v2-50-infer-b64", "resnet_v2-50-train-b32"),
    "rnn": ("rnn", "rnn-medium-train-b20-s35", "rnn-4layer-train-b64-s128", "rnn-large-infer-b1-s35"),
    "translate": (
        "translate-base-encode-b64-s64",
        "translate-base-train-b64-s64",
        "translate-base-train-b16-s256",
        "translate-base-decode-b64-s64",
        "translate-big-train-b32-s64",
        "translate-big-decode-b128-s64",
    ),
    "wavernn": ("wavernn-infer-b16-f80", "wavernn-train-b32-f4", "wavernn-2048-infer-b8-f80"),
}


def kernels(programs: tuple[str, ...]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the different kernels of some programs, `(k, KERNEL_WIDTH)`, and how often each occurs, `(k,)`.

    A program that does not ship is lowered on first use, which takes some seconds.
    """
    from .kernel_problem import TileProblem

    rows = np.concatenate([TileProblem(name).kernels for name in programs])
    return np.unique(rows, axis=0, return_counts=True)
