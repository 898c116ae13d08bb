"""Models of random sizes, and variants of any program with random barriers and flags of fusion.

They are programs to learn from: `gpt2~17` has the sizes that its name draws, and `gpt2~17.2` is its second variant.
As a process (`python -m`) this module compiles them on request; see `calibration.compiler`.
"""

from __future__ import annotations

import zlib
from collections.abc import Container
from typing import Any

import numpy as np

from ..tensor_compiler.calibration.compiler import answer, compiled
from ..tensor_compiler.models import Program

_BATCH = (1, 2, 4, 8, 16)
_IMAGES: dict[str, tuple[Any, ...]] = {"batch": _BATCH, "image": (32, 48, 64, 80, 96, 112), "training": (False, True)}
_DEPTHS = ((1, 1), (1, 1, 1), (1, 1, 1, 1), (2, 1))
_TOKENS: dict[str, tuple[Any, ...]] = {"batch": _BATCH, "sequence": (32, 48, 64, 96, 128, 192, 256), "depth": (1, 2)}
_HEADS = {"width": (128, 256, 384, 512, 768), "heads": (2, 4, 8)}
_WORDS = {"vocabulary": (1000, 4096, 8192), "training": (False, True)}

SIZES: dict[str, dict[str, tuple[Any, ...]]] = {
    "resnet": _IMAGES | {"depths": _DEPTHS, "width": (16, 32, 48, 64), "bottleneck": (False, True)},
    "resnet_v2": _IMAGES | {"depths": _DEPTHS, "width": (16, 32, 48, 64)},
    "mobilenet": _IMAGES | {"width": (0.25, 0.5, 0.75, 1.0)},
    "unet": {
        **{"batch": _BATCH, "image": (16, 32), "width": (32, 64, 96, 128), "multiples": ((1, 2), (1, 1), (1, 2, 2))},
        **{"blocks": (1,), "attention": (8, 16), "training": (False, True)},
    },
    "convdraw": {"batch": _BATCH, "steps": (4, 8), "hidden": (32, 64, 96, 128), "training": (False, True)},
    "transformer": _TOKENS | _HEADS | {"hidden": (512, 1024, 1536, 2048), "vocabulary": (1000, 4096, 8192)},
    "gpt2": _TOKENS | _HEADS | _WORDS,
    "gpt2-decode": _TOKENS | _HEADS | {"vocabulary": (1000, 4096, 8192), "training": (False,), "decode": (True,)},
    "bert": _TOKENS | _HEADS | _WORDS,
    "translate": _TOKENS | _HEADS | _WORDS,
    "moe": _TOKENS | _HEADS | _WORDS | {"depth": (2,), "experts": (4, 8, 16), "hidden": (512, 1024, 2048)},
    "nmt": _TOKENS | _WORDS | {"sequence": (10, 20, 40), "depth": (2,), "units": (128, 256, 512, 768)},
    "rnn": _TOKENS | _WORDS | {"sequence": (16, 32, 64), "hidden": (128, 256, 512, 1024)},
    "wavernn": {
        **{"batch": (1, 4, 8, 16), "frames": (2, 4, 8), "units": (128, 256, 512, 896), "bands": (40, 80)},
        **{"training": (False, True)},
    },
    "dlrm": {
        **{"batch": (64, 128, 256, 512, 1024, 2048), "data": ("kaggle", "terabyte"), "lookups": (1, 2, 4)},
        **{"bottom": ((512, 256, 128), (256, 64), (128, 128)), "top": ((1024, 512, 256), (512, 256), (256,))},
        **{"largest": (1000, 10_000), "training": (False, True)},
    },
}
"""Sizes of each family of models that compile within seconds."""
FLAGS = (
    *("xla_tpu_dot_dot_fusion", "xla_jf_enable_multi_output_fusion", "xla_tpu_rwb_fusion"),
    *("xla_jf_conv_input_fusion", "xla_jf_conv_output_fusion"),
)
"""Flags that a variant may turn off: which operations the compiler fuses."""
_FIRST = 1000
"""Number of the first generated program here; the constants of the hardware model were fitted on some below it."""
_BARRIERS, _OFF = (0.0, 0.1, 0.3, 0.6), 0.2


def names(count: int) -> list[str]:
    """Return the names of so many programs of each family."""
    from ..tensor_compiler.calibration.programs import FAMILIES

    return [f"{family}~{number}" for number in range(count) for family in (*SIZES, *FAMILIES)]


def program(name: str) -> Program:
    """Return the program `family~number`: a model, or operations of `calibration.programs`; imports JAX."""
    from ..tensor_compiler.calibration.programs import generated
    from ..tensor_compiler.models import build_model

    family, _, number = name.partition("~")
    if family not in SIZES:
        return generated(f"{family}-{_FIRST + int(number)}")
    rng = _rng(name)
    drawn = {size: values[rng.integers(len(values))] for size, values in SIZES[family].items()}
    return build_model(family.partition("-")[0], **drawn)


def variant(name: str, function: Any) -> tuple[Any, dict[str, str | bool]]:  # noqa: ANN401 - any JAX function
    """Return a program's variant, and the flags to compile it with; the name of the program itself ends with `.0`."""
    from ..xla_tpu.marks import rewritten

    if name.endswith(".0"):
        return function, {}
    rng = _rng(f"variant {name}")
    flags: dict[str, str | bool] = {flag: "false" for flag in FLAGS if rng.random() < _OFF}
    share = _BARRIERS[rng.integers(len(_BARRIERS))]
    return rewritten(function, _Share(name, share)), flags


class _Share(Container[str]):
    """A random share of all names."""

    def __init__(self, seed: str, share: float) -> None:
        self._seed, self._share = seed, share

    def __contains__(self, name: object) -> bool:
        return zlib.crc32(f"{self._seed} {name}".encode()) < self._share * 2**32


def _rng(name: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(name.encode()))


def of_name(name: str, machine: str) -> tuple[str, dict[str, float]]:
    """Return what `calibration.compiler.compiled` does for a variant of a program, such as `gpt2~17.2`."""
    base, _, _ = name.partition(".")
    function, arguments = program(base)
    changed, flags = variant(name, function)
    return compiled(changed, arguments, machine, flags)


if __name__ == "__main__":
    answer(of_name)
