"""The programs that the models learn from, the eight that only their scores are reported on, and the model of these."""

from __future__ import annotations

from pathlib import Path

SHIPPED = Path(__file__).parent / "model.npz"
"""The model with the name `learned`; results/models/learned has the commands that made it."""

HELD_OUT = {
    "ConvDRAW": "convdraw-t32-train-b16",
    "WaveRNN": "wavernn-infer-b16-f80",
    "NMT": "nmt-train-b32-s25",
    "SSD": "ssd-resnet34-train-b8",
    "RNN": "rnn-medium-train-b20-s35",
    "ResNet v1": "resnet-50-train-b32",
    "ResNet v2": "resnet_v2-50-train-b32",
    "Translate": "translate-base-train-b64-s64",
}
"""The programs of the catalogue that stand for those of Kaufman et al. 2021, by their names there."""

VALIDATION = (
    *("mobilenet-1.4-infer-b32", "unet-32-infer-b256", "gpt2-124m-decode-b32-s512", "transformer"),
    *("dlrm-kaggle-infer-b64", "moe-32-infer-b32-s512"),
)
"""Training programs on which designs are chosen; then the models are trained on these, too."""

TRAINING = (
    *("mobilenet", "mobilenet-0.5-train-b128", "mobilenet-1.0-train-b16", "mobilenet-1.0-infer-b64"),
    *("unet-32-train-b32", "unet-64-infer-b16", "unet-256-train-b8", "unet-256-infer-b1"),
    *("gpt2-124m-train-b1-s1024", "gpt2-124m-train-b64-s128", "gpt2-124m-prefill-b16-s512"),
    *("bert-base-train-b32-s128", "bert-base-infer-b8-s384", "bert-tiny-train-b256-s128", "bert-tiny-infer-b64-s128"),
    *("dlrm-terabyte-train-b2048", "dlrm-terabyte-infer-b2048", "dlrm-kaggle-train-b16384"),
    *("dlrm-kaggle-adagrad-b2048", "moe-switch-base-infer-b8-s512", "moe-8-train-b8-s1024"),
    *VALIDATION,
)
"""Programs of seven models, none of which is a variant of one that is held out."""
