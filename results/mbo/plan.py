"""What do searches that know costs only reach: `mbo` on nine families, and many changes at once on joint tasks?"""

from functools import partial

from bbo_suite import Plan

UNSEEN = (
    *("joint/rnn-infer-b512-s64", "joint/wavernn-infer-b1-f80", "joint/nmt-decode-b1-s25"),
    *("joint/unet-32-infer-b1", "joint/mobilenet-1.0-infer-b1", "joint/resnet-50-infer-b1"),
    *("joint/bert-base-infer-b1-s128", "joint/gpt2-124m-decode-b1-s1024", "joint/transformer"),
    "joint/moe-switch-base-infer-b8-s512",
)
FAMILIES = (
    *("fusion/resnet-50-infer-b1", "tile/resnet-101-infer-b1", "flags/gpt2-124m-decode-b128-s256"),
    *("kernel/bert-large-infer-b1-s384", "layout/nmt-4layer-decode-b512-s80", "ordering/100x60-a"),
    *("ehrlich/128x32-a", "sharding/mobilenet", "scratchpad/transition@4MiB@banks"),
)
"""A task of each family: the least by digest on which no design was chosen and that no study had reported."""
SEARCHES = ["annealing", "evolution", "mbo"]
PEER = "nevergrad:DiscreteLenglerOnePlusOne"

runs = partial(Plan, batch=20, cutoffs=(200, 1_000), plain_seeds=True, digits=5)


PLANS = [
    runs(FAMILIES, [*SEARCHES, PEER, "optuna:NSGAIISampler"], budgets=(1_000,), seeds=10),
    runs(FAMILIES, SEARCHES, seeds=10),
    runs(UNSEEN, ["annealing", "evolution", "local", PEER], seeds=3),
    runs(UNSEEN, ["joint"]),
]
