"""What does a search on a model gain when only its best few candidates are evaluated? And costs of parts at XLA:TPU?"""

from bbo_suite import Plan, Search

PROGRAMS = ("rnn-medium-train-b20-s35", "translate-base-train-b64-s64")
TASKS = [f"{family}/{program}" for program in PROGRAMS for family in ("tile", "fusion", "joint")]
SCREENS = {
    f"screened:annealing, {model}": Search("screened:annealing", {"model": model, "keep": 30, "candidates": 2_000})
    for model in ("estimate", "learned")
}
PLANS = [
    Plan(
        TASKS,
        {"annealing": "annealing", "graybox": "graybox", **SCREENS},
        budgets=(30,),
        seeds=10,
        batch=10,
        cutoffs=(1, 10),
        plain_seeds=True,
    ),
    Plan(
        ["xla-tpu/attention", "xla-tpu/dlrm"],
        ["annealing", "graybox"],
        budgets=(100, 300),
        seeds=2,
        batch=10,
        cutoffs=(30, 100),
        plain_seeds=True,
    ),
]
