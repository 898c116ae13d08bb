"""How close do strategies come to the optimum of recorded GPU spaces, in `spaces/` beside this file, and how soon?"""

from bbo_suite import Plan

FILES = (
    "convolution_milo-A100_T4.json.gz",
    "dedispersion_milo-A100_T4.json.gz",
    "unused-kt_gemm-RTX_3090.json.gz",
    "coulomb_2080_full_search_space.json.gz",
)
SPACES = [f"recorded:results/recorded/spaces/{name}" for name in FILES]
OURS = ["random", "annealing", "evolution", "mbo", "portfolio", "local"]
PEERS = ["pymoo:GA", "nevergrad:DiscreteLenglerOnePlusOne"]
PLAN = Plan(SPACES, OURS + PEERS, budgets=(1_600,), seeds=10, batch=10, cutoffs=(25, 50, 100, 200, 400, 800))
