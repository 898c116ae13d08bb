"""What a policy that learned on some programs is worth on others, at 20, 50 and 200 evaluations.

    python results/transfer/study.py --train                # policy.eqx, unless it is there
    python results/transfer/study.py [--seeds 3]            # runs.csv: only the runs that it lacks
    python results/transfer/study.py --tables               # wins.csv, transfer.png, no runs

One policy of `rl` and, for each family, parts for `graybox` are learned on programs of five models; the tasks are
programs of nine other models. Runs are made in this process, in batches of 20. README.md says what they show.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray

import bbo_suite
from bbo_strategies.graybox import GrayBoxOptions
from bbo_strategies.rl import ReinforcementOptions
from bbo_suite.core.evaluation import Evaluations, evaluate
from bbo_suite.core.versions import PinnedFile
from bbo_suite.files.cache import cache_folder
from bbo_suite.pretraining import pretrain
from bbo_suite.registry import Registry
from bbo_suite.store import seed_columns
from bbo_suite.testing import play, start

HERE = Path(__file__).parent
TRAINING = {
    "fusion": (
        *("resnet_v2-50-infer-b1", "resnet_v2-50-infer-b64", "resnet_v2-101-infer-b64", "resnet_v2-50-train-b128"),
        *("resnet_v2-50-train-b32", "resnet_v2-152-infer-b1", "ssd-resnet34-infer-b1", "ssd-resnet34-infer-b32"),
        *("ssd-vgg16-infer-b1", "ssd-vgg16-infer-b8-c21", "ssd-vgg16-train-b32", "ssd-vgg16-train-b16-i512"),
        *("ssd-resnet34-train-b8", "ssd-resnet34-train-b32", "translate-base-encode-b1-s64"),
        *("translate-base-encode-b64-s64", "translate-big-encode-b16-s128", "translate-base-decode-b1-s64"),
        *("translate-base-decode-b64-s64", "translate-base-decode-b512-s128", "translate-big-decode-b4-s128"),
        *("translate-big-decode-b128-s64", "convdraw-t32-infer-b64", "convdraw-t32u32-infer-b16"),
        *("convdraw-t32-train-b16", "convdraw-t32-h256-train-b64", "convdraw-t32u4-train-b64"),
        *("moe-8-infer-b1-s1024", "moe-32-infer-b32-s512", "moe-large-64-infer-b4-s512"),
        "moe-switch-base-infer-b8-s512",
    ),
    "layout": (
        *("resnet_v2-50-infer-b1", "resnet_v2-50-infer-b64", "resnet_v2-101-infer-b64", "ssd-resnet34-infer-b32"),
        *("ssd-vgg16-train-b32", "ssd-resnet34-train-b8", "moe-8-infer-b1-s1024", "convdraw-t32-train-b16"),
        *("translate-base-encode-b64-s64", "translate-base-train-b64-s64"),
    ),
    "joint": (
        *("resnet_v2-50-infer-b64", "ssd-resnet34-infer-b32", "ssd-vgg16-infer-b8-c21", "moe-8-infer-b1-s1024"),
        *("translate-base-encode-b64-s64", "translate-base-decode-b64-s64", "convdraw-t32-infer-b64"),
    ),
}
"""Of resnet_v2, ssd, translate, convdraw and moe."""
EACH = 30_000
"""Evaluations on each training problem, for `rl`."""
PARTS = tuple(
    f"fusion/{name}"
    for name in (
        *("resnet_v2-50-infer-b64", "ssd-resnet34-infer-b32", "translate-base-decode-b64-s64"),
        "convdraw-t32-infer-b64",
    )
)
"""Programs whose parts `graybox` measures before, as in results/knowledge."""
UNSEEN = (
    *("resnet-50-infer-b1", "mobilenet-0.5-infer-b1", "unet-32-infer-b1", "gpt2-124m-prefill-b1-s128"),
    *("bert-base-infer-b1-s128", "nmt-2layer-train-b256-s80", "wavernn-train-b32-f4"),
    *("dlrm-terabyte-train-b65536", "rnn-4layer-train-b64-s128"),
    *("resnet-50-infer-b128", "mobilenet-1.0-infer-b1", "unet-32-infer-b256", "gpt2-124m-prefill-b1-s1024"),
    *("bert-base-infer-b1-s512", "wavernn-2048-train-b64-f4", "dlrm-terabyte-infer-b2048", "rnn-large-infer-b256-s1"),
    *("resnet-101-infer-b1", "mobilenet-1.0-infer-b64", "gpt2-124m-prefill-b16-s512"),
)
"""The first, the second, then the third variant of each other model, in the order of the catalogue, until there are 20.

Left out are variants with more than 2,500 decisions of fusion, or on which `graybox` gains less than .3 % with 200
evaluations.
"""
FRESH = (
    *("resnet-101-infer-b128", "mobilenet-1.4-infer-b32", "gpt2-124m-decode-b32-s512", "bert-base-infer-b8-s384"),
    *("nmt-4layer-train-b128-s50", "dlrm-kaggle-infer-b8192", "resnet-152-infer-b1", "gpt2-124m-decode-b128-s256"),
    *("bert-base-infer-b128-s64", "resnet-152-infer-b128", "gpt2-355m-prefill-b8-s1024", "bert-large-infer-b1-s384"),
    *("resnet-18-train-b64", "gpt2-355m-prefill-b1-s256", "bert-large-infer-b32-s384", "resnet-34-infer-b8"),
    *("gpt2-355m-decode-b64-s512", "bert-large-infer-b64-s128", "bert-tiny-train-b256-s128"),
    "bert-tiny-infer-b64-s128",
)
"""All other variants that the rule lets pass; they were chosen when `rl` was finished."""
COSTS_ONLY = ("random", "annealing", "evolution", "mbo", "portfolio")
STRATEGIES = {
    "fusion": (*COSTS_ONLY, "local", "rl", "rl, trained", "graybox", "graybox, trained"),
    "fusion, fresh": (*COSTS_ONLY, "local", "rl, trained", "graybox"),
    "layout": (*COSTS_ONLY, "local", "rl, trained"),
    "joint": (*COSTS_ONLY, "local", "joint", "rl, trained", "graybox"),
}
TASKS = {
    "fusion": [f"fusion/{name}" for name in UNSEEN],
    "fusion, fresh": [f"fusion/{name}" for name in FRESH],
    "layout": [f"layout/{name}" for name in UNSEEN],
    "joint": [f"joint/{name}" for name in UNSEEN[:9]],
}
"""Joint tasks are of the first variants alone: a run of `graybox` takes up to a minute there."""
BUDGETS, BATCH = (20, 50, 200), 20
KEY = ["task", "strategy", "budget", "seed"]
FILE = HERE / "runs.csv"
"""A row for each task, strategy and budget: the median of its own time, and a column of gains for each seed."""
OURS = "rl, trained"


def learn() -> dict[str, Path]:
    """Return the files of what was learned by strategy; make those that are missing."""
    policy, parts = HERE / "policy.eqx", cache_folder("results-transfer") / "parts.npz"
    problems = [f"{family}/{name}" for family, names in TRAINING.items() for name in names]
    if not policy.exists():
        given = Registry(), "rl", problems, policy, EACH * len(problems), 0, ReinforcementOptions()
        pretrain(*given, lambda n, text: print(f"{n:,} {text}", flush=True))
    if not parts.exists():
        parts.parent.mkdir(parents=True, exist_ok=True)
        pretrain(Registry(), "graybox", PARTS, parts, 100 * len(PARTS), 0, GrayBoxOptions(), lambda *_: None)
    return {OURS: policy, "graybox, trained": parts}


def run(task_id: str, strategy: str, budget: int, seed: int, files: dict[str, Path]) -> dict[str, object]:
    """Return a row of the table: one run, and the processor time that the strategy itself took."""
    problem, spent, told = bbo_suite.problem(task_id), 0.0, list[Evaluations]()
    task, found = problem.task(True, None, True), Registry().strategy(strategy.partition(",")[0])

    def cost(configs: NDArray) -> NDArray[np.float64]:
        nonlocal spent
        begin = time.process_time()
        told.append(evaluate(problem, configs, found.uses_parts))
        spent += time.process_time() - begin
        return told[-1].values

    begin = time.process_time()
    options = {"pretrained": PinnedFile(str(files[strategy]))} if strategy in files else {}
    searcher = start(found, task.space, budget, seed, task.structure, task.default, **options)
    values = np.concatenate([values for _, values in play(searcher, cost, BATCH, lambda _: told[-1].parts)])
    own = (time.process_time() - begin - spent) / budget
    row = {"task": task_id, "strategy": strategy, "budget": budget, "seed": seed}
    return {**row, "gain": 100 * (values[0] / values.min() - 1), "own_ms": 1000 * own}


def missing(seeds: int, known: pd.DataFrame) -> Iterator[tuple[str, str, int, int]]:
    """Yield the runs that are not known, task by task: runs of one task share compiled code."""
    done = set(known[KEY].itertuples(index=False, name=None)) if len(known) else set()
    for group, strategies in STRATEGIES.items():
        for task in TASKS[group]:
            for strategy in strategies:
                for budget in BUDGETS:
                    every = ((task, strategy, budget, seed) for seed in range(seeds))
                    yield from (key for key in every if key not in done)


def make(seeds: int) -> None:
    """Make the runs that are missing, and add each to `runs.csv` at once."""
    known, files = seed_columns.read(FILE, KEY[:-1]), learn()
    for key in missing(seeds, known):
        row = run(*key, files)
        known = pd.concat([known, pd.DataFrame([row])]) if len(known) else pd.DataFrame([row])
        seed_columns.write(FILE, KEY[:-1], known)
        print(*key, f"{row['gain']:.2f} %", flush=True)


def tables(runs: pd.DataFrame) -> pd.DataFrame:
    """Return by family, budget and strategy: gains, and the tasks on which `rl, trained` gains more or less.

    `share` is the mean of a task's gain over the largest that any run found there.
    """
    found, most = [], runs.groupby("task")["gain"].max()
    groups = runs["task"].map({task: group for group, tasks in TASKS.items() for task in tasks})
    for (group, budget), own in runs.groupby([groups, "budget"]):
        gains = own.groupby(["task", "strategy"])["gain"].mean().unstack()
        gains["best of costs only"] = gains[[name for name in COSTS_ONLY if name in gains]].max(axis=1)
        times = own.groupby("strategy")["own_ms"].median()
        for name in gains:
            row = {"tasks_of": group, "budget": budget, "strategy": name, "tasks": len(gains)}
            row["share"] = (gains[name] / most[gains.index]).mean()
            ours = gains[OURS] - gains[name]
            row |= {"gain": gains[name].mean(), "trained_is_ahead": (ours > 0).sum(), "behind": (ours < 0).sum()}
            found.append(row | {"own_ms": times.get(name, np.nan)})
    return pd.DataFrame(found)


def draw(runs: pd.DataFrame, wins: pd.DataFrame) -> None:
    """Draw mean shares on fusion over evaluations, and each task's gain at 50 beside the best of costs only."""
    import matplotlib.pyplot as plt
    from PIL import Image

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5.2), layout="constrained")
    for name in STRATEGIES["fusion"]:
        level = Registry().strategy(name.partition(",")[0]).level
        own = wins[(wins["tasks_of"] == "fusion") & (wins["strategy"] == name)]
        style = {"costs only": ":", "structure": "-", "costs of parts": "--"}[level.sees]
        left.plot(own["budget"], own["share"], style, marker="o", lw=3 if name == OURS else 1.5, label=name)
    left.set(xscale="log", xlabel="evaluations", ylabel="mean share of the largest known gain (more is better)")
    left.set_xticks(BUDGETS, [str(budget) for budget in BUDGETS], minor=False)
    left.minorticks_off()
    left.set_title(f"{len(UNSEEN)} unseen programs, fusion\n(dotted: costs only, dashed: parts)", fontsize=10)
    left.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    own = runs[(runs["budget"] == 50) & runs["task"].isin(TASKS["fusion"])]
    gains = own.groupby(["task", "strategy"])["gain"].mean().unstack()
    gains = gains.sort_values(OURS)
    for name, marker in ((OURS, "o"), ("graybox", "|"), ("local", "x")):
        right.plot(gains[name], range(len(gains)), marker, label=name)
    right.plot(gains[list(COSTS_ONLY)].max(axis=1), range(len(gains)), "^", label="best of costs only", alpha=0.7)
    right.set_yticks(range(len(gains)), [task.partition("/")[2] for task in gains.index], fontsize=8)
    right.set(xscale="symlog", xlabel="gain after 50 evaluations, % (linear below 1)", xlim=(-0.05, None))
    right.legend(fontsize=8)
    figure.savefig(HERE / "transfer.png", dpi=80)
    Image.open(HERE / "transfer.png").convert("RGB").quantize(256).save(HERE / "transfer.png", optimize=True)


def main(
    seeds: int = 3,
    train: bool = typer.Option(False, "--train", help="only learn"),
    only_tables: bool = typer.Option(False, "--tables", help="make no runs"),
) -> None:
    """Learn, make the runs, the table and the figure."""
    if train:
        learn()
        return
    if not only_tables:
        make(seeds)
    runs = seed_columns.read(FILE, KEY[:-1])
    wins = tables(runs)
    wins.to_csv(HERE / "wins.csv", index=False, float_format="%.4g")
    draw(runs, wins)
    print(wins[wins["strategy"] == "best of costs only"].to_string(index=False))


if __name__ == "__main__":
    typer.run(main)
