"""How much better than random search are strategies, until that is near the optimum? Four spaces lie in `spaces/`."""

from bbo_suite import Plan

FILES = ("convolution_milo-A100_T4", "dedispersion_milo-A100_T4", "unused-kt_gemm-RTX_3090")
PUBLIC = [f"recorded:results/recorded/spaces/{name}.json.gz" for name in FILES]
COULOMB = ["recorded:results/recorded/spaces/coulomb_2080_full_search_space.json.gz"]
KERNELS = ("matmul-4096", "matmul-512x8192x1024", "matmul-16x4096x14336", "attention-32x4096x128")
TRITON = [f"recorded/triton-{name}" for name in (*KERNELS, "softmax-65536x1000", "softmax-8192x4096")]
STRATEGIES = ["random", "annealing", "evolution", "mbo", "local", "published:hybrid-vndx", "pymoo:GA"]

PLANS = [
    Plan(COULOMB, STRATEGIES, budgets=(40,), seeds=5, batch=10, cutoffs=(20,)),
    Plan(TRITON, STRATEGIES, budgets=(130,), seeds=5, batch=10, cutoffs=(20, 50, 100)),
    Plan(PUBLIC, STRATEGIES, budgets=(1_000,), seeds=5, batch=10, cutoffs=(20, 50, 100, 200, 500)),
]
"""Budgets are more than random search needs on any of their spaces."""
