"""Variants of the language, speech and recommendation models."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from . import Program, _build

_LARGE = {"depth": 24, "width": 1024, "heads": 16}  # BERT large and GPT-2 of 355 million parameters
_BIG = {"width": 1024, "heads": 16}  # the big Transformer of Vaswani et al.
_SWITCH = {"depth": 12, "experts": 32}
_KAGGLE = {"data": "kaggle", "bottom": (512, 256, 64, 16), "top": (512, 256)}

SEQUENCE: dict[str, Callable[..., Program]] = {
    "gpt2-124m-train-b8-s1024": partial(_build, "gpt2"),
    "gpt2-124m-train-b1-s1024": partial(_build, "gpt2", batch=1),
    "gpt2-124m-train-b16-s256": partial(_build, "gpt2", batch=16, sequence=256),
    "gpt2-124m-train-b64-s128": partial(_build, "gpt2", batch=64, sequence=128),
    "gpt2-124m-prefill-b1-s128": partial(_build, "gpt2", batch=1, sequence=128, training=False),
    "gpt2-124m-prefill-b1-s1024": partial(_build, "gpt2", batch=1, training=False),
    "gpt2-124m-prefill-b16-s512": partial(_build, "gpt2", batch=16, sequence=512, training=False),
    "gpt2-124m-decode-b1-s1024": partial(_build, "gpt2", batch=1, training=False, decode=True),
    "gpt2-124m-decode-b32-s512": partial(_build, "gpt2", batch=32, sequence=512, training=False, decode=True),
    "gpt2-124m-decode-b128-s256": partial(_build, "gpt2", batch=128, sequence=256, training=False, decode=True),
    "gpt2-355m-train-b4-s1024": partial(_build, "gpt2", batch=4, **_LARGE),
    "gpt2-355m-train-b16-s256": partial(_build, "gpt2", batch=16, sequence=256, **_LARGE),
    "gpt2-355m-prefill-b8-s1024": partial(_build, "gpt2", training=False, **_LARGE),
    "gpt2-355m-prefill-b1-s256": partial(_build, "gpt2", batch=1, sequence=256, training=False, **_LARGE),
    "gpt2-355m-decode-b1-s1024": partial(_build, "gpt2", batch=1, training=False, decode=True, **_LARGE),
    "gpt2-355m-decode-b64-s512": partial(_build, "gpt2", batch=64, sequence=512, training=False, decode=True, **_LARGE),
    "bert-base-train-b32-s128": partial(_build, "bert"),
    "bert-base-train-b256-s128": partial(_build, "bert", batch=256),
    "bert-base-train-b8-s512": partial(_build, "bert", batch=8, sequence=512),
    "bert-base-train-b32-s512": partial(_build, "bert", sequence=512),
    "bert-base-infer-b1-s128": partial(_build, "bert", batch=1, training=False),
    "bert-base-infer-b1-s512": partial(_build, "bert", batch=1, sequence=512, training=False),
    "bert-base-infer-b8-s384": partial(_build, "bert", batch=8, sequence=384, training=False),
    "bert-base-infer-b128-s64": partial(_build, "bert", batch=128, sequence=64, training=False),
    "bert-large-train-b16-s128": partial(_build, "bert", batch=16, **_LARGE),
    "bert-large-train-b64-s128": partial(_build, "bert", batch=64, **_LARGE),
    "bert-large-train-b4-s512": partial(_build, "bert", batch=4, sequence=512, **_LARGE),
    "bert-large-infer-b1-s384": partial(_build, "bert", batch=1, sequence=384, training=False, **_LARGE),
    "bert-large-infer-b32-s384": partial(_build, "bert", sequence=384, training=False, **_LARGE),
    "bert-large-infer-b64-s128": partial(_build, "bert", batch=64, training=False, **_LARGE),
    "bert-tiny-train-b256-s128": partial(_build, "bert", batch=256, depth=2, width=128, heads=2),
    "bert-tiny-infer-b64-s128": partial(_build, "bert", batch=64, depth=2, width=128, heads=2, training=False),
    "translate-base-train-b64-s64": partial(_build, "translate"),
    "translate-base-train-b256-s32": partial(_build, "translate", batch=256, sequence=32),
    "translate-base-train-b16-s256": partial(_build, "translate", batch=16, sequence=256),
    "translate-base-encode-b1-s64": partial(_build, "translate", batch=1, training=False),
    "translate-base-encode-b64-s64": partial(_build, "translate", training=False),
    "translate-base-decode-b1-s64": partial(_build, "translate", batch=1, training=False, decode=True),
    "translate-base-decode-b64-s64": partial(_build, "translate", training=False, decode=True),
    "translate-base-decode-b512-s128": partial(
        _build, "translate", batch=512, sequence=128, training=False, decode=True
    ),
    "translate-big-train-b32-s64": partial(_build, "translate", batch=32, **_BIG),
    "translate-big-train-b128-s64": partial(_build, "translate", batch=128, **_BIG),
    "translate-big-train-b8-s256": partial(_build, "translate", batch=8, sequence=256, **_BIG),
    "translate-big-encode-b16-s128": partial(_build, "translate", batch=16, sequence=128, training=False, **_BIG),
    "translate-big-decode-b4-s128": partial(
        _build, "translate", batch=4, sequence=128, training=False, decode=True, **_BIG
    ),
    "translate-big-decode-b128-s64": partial(_build, "translate", batch=128, training=False, decode=True, **_BIG),
    "nmt-train-b128-s50": partial(_build, "nmt"),
    "nmt-train-b32-s25": partial(_build, "nmt", batch=32, sequence=25),
    "nmt-train-b512-s50": partial(_build, "nmt", batch=512),
    "nmt-4layer-train-b128-s50": partial(_build, "nmt", depth=4),
    "nmt-2layer-train-b256-s80": partial(_build, "nmt", batch=256, sequence=80, depth=2, units=512),
    "nmt-encode-b1-s25": partial(_build, "nmt", batch=1, sequence=25, training=False),
    "nmt-encode-b128-s50": partial(_build, "nmt", training=False),
    "nmt-decode-b1-s25": partial(_build, "nmt", batch=1, sequence=25, training=False, decode=True),
    "nmt-decode-b128-s50": partial(_build, "nmt", training=False, decode=True),
    "nmt-4layer-decode-b512-s80": partial(_build, "nmt", batch=512, sequence=80, depth=4, training=False, decode=True),
    "wavernn-infer-b1-f80": partial(_build, "wavernn"),
    "wavernn-infer-b16-f80": partial(_build, "wavernn", batch=16),
    "wavernn-infer-b128-f400": partial(_build, "wavernn", batch=128, frames=400),
    "wavernn-384-infer-b1-f80": partial(_build, "wavernn", units=384),
    "wavernn-2048-infer-b8-f80": partial(_build, "wavernn", batch=8, units=2048),
    "wavernn-train-b32-f4": partial(_build, "wavernn", batch=32, frames=4, training=True),
    "wavernn-train-b128-f8": partial(_build, "wavernn", batch=128, frames=8, training=True),
    "wavernn-2048-train-b64-f4": partial(_build, "wavernn", batch=64, frames=4, units=2048, training=True),
    "dlrm-terabyte-train-b2048": partial(_build, "dlrm"),
    "dlrm-terabyte-train-b65536": partial(_build, "dlrm", batch=65536),
    "dlrm-terabyte-adagrad-b8192": partial(_build, "dlrm", batch=8192, adagrad=True),
    "dlrm-terabyte-train-b4096-l10": partial(_build, "dlrm", batch=4096, lookups=10),
    "dlrm-terabyte-infer-b1": partial(_build, "dlrm", batch=1, training=False),
    "dlrm-terabyte-infer-b2048": partial(_build, "dlrm", training=False),
    "dlrm-terabyte-infer-b512-l32": partial(_build, "dlrm", batch=512, lookups=32, training=False),
    "dlrm-kaggle-train-b128": partial(_build, "dlrm", batch=128, **_KAGGLE),
    "dlrm-kaggle-train-b16384": partial(_build, "dlrm", batch=16384, **_KAGGLE),
    "dlrm-kaggle-adagrad-b2048": partial(_build, "dlrm", adagrad=True, **_KAGGLE),
    "dlrm-kaggle-infer-b64": partial(_build, "dlrm", batch=64, training=False, **_KAGGLE),
    "dlrm-kaggle-infer-b8192": partial(_build, "dlrm", batch=8192, training=False, **_KAGGLE),
    "moe-switch-base-train-b8-s512": partial(_build, "moe"),
    "moe-switch-base-train-b32-s128": partial(_build, "moe", batch=32, sequence=128),
    "moe-switch-base-infer-b8-s512": partial(_build, "moe", training=False),
    "moe-switch-base-infer-b1-s2048": partial(_build, "moe", batch=1, sequence=2048, training=False),
    "moe-32-train-b16-s512": partial(_build, "moe", batch=16, **_SWITCH),
    "moe-32-train-b64-s128": partial(_build, "moe", batch=64, sequence=128, **_SWITCH),
    "moe-32-infer-b32-s512": partial(_build, "moe", batch=32, training=False, **_SWITCH),
    "moe-8-train-b8-s1024": partial(_build, "moe", sequence=1024, depth=12, experts=8),
    "moe-8-infer-b1-s1024": partial(_build, "moe", batch=1, sequence=1024, depth=12, experts=8, training=False),
    "moe-large-64-infer-b4-s512": partial(
        _build, "moe", batch=4, depth=12, width=1024, heads=16, hidden=4096, experts=64, training=False
    ),
    "rnn-medium-train-b20-s35": partial(_build, "rnn", batch=20, sequence=35, hidden=650, vocabulary=10_000),
    "rnn-large-train-b128-s35": partial(_build, "rnn", batch=128, sequence=35, hidden=1500, vocabulary=10_000),
    "rnn-4layer-train-b64-s128": partial(_build, "rnn", batch=64, sequence=128, depth=4, hidden=1024),
    "rnn-infer-b512-s64": partial(_build, "rnn", training=False),
    "rnn-large-infer-b1-s35": partial(
        _build, "rnn", batch=1, sequence=35, hidden=1500, vocabulary=10_000, training=False
    ),
    "rnn-large-infer-b256-s1": partial(
        _build, "rnn", batch=256, sequence=1, hidden=1500, vocabulary=10_000, training=False
    ),
}
