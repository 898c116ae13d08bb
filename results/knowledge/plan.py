"""What are costs of parts worth? `graybox` after few evaluations against strategies without them after many.

Of fusion, the first program of each model and size that `results/landscape` found to have 100 to 4,000 decisions and a
gain of 0.2 % or more. No setting of `graybox` was chosen on any of these models.
"""

from bbo_suite import Plan

FUSION = [
    f"fusion/{name}"
    for name in (
        *("resnet50", "transformer", "resnet-50-infer-b1", "resnet-101-infer-b1", "resnet-152-infer-b128"),
        *("resnet-34-train-b64", "mobilenet-0.5-infer-b1", "mobilenet-1.0-infer-b1", "mobilenet-1.4-infer-b32"),
        *("unet-32-infer-b1", "unet-64-infer-b16", "unet-256-infer-b1", "gpt2-124m-decode-b128-s256"),
        *("bert-base-infer-b1-s128", "bert-large-infer-b1-s384", "bert-tiny-train-b256-s128"),
        *("nmt-2layer-train-b256-s80", "wavernn-infer-b128-f400", "moe-32-infer-b32-s512", "rnn-4layer-train-b64-s128"),
    )
]
DRAWN = ["fusion/resnet50", "fusion/transformer", "fusion/unet-256-infer-b1"]
KERNELS = [
    f"{family}/{name}"
    for family in ("tile", "flags")
    for name in ("bert-tiny-infer-b64-s128", "mobilenet-1.4-infer-b32", "unet-256-infer-b1", "bert-base-infer-b1-s128")
]
SMALL_LAYOUT = "layout/bert-tiny-infer-b64-s128"
LAYOUTS = [
    SMALL_LAYOUT,
    *("layout/mobilenet-1.4-infer-b32", "layout/bert-tiny-train-b256-s128", "layout/unet-32-infer-b1"),
]
JOINT = ["joint/bert-tiny-infer-b64-s128", "joint/mobilenet-1.4-infer-b32", "joint/resnet-50-infer-b1"]
LARGE_JOINT = "joint/unet-32-infer-b1"
COMPILERS = [f"llvm/{name}" for name in ("sort", "huffman", "tree")] + [
    f"gcc/{name}" for name in ("sort", "huffman", "hash")
]
TPU = ["xla-tpu/attention", "xla-tpu/dlrm"]

PLANS = [
    Plan(FUSION, ["graybox"], budgets=(50, 200), seeds=10),
    Plan(FUSION, ["annealing"], budgets=(1_000, 10_000), seeds=10),
    Plan(FUSION, ["local"], budgets=(10_000,), seeds=10),
    Plan(DRAWN, ["annealing", "local", "mbo"], budgets=(50, 200), seeds=10),
    Plan(DRAWN, ["mbo"], budgets=(1_000,), seeds=10),
    Plan(DRAWN, ["local"], budgets=(1_000,), seeds=3),
    Plan(DRAWN, ["graybox"], budgets=(1_000, 10_000), seeds=3),
    Plan(DRAWN[:2], ["mbo"], budgets=(10_000,), seeds=1),
    Plan(KERNELS, ["graybox"], budgets=(200,), seeds=10),
    Plan(KERNELS, ["annealing", "local"], budgets=(10_000,), seeds=10),
    Plan(LAYOUTS, ["graybox"], budgets=(200,), seeds=3),
    Plan(LAYOUTS, ["annealing", "evolution", "local", "mbo"], budgets=(10_000,), seeds=3),
    Plan(JOINT, ["graybox"], budgets=(200, 1_000), seeds=3),
    Plan([LARGE_JOINT], ["graybox"], budgets=(200,), seeds=1),
    Plan([*JOINT, LARGE_JOINT], ["joint"], budgets=(1_000, 10_000), seeds=10),
    Plan(COMPILERS, ["graybox"], budgets=(50, 200), seeds=3),
    Plan(COMPILERS, ["annealing"], budgets=(300, 1_000), seeds=3),
    Plan(TPU, ["graybox"], budgets=(50, 200), seeds=1),
    Plan(TPU, ["annealing"], budgets=(300, 1_000), seeds=1),
]
