"""The figure that the suite goes back to: the mean speedup of fusion, by five strategies after 10,000 evaluations.

`graybox`, after 200, stands beside them. Programs were chosen by the rule in README.md, with the runs of seed 100.
"""

from bbo_suite import Plan

PILOT = 100
"""The seed of the runs that chose the programs."""
HEADROOM = (
    *("resnet-101-infer-b128", "resnet-34-train-b64", "mobilenet-1.0-train-b128-i160"),
    *("mobilenet-1.4-infer-b32", "gpt2-124m-decode-b1-s1024", "bert-base-infer-b128-s64"),
)
NOT_TAKEN = (
    *("dlrm-kaggle-adagrad-b2048", "resnet50", "nmt-2layer-train-b256-s80", "resnet-50-infer-b1"),
    *("dlrm-terabyte-train-b4096-l10", "bert-tiny-infer-b64-s128"),
)


def runs(programs: tuple[str, ...], strategies: list[str], seeds: int | list[int], budget: int = 10_000) -> Plan:
    """Return the plan of some programs."""
    return Plan([f"fusion/{name}" for name in programs], strategies, budgets=(budget,), seeds=seeds, batch=20)


PLANS = [
    runs((*HEADROOM, *NOT_TAKEN), ["annealing", "evolution", "local"], [PILOT]),
    runs(HEADROOM, ["exhaustive", "annealing", "evolution", "mbo", "rl"], 10),
    runs(HEADROOM, ["graybox"], 10, 200),
]
