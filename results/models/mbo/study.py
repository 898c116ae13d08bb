"""What searches that know costs only reach on joint tasks, and what a perfect classifier of changes would add.

    python results/models/mbo/study.py unseen      # gains.csv: ten programs that chose no setting, three seeds
    python results/models/mbo/study.py training    # gains.csv: the tasks on which designs were chosen
    python results/models/mbo/study.py families    # families.csv: nine families, ten seeds, 1,000 evaluations
    python results/models/mbo/study.py long        # the same tasks with 10,000 evaluations
    python results/models/mbo/study.py tests       # tests.csv: mean ranks, and who is ahead of annealing
    python results/models/mbo/study.py bound       # bound.csv
    python results/models/mbo/study.py figure      # joint.png

Runs are made in this process, in batches of 20, and only those that the tables lack.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pandas as pd
import typer
from matplotlib.figure import Figure
from numpy.typing import NDArray

import bbo_suite
from bbo_suite import Moves
from bbo_suite.registry import Registry
from bbo_suite.stats import holm, rank_sum_p_values
from bbo_suite.testing import play, start

HERE = Path(__file__).parent
PEER = "nevergrad:DiscreteLenglerOnePlusOne"
UNSEEN = (
    *("joint/rnn-infer-b512-s64", "joint/wavernn-infer-b1-f80", "joint/nmt-decode-b1-s25"),
    *("joint/unet-32-infer-b1", "joint/mobilenet-1.0-infer-b1", "joint/resnet-50-infer-b1"),
    *("joint/bert-base-infer-b1-s128", "joint/gpt2-124m-decode-b1-s1024", "joint/transformer"),
    "joint/moe-switch-base-infer-b8-s512",
)
JOINT = ("joint/ssd-resnet34-infer-b32", "joint/translate-base-decode-b64-s64", "joint/resnet_v2-50-infer-b64")
TRAINING = (
    *("fusion/resnet_v2-50-infer-b64", "fusion/translate-base-decode-b64-s64", "tile/ssd-resnet34-infer-b32"),
    *("flags/resnet_v2-50-infer-b64", "layout/resnet_v2-50-infer-b64", "ordering/train-40-a", "ehrlich/32x32-a#21"),
)
FAMILIES = ("fusion", "tile", "flags", "layout", "kernel", "ordering", "ehrlich", "sharding", "scratchpad")
SEARCHES = ("annealing", "evolution", "mbo")
CHOSE = ("resnet_v2", "ssd", "translate", "convdraw", "/train-", "small", "sharding/rnn", "scratchpad/lstm", "/bert@2")
"""Parts of the names of tasks on which designs were chosen."""
REPORTED = (
    "ehrlich/32x32-a",
    "ehrlich/64x32-a",
    "flags/bert-tiny-infer-b64-s128",
    "flags/mobilenet-1.4-infer-b32",
    "fusion/bert-base-infer-b128-s64",
    "fusion/bert-tiny-infer-b64-s128",
    "fusion/gpt2-124m-decode-b128-s256",
    "fusion/mobilenet-0.75-train-b96",
    "fusion/mobilenet-1.4-infer-b32",
    "fusion/nmt-2layer-train-b256-s80",
    "fusion/resnet-18-train-b64",
    "fusion/unet-32-infer-b1",
    "joint/bert-tiny-infer-b64-s128",
    "joint/mobilenet-1.4-infer-b32",
    "layout/bert-tiny-infer-b64-s128",
    "layout/bert-tiny-train-b256-s128",
    "layout/mobilenet-1.4-infer-b32",
    "layout/unet-32-infer-b1",
    "ordering/40x50-a",
    "ordering/40x50-b",
    "tile/bert-tiny-infer-b64-s128",
    "tile/mobilenet-1.4-infer-b32",
)
"""Tasks that an earlier study reported."""
BATCH, POOL = 20, 200
POINTS = (200, 1000, 10_000)


def programs() -> Iterator[str]:
    """Yield a task of each family: the least by digest on which no design was chosen and that no study reports.

    Of simulated programs only inference with one input or decoding is taken, and no program twice.
    """
    used: set[str] = set()
    for family in FAMILIES:
        names = [str(i) for i in Registry().families()[family]().instances]
        fit = [
            i for i in names if f"{family}/{i}" not in REPORTED and not any(part in f"{family}/{i}" for part in CHOSE)
        ]
        if len(fit) > 100:
            fit = [i for i in fit if ("infer-b1-" in f"{i}-" or "decode" in i) and i not in used]
        chosen = min(fit, key=lambda i: blake2b(f"{family}/{i}".encode()).digest())
        used.add(chosen)
        yield f"{family}/{chosen}"


def gains(best: NDArray[np.float64], default: float) -> dict[str, float]:
    """Return the gain in percent after each number of evaluations, given the best cost after each evaluation."""
    return {f"g{n}": 100 * (default / best[n - 1] - 1) for n in POINTS if n <= len(best)}


def run(name: str, strategy: str, budget: int, seed: int) -> dict[str, object]:
    """Return a row of the table: one run, and the processor time that the strategy itself took."""
    problem = bbo_suite.problem(name)
    task, spent = problem.task(True, None, True), 0.0

    def cost(configs: NDArray) -> NDArray[np.float64]:
        nonlocal spent
        begin = time.process_time()
        values = problem.evaluate(configs).values
        spent += time.process_time() - begin
        return values

    searcher = start(Registry().strategy(strategy), task.space, budget, seed, task.structure, task.default)
    begin = time.process_time()
    batches, hits = [], [np.nan]
    for _, values in play(searcher, cost, BATCH):
        batches.append(values)
        rate = searcher.diagnostics().get("hits/models", np.nan)
        hits += [rate] if rate != hits[-1] and rate == rate else []
    costs = np.concatenate(batches)
    own = time.process_time() - begin - spent
    costs = np.append(costs, np.full(max(0, budget - len(costs)), np.inf))
    default = float(problem.evaluate(problem.default[None]).values[0])
    row = {"problem": name, "strategy": strategy, "seed": seed, "budget": budget, "parameters": len(task.space)}
    return {
        **row,
        **gains(np.minimum.accumulate(costs), default),
        "own": own,
        "hits": float(np.median(hits[1:] or hits)),
    }


def bound(name: str, budget: int, seed: int) -> dict[str, object]:
    """Return the gains of a descent that spends evaluations on improving single changes only, while it finds any.

    A perfect classifier picks one improving change from `POOL` random ones, whose costs are known to it for free;
    where none improves, an evaluation is spent all the same.
    """
    problem, rng = bbo_suite.problem(name), np.random.default_rng(seed)
    moves, state = Moves(problem.space), problem.default.astype(problem.space.dtype)
    cost = default = float(problem.evaluate(state[None]).values[0])
    best, found = [cost], 0
    while len(best) < budget:
        pool = moves.mutate(np.repeat(state[None], POOL, axis=0), np.ones(POOL, np.int64), rng)
        values = problem.evaluate(pool).values
        improving = np.flatnonzero(values < cost)
        if len(improving):
            state, cost = pool[improving[0]].copy(), float(values[improving[0]])
            found += 1
        best.append(cost)
    return {"problem": name, "seed": seed, "budget": budget, **gains(np.array(best), default), "found": found}


def wanted(part: str) -> Iterator[tuple[str, str, int, int]]:
    """Yield the problem, strategy, budget and seed of each run of a part."""
    if part == "families":
        chosen = list(programs())
        for seed in range(10):
            searches = (*SEARCHES, PEER, "optuna:NSGAIISampler")
            yield from ((name, strategy, 1000, seed) for name in chosen for strategy in searches)
    elif part == "long":
        chosen = list(programs())
        for seed in range(10):
            yield from ((name, strategy, 10_000, seed) for name in chosen for strategy in SEARCHES)
    elif part == "unseen":
        for seed in range(3):
            for strategy in ("annealing", "evolution", "local", PEER):
                yield from ((name, strategy, 10_000, seed) for name in UNSEEN)
        yield from ((name, "joint", 10_000, 0) for name in UNSEEN)
    else:
        for seed in range(4):
            for strategy in ("annealing", "evolution", "local", "mbo"):
                yield from ((name, strategy, 1000, seed) for name in TRAINING)
            for strategy in ("annealing", "evolution", "local", "joint"):
                yield from ((name, strategy, 10_000, seed) for name in JOINT)


def complete(part: str) -> None:
    """Make the runs of a part that the table lacks, and write it after each."""
    file = HERE / {"bound": "bound.csv", "families": "families.csv", "long": "families.csv"}.get(part, "gains.csv")
    rows = pd.read_csv(file).to_dict("records") if file.exists() else []
    if part == "bound":
        known = {(row["problem"], row["seed"]) for row in rows}
        todo = [(name, seed) for seed in range(2) for name in (*TRAINING, *JOINT) if (name, seed) not in known]
        made = (bound(name, 1000, seed) for name, seed in todo)
    else:
        done = {(row["problem"], row["strategy"], row["budget"], row["seed"]) for row in rows}
        made = (run(*key) for key in wanted(part) if key not in done)
    for row in made:
        rows.append(row)
        print(row, flush=True)
        pd.DataFrame(rows).to_csv(file, index=False, float_format="%.5g")


def ranks() -> None:
    """Write the mean gain and rank of each search on each task, and the p-value of a difference to annealing."""
    table = pd.read_csv(HERE / "families.csv")
    rows = []
    for n in POINTS:
        runs = table[table.budget == max(n, POINTS[1])]
        rows += [_compared(runs, strategy, f"g{n}") for strategy in runs.strategy.unique()]
    merged = pd.concat(rows)
    merged["rank"] = merged.groupby(["after", "problem"]).gain.rank(ascending=False)
    merged.to_csv(HERE / "tests.csv", index=False, float_format="%.4g")
    print(merged.groupby(["after", "strategy"])[["gain", "rank", "hits", "own"]].mean())


def _compared(table: pd.DataFrame, strategy: str, point: str) -> pd.DataFrame:
    """Return a row for each task: Mann-Whitney's p-value against annealing, with Holm's correction over the tasks."""
    mine, others = table[table.strategy == strategy], table[table.strategy == "annealing"]
    tasks = mine.groupby("problem").agg(seeds=("seed", "size"), gain=(point, "mean"), hits=("hits", "median"))
    runs = [tuple(each.loc[each.problem == name, point] for each in (mine, others)) for name in tasks.index]
    own = mine.groupby("problem").own.median()
    facts = {"after": int(point[1:]), "strategy": strategy, "own": own, "p": holm(rank_sum_p_values(runs))}
    return tasks.assign(**facts).reset_index()


def draw() -> None:
    """Draw the gains on joint tasks at 10,000 evaluations."""
    table = pd.read_csv(HERE / "gains.csv").query("budget == 10000")
    means = table.pivot_table(index="problem", columns="strategy", values="g10000")
    order = [name for name in (PEER, "annealing", "evolution", "mbo", "local", "joint") if name in means]
    figure = Figure(figsize=(9, 0.62 * len(means) + 1.4), layout="constrained")
    ax, places = figure.subplots(), np.arange(len(means))[::-1]
    for i, name in enumerate(order):
        height = 0.8 / len(order)
        ax.barh(places + 0.4 - (i + 0.5) * height, means[name], height, label=name.removeprefix("nevergrad:"))
    ax.set_yticks(places, [name.removeprefix("joint/") for name in means.index])
    ax.set_xlabel("gain over the default in %, 10,000 evaluations; longer is better")
    ax.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    figure.savefig(HERE / "joint.png", dpi=90)


def main(part: str) -> None:
    """Make one part: unseen, training, families, long, tests, bound or figure."""
    {"figure": draw, "tests": ranks}.get(part, lambda: complete(part))()


if __name__ == "__main__":
    typer.run(main)
