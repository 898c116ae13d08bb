"""What is a policy that learned on some programs worth on others, at 20, 50 and 200 evaluations?

The tasks are the first, the second, then the third variant of each model that the policy has not seen, in the order of
the catalogue, until there are 20. Left out are variants with more than 2,500 decisions of fusion, or on which `graybox`
gains less than .3 % with 200 evaluations. The fresh ones are all other variants that this rule lets pass.
"""

from functools import partial
from pathlib import Path

from bbo_suite import Plan, Search

HERE = Path(__file__).parent
UNSEEN = (
    *("resnet-50-infer-b1", "mobilenet-0.5-infer-b1", "unet-32-infer-b1", "gpt2-124m-prefill-b1-s128"),
    *("bert-base-infer-b1-s128", "nmt-2layer-train-b256-s80", "wavernn-train-b32-f4"),
    *("dlrm-terabyte-train-b65536", "rnn-4layer-train-b64-s128"),
    *("resnet-50-infer-b128", "mobilenet-1.0-infer-b1", "unet-32-infer-b256", "gpt2-124m-prefill-b1-s1024"),
    *("bert-base-infer-b1-s512", "wavernn-2048-train-b64-f4", "dlrm-terabyte-infer-b2048", "rnn-large-infer-b256-s1"),
    *("resnet-101-infer-b1", "mobilenet-1.0-infer-b64", "gpt2-124m-prefill-b16-s512"),
)
FRESH = (
    *("resnet-101-infer-b128", "mobilenet-1.4-infer-b32", "gpt2-124m-decode-b32-s512", "bert-base-infer-b8-s384"),
    *("nmt-4layer-train-b128-s50", "dlrm-kaggle-infer-b8192", "resnet-152-infer-b1", "gpt2-124m-decode-b128-s256"),
    *("bert-base-infer-b128-s64", "resnet-152-infer-b128", "gpt2-355m-prefill-b8-s1024", "bert-large-infer-b1-s384"),
    *("resnet-18-train-b64", "gpt2-355m-prefill-b1-s256", "bert-large-infer-b32-s384", "resnet-34-infer-b8"),
    *("gpt2-355m-decode-b64-s512", "bert-large-infer-b64-s128", "bert-tiny-train-b256-s128"),
    "bert-tiny-infer-b64-s128",
)
COSTS_ONLY = ["random", "annealing", "evolution", "mbo", "portfolio"]
TRAINED = {"rl, trained": Search("rl", {"pretrained": str(HERE / "policy.eqx")})}
PARTS = HERE / "parts.npz"
"""Costs of parts of four programs, for `graybox, trained`; README.md has the command that makes it."""
TASKS = {
    "fusion": [f"fusion/{name}" for name in UNSEEN],
    "fusion, fresh": [f"fusion/{name}" for name in FRESH],
    "layout": [f"layout/{name}" for name in UNSEEN],
    "joint": [f"joint/{name}" for name in UNSEEN[:9]],
}
"""Joint tasks are of the first variants alone: a run of `graybox` takes up to a minute there."""

runs = partial(Plan, budgets=(20, 50, 200), seeds=3, batch=20, plain_seeds=True)

PLANS = [
    runs(TASKS["fusion"] + TASKS["fusion, fresh"], [*COSTS_ONLY, "local", "graybox"]),
    runs(TASKS["fusion"] + TASKS["fusion, fresh"] + TASKS["layout"], TRAINED),
    runs(TASKS["fusion"], ["rl"]),
    runs(TASKS["layout"], [*COSTS_ONLY, "local"]),
    runs(TASKS["joint"], [*COSTS_ONLY, "local", "joint", "graybox"], seeds=1),
    runs(TASKS["joint"], TRAINED, seeds=1),
]
if PARTS.exists():
    PLANS.append(runs(TASKS["fusion"], {"graybox, trained": Search("graybox", {"pretrained": str(PARTS)})}))
