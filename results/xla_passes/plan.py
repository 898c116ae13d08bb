"""What is the order of XLA's passes worth, with 200 and with 1,000 evaluations?"""

from bbo_suite import Plan

FIRST = [f"xla-passes/{name}" for name in ("gpt2-l1", "bert-l1", "resnet-10")]
MODELS = ("bert", "translate", "nmt", "resnet_v2", "convdraw")
UNSEEN = [f"xla-passes/{model}-l1{kind}" for model in MODELS for kind in ("-infer", "")]
PLANS = [
    Plan(FIRST, ["random", "annealing", "evolution", "mbo"], budgets=(200,), batch=10),
    Plan(
        [*UNSEEN, "xla-passes/gpt2-l1"],
        ["random", "annealing", "evolution", "graybox"],
        budgets=(1_000,),
        batch=10,
        cutoffs=(20, 50, 200),
        plain_seeds=True,
    ),
]
