"""The searches of compilers and tuners that came after 2021, and the sources' own MBO, against ours.

The recorded spaces are those of `results/recorded`, the tasks four of `plan.py`, and GCC's flags are there because
GroupTuner was made for them. Settings are as published, so no task chose one. A search that does not look at its
budget runs once, with the longest, and is read at the others.
"""

from functools import partial

from bbo_suite import Plan, Search

FILES = (
    "convolution_milo-A100_T4.json.gz",
    "dedispersion_milo-A100_T4.json.gz",
    "unused-kt_gemm-RTX_3090.json.gz",
    "coulomb_2080_full_search_space.json.gz",
)
SPACES = [f"recorded:results/recorded/spaces/{name}" for name in FILES]
TASKS = ["fusion/bert-tiny-infer-b64-s128", "kernel/rnn-infer-b512-s64", "scratchpad/bert@2MiB", "ordering/40x50-a"]
SCHEDULED = ["annealing", "evolution", "mbo", "published:grouptuner"]
REPAIRED = {"published:hybrid-vndx repaired": Search("published:hybrid-vndx", {"repaired": True})}
RIVALS = {name: name for name in ("published:lfbo", "published:hybrid-vndx")} | REPAIRED
MBO = {"published:dyna-ppo-mbo": "published:dyna-ppo-mbo"}
RANDOM = {"random": "random"}

runs = partial(Plan, batch=20, plain_seeds=True, digits=4)

PLANS = [
    runs(SPACES, SCHEDULED, budgets=(100, 200, 400), seeds=10),
    runs(SPACES, RANDOM | RIVALS | MBO, budgets=(400,), seeds=10, cutoffs=(100, 200)),
    runs(TASKS, RIVALS, budgets=(1_000,), seeds=3, cutoffs=(200,)),
    runs(TASKS, SCHEDULED, budgets=(200, 1_000), seeds=3),
    runs(["gcc/huffman"], ["annealing", "published:grouptuner"], budgets=(100,), seeds=3),
]
