"""Small programs of 1, 2 and 6 layers: their sizes hardly change what a compiler's passes can do, the layers do.

`gpt2-l2` is a training step, `gpt2-l2-infer` inference. A layer of a ResNet is a block in each of two stages, one of
ConvDraw an unrolled step, one of DLRM a layer of both networks. NMT has one more layer, since its first differs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from . import Program, _build

LAYERS = (1, 2, 6)
_SIZES: dict[str, Callable[[int], dict[str, object]]] = {
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
    f"{model}-l{layers}{suffix}": partial(_build, model, **sizes(layers), training=not suffix)
    for model, sizes in _SIZES.items()
    for layers in LAYERS
    for suffix in ("", "-infer")
}
"""All of them by name: ten models in training and inference."""
