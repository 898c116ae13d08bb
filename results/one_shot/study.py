"""How good are the first picks of `one-shot` on kernels of models that it has not seen?

    python results/one_shot/study.py    # quality.csv, quality.png; some minutes of one core

The tasks are kernels of models outside the corpus, tile and flags together. 40 are drawn by how often they occur, and
further 40 among those whose default is at least 5 % slower than the best. All candidates of a task are evaluated.
"""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bbo_problems.tensor_compiler.hardware.machine import DEFAULT_MACHINE, MACHINES
from bbo_problems.tensor_compiler.tasks.kernel_families import CORPUS, OneKernel, kernels
from bbo_problems.tensor_compiler.tasks.kernel_problem import SettingsProblem
from bbo_suite import Enumeration, search

HERE = Path(__file__).parent
UNSEEN = (
    *("bert-base-infer-b8-s384", "bert-base-train-b32-s128", "bert-large-infer-b64-s128"),
    *("dlrm-kaggle-infer-b8192", "dlrm-terabyte-train-b2048", "mobilenet", "mobilenet-1.0-infer-b64"),
    *("mobilenet-1.4-train-b64", "transformer", "unet-32-train-b32", "unet-64-infer-b16"),
)
TASKS, HEADROOM, LARGEST = 40, 1.05, 1_000_000
COUNTS = np.array([1, 5, 10, 25, 50, 100, 200])
RUNS = {"one-shot": (1, 3), "evolution": (2, 7), "random": (2, 7), "graybox": (1, 6), "mbo": (1, 6)}
"""For each strategy, the runs on a task, and how many of `COUNTS` they reach."""


class Known(NamedTuple):
    """A task with the cost of its best candidate, of its default, and of the analytical model's choice among all."""

    problem: OneKernel
    best: float
    default: float
    analytical: float


def known(kernel: NDArray) -> Known | None:
    """Evaluate all candidates of a kernel by the hardware model and by the analytical one; None without a choice."""
    problem = OneKernel(kernel, SettingsProblem.slots)
    if not problem.fits or not 1 < problem.space.cardinality <= LARGEST:
        return None
    analytical = OneKernel(kernel, SettingsProblem.slots, MACHINES[DEFAULT_MACHINE].analytical_model())
    rows = Enumeration(problem.space, np.random.default_rng(0)).rows(0, problem.space.cardinality)
    costs, planned = problem.evaluate(rows).values, analytical.evaluate(rows).values
    ties = np.flatnonzero(planned <= planned.min() * (1 + 1e-9))  # of those that it cannot tell apart, the closest
    chosen = ties[np.abs(rows[ties] - problem.default_row()).sum(axis=1).argmin()]
    return Known(problem, costs.min(), problem.evaluate(problem.default[None]).values[0], costs[chosen])


def tasks() -> dict[str, list[Known]]:
    """Return the tasks of both draws."""
    seen = {row.tobytes() for row in kernels(tuple(chain.from_iterable(CORPUS.values())))[0]}
    rows, counts = kernels(UNSEEN)
    new = np.array([row.tobytes() not in seen for row in rows])
    order = np.random.default_rng(7).choice(np.flatnonzero(new), new.sum(), False, counts[new] / counts[new].sum())
    drawn: dict[str, list[Known]] = {"all": [], "headroom": []}
    for kernel in rows[order]:
        task = known(kernel) if len(drawn["headroom"]) < TASKS else None
        name = "all" if len(drawn["all"]) < TASKS else "headroom"
        if task and (name == "all" or task.default >= HEADROOM * task.best):
            drawn[name].append(task)
    return drawn


def qualities(strategy: str, task: Known, seed: int, reached: int) -> NDArray[np.float64]:
    """Return the quality of the first candidate alone, and of the best of the default and the first k of `COUNTS`."""
    batches = search(strategy, task.problem, int(COUNTS[reached - 1]), seed, batch=10)
    costs = np.concatenate([batch.values for batch in batches])
    found = np.minimum(np.minimum.accumulate(costs), task.default)
    return task.best / np.append(costs[0], found[np.minimum(COUNTS[:reached], len(found)) - 1])


def rows(draw: str, strategy: str, found: NDArray[np.float64], counts: NDArray) -> list[dict[str, object]]:
    """Return a row for each count: mean and worst 5 % of `(n, counts)` qualities."""
    worst = np.sort(found, axis=0)[: max(1, round(len(found) / 20))].mean(axis=0)
    numbers = zip(counts, found.mean(axis=0), worst, strict=True)
    return [{"tasks": draw, "strategy": strategy, "k": k, "mean": mean, "worst 5 %": low} for k, mean, low in numbers]


def quality() -> pd.DataFrame:
    """Return the qualities of all strategies."""
    made = []
    for draw, drawn in tasks().items():
        made += rows(draw, "default", np.array([[t.best / t.default] for t in drawn]), np.zeros(1, int))
        made += rows(draw, "analytical model", np.array([[t.best / t.analytical] for t in drawn]), np.zeros(1, int))
        for strategy, (seeds, reached) in RUNS.items():
            runs = [qualities(strategy, task, seed, reached) for task in drawn for seed in range(seeds)]
            first = 0 if strategy == "one-shot" else 1  # of the others, the first candidate is the default
            made += rows(draw, strategy, np.array(runs)[:, first:], np.append(0, COUNTS[:reached])[first:])
            print(draw, strategy, flush=True)
    return pd.DataFrame(made)


def draw(table: pd.DataFrame) -> None:
    """Draw the mean quality against measurements."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    titles = {"all": "40 kernels as they occur", "headroom": "40 kernels whose default is 5 % or more off"}
    for axis, (name, own) in zip(axes, table.groupby("tasks"), strict=True):
        for strategy, curve in own[own["k"] > 0].groupby("strategy", sort=False):
            axis.plot(curve["k"], curve["mean"], "o-", label=strategy, linewidth=3 if strategy == "one-shot" else 1.2)
        for strategy, style in (("default", ":"), ("analytical model", "--")):
            mean = own[own["strategy"] == strategy]["mean"].iloc[0]
            axis.axhline(mean, color="grey", linestyle=style, label=strategy)
        axis.set(xscale="log", xlabel="measurements", title=titles[name])
    axes[0].set_ylabel("best known time / best found\n(higher is better)")
    axes[0].legend(fontsize=8)
    figure.savefig(HERE / "quality.png", dpi=110)


if __name__ == "__main__":
    made = quality()
    made.to_csv(HERE / "quality.csv", index=False, float_format="%.4g")
    draw(made)
