"""Variants of the vision models."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from . import Program, _build

_RESNETS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}
_DDPM_LARGE = {"image": 256, "multiples": (1, 1, 2, 2, 4, 4)}

VISION: dict[str, Callable[..., Program]] = {
    # ResNet v1: 50, 101, 152 by bottlenecks, 18 and 34 by basic blocks.
    **{
        f"resnet-{depth}-train-b{batch}": partial(_build, "resnet", depths=depths, batch=batch, training=True)
        for depth, depths in _RESNETS.items()
        for batch in (32, 256)
    },
    **{
        f"resnet-{depth}-infer-b{batch}": partial(_build, "resnet", depths=depths, batch=batch)
        for depth, depths in _RESNETS.items()
        for batch in (1, 128)
    },
    **{
        f"resnet-{depth}-train-b64": partial(_build, "resnet", depths=depths, bottleneck=False, batch=64, training=True)
        for depth, depths in ((18, (2, 2, 2, 2)), (34, (3, 4, 6, 3)))
    },
    "resnet-34-infer-b8": partial(_build, "resnet", depths=(3, 4, 6, 3), bottleneck=False, batch=8),
    "resnet-50x2-train-b32": partial(_build, "resnet", width=128, batch=32, training=True),
    **{
        f"resnet_v2-{depth}-train-b{batch}": partial(_build, "resnet_v2", depths=depths, batch=batch)
        for depth, depths in _RESNETS.items()
        for batch in (32, 128)
    },
    **{
        f"resnet_v2-{depth}-infer-b{batch}": partial(_build, "resnet_v2", depths=depths, batch=batch, training=False)
        for depth, depths in _RESNETS.items()
        for batch in (1, 64)
    },
    "resnet_v2-50x2-train-b32": partial(_build, "resnet_v2", width=128, batch=32),
    **{
        f"mobilenet-{width}-train-b{batch}": partial(_build, "mobilenet", width=width, batch=batch)
        for width, batch in ((0.5, 128), (0.75, 96), (1.0, 16), (1.0, 256), (1.4, 64))
    },
    **{
        f"mobilenet-{width}-infer-b{batch}": partial(_build, "mobilenet", width=width, batch=batch, training=False)
        for width, batch in ((0.5, 1), (1.0, 1), (1.0, 64), (1.4, 32))
    },
    "mobilenet-1.0-train-b128-i160": partial(_build, "mobilenet", batch=128, image=160),
    **{
        f"ssd-{backbone}-train-b{batch}": partial(_build, "ssd", backbone=backbone, batch=batch)
        for backbone in ("resnet34", "vgg16")
        for batch in (8, 32)
    },
    **{
        f"ssd-{backbone}-infer-b{batch}": partial(_build, "ssd", backbone=backbone, batch=batch, training=False)
        for backbone in ("resnet34", "vgg16")
        for batch in (1, 32)
    },
    "ssd-resnet34-train-b128": partial(_build, "ssd", batch=128),
    "ssd-resnet34x2-train-b16": partial(_build, "ssd", width=128, batch=16),
    "ssd-vgg16-train-b16-i512": partial(_build, "ssd", backbone="vgg16", image=512, batch=16),
    "ssd-vgg16-infer-b8-c21": partial(_build, "ssd", backbone="vgg16", classes=21, batch=8, training=False),
    **{f"unet-32-train-b{batch}": partial(_build, "unet", batch=batch) for batch in (32, 128)},
    **{f"unet-32-infer-b{batch}": partial(_build, "unet", batch=batch, training=False) for batch in (1, 256)},
    "unet-32-w64-train-b128": partial(_build, "unet", width=64),
    "unet-32-w256-train-b64": partial(_build, "unet", width=256, batch=64),
    "unet-64-train-b32": partial(_build, "unet", image=64, multiples=(1, 2, 3, 4), blocks=3, batch=32),
    "unet-64-infer-b16": partial(_build, "unet", image=64, multiples=(1, 2, 3, 4), blocks=3, batch=16, training=False),
    **{f"unet-256-train-b{batch}": partial(_build, "unet", **_DDPM_LARGE, batch=batch) for batch in (8, 64)},
    **{
        f"unet-256-infer-b{batch}": partial(_build, "unet", **_DDPM_LARGE, batch=batch, training=False)
        for batch in (1, 32)
    },
    "convdraw-t32-train-b16": partial(_build, "convdraw", batch=16),
    "convdraw-t32-train-b64": partial(_build, "convdraw"),
    "convdraw-t16-train-b64": partial(_build, "convdraw", steps=16),
    "convdraw-t32-train-b32-i64": partial(_build, "convdraw", image=64, batch=32),
    "convdraw-t32-h256-train-b64": partial(_build, "convdraw", hidden=256, latent=16),
    "convdraw-t32u4-train-b64": partial(_build, "convdraw", unroll=4),
    "convdraw-t8u8-train-b64": partial(_build, "convdraw", steps=8, unroll=8),
    "convdraw-t16u16-train-b32": partial(_build, "convdraw", steps=16, unroll=16, batch=32),
    "convdraw-t32u32-train-b16-i64": partial(_build, "convdraw", image=64, unroll=32, batch=16),
    "convdraw-t32-infer-b64": partial(_build, "convdraw", training=False),
    "convdraw-t32u32-infer-b16": partial(_build, "convdraw", unroll=32, batch=16, training=False),
}
