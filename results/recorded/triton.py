"""How close do strategies come to the optimum of Triton's kernels on an H100, and how soon? The spaces are shipped."""

from bbo_suite import Plan

KERNELS = ("matmul-4096", "matmul-512x8192x1024", "matmul-16x4096x14336", "attention-32x4096x128", "softmax-65536x1000")
OURS = ["random", "annealing", "evolution", "mbo", "local"]
PUBLISHED = ["published:lfbo", "published:hybrid-vndx", "published:citroen"]
PEERS = ["nevergrad:DiscreteLenglerOnePlusOne", "optuna:TPESampler"]

PLAN = Plan(
    [f"recorded/triton-{name}" for name in KERNELS],
    [*OURS, *PUBLISHED, *PEERS],
    budgets=(200,),
    seeds=10,
    batch=10,
    cutoffs=(20, 50, 100),
)
