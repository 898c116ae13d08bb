"""The real half of the study: the same questions on compilers and on recorded hardware, none of it simulated.

The programs are the first ones of a family by a digest of their names; for inlining, of those in its own plan. Of the
recorded spaces four lie in `results/recorded/spaces`.
"""

import runpy
from functools import partial
from pathlib import Path

from live import programs

from bbo_suite import Plan

RESULTS = Path(__file__).parent.parent
BUDGETS = (50, 200, 1_000)
TRITON = ("softmax-8192x4096", *runpy.run_path(str(RESULTS / "recorded" / "triton.py"))["KERNELS"])
RECORDED = [
    *runpy.run_path(str(RESULTS / "recorded" / "plan.py"))["SPACES"],
    *(f"recorded/triton-{name}" for name in TRITON),
]
LLVM, GCC, XLA = programs("llvm", 5), programs("gcc", 4), programs("xla-passes", 3, "-l1-infer")
INLINING = programs("inlining", 6, among=runpy.run_path(str(RESULTS / "inlining" / "plan.py"))["OURS"])
COSTS = ["random", "annealing", "evolution", "mbo", "nevergrad:DiscreteLenglerOnePlusOne"]
OPENTUNER = ["opentuner:AUCBanditMetaTechniqueA"]

runs = partial(Plan, seeds=3, batch=10, cutoffs=(20, 50, 100, 200, 500), plain_seeds=True)

PLANS = [
    runs(RECORDED, COSTS, BUDGETS),
    runs(LLVM, COSTS, BUDGETS),
    runs(INLINING, [*COSTS, "local", "published:inlining-tuner", "graybox"], BUDGETS[:2]),
    runs(GCC, COSTS, BUDGETS[:2]),
    runs(XLA, COSTS, BUDGETS[:2]),
    runs(GCC, COSTS, BUDGETS[2:]),
    runs(XLA, COSTS, BUDGETS[2:]),
    runs(RECORDED, OPENTUNER, BUDGETS),
    runs([*LLVM, *GCC, *XLA, *INLINING], OPENTUNER, BUDGETS[:2]),
]
