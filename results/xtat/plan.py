"""XTAT's three claims on the simulated compiler, and what tuning all four passes gains: schedules of equal budgets."""

from bbo_suite import Plan, Search

MODELS = (
    *("convdraw-t16-train-b64", "wavernn-train-b32-f4", "nmt-train-b128-s50", "ssd-resnet34-train-b8"),
    *("rnn-large-train-b128-s35", "resnet-50-train-b32", "resnet_v2-50-train-b32", "translate-base-train-b64-s64"),
    *("bert-base-infer-b8-s384", "dlrm-terabyte-train-b2048", "unet-32-train-b32", "moe-switch-base-infer-b8-s512"),
)
SCHEDULES = {
    "graph-joint": "layout+fusion: annealing",
    "graph-sequential": "layout: annealing; fusion: annealing",
    "kernel-joint": "tile+flags: annealing",
    "kernel-sequential": "tile: exhaustive; flags: exhaustive",
    "kernel-sequential-annealed": "tile: annealing; flags: annealing",
}
ALL = {"schedule": "layout+fusion+tile+flags: annealing", "stints": 10}
ARMS = {
    "default": Search("joint"),
    **{name: Search("joint", {"schedule": schedule}) for name, schedule in SCHEDULES.items()},
    "all-with-store": Search("joint", {**ALL, "store": True}),
    "all-without-store": Search("joint", {**ALL, "store": False}),
}

PLAN = Plan([f"joint/{model}" for model in MODELS], ARMS, budgets=(5_000,), seeds=10)
