"""How good are the first picks of `one-shot` on kernels of models that it has not seen?

    python results/models/one_shot/study.py    # quality.csv, ratios.csv, quality.png; some minutes of one core

The tasks are kernels of models outside the corpus (`tasks/kernel_corpus.py`), tile and flags together. Kernels that are
in the corpus, too, are left out. 40 are drawn by how often they occur, and 40 further ones among those whose default is
at least 5 % slower than the best. The best is known: all candidates of a task are evaluated.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bbo_problems.tensor_compiler.hardware.machine import DEFAULT_MACHINE, MACHINES
from bbo_problems.tensor_compiler.tasks.kernel_families import CORPUS, OneKernel, kernels
from bbo_problems.tensor_compiler.tasks.kernel_problem import SettingsProblem
from bbo_strategies.one_shot import OneShot
from bbo_suite import Enumeration, Strategy
from bbo_suite.registry import Registry
from bbo_suite.testing import play, start

HERE = Path(__file__).parent
UNSEEN = (
    "bert-base-infer-b8-s384",
    "bert-base-train-b32-s128",
    "bert-large-infer-b64-s128",
    "dlrm-kaggle-infer-b8192",
    "dlrm-terabyte-train-b2048",
    "mobilenet",
    "mobilenet-1.0-infer-b64",
    "mobilenet-1.4-train-b64",
    "transformer",
    "unet-32-train-b32",
    "unet-64-infer-b16",
)
TASKS, HEADROOM, LARGEST = 40, 1.05, 1_000_000
COUNTS = (1, 5, 10, 25, 50, 100, 200)
RUNS = {"evolution": (2, 7), "random": (2, 7), "graybox": (1, 6), "mbo": (1, 6)}
"""For each strategy, the runs on a task, and how many of `COUNTS` they reach."""
SECONDS = (0.1, 1.0, 10.0)


@dataclass(frozen=True)
class Held:
    """A task with the cost of its best candidate, of its default, and of the analytical model's choice among all."""

    problem: OneKernel
    best: float
    default: float
    analytical: float

    def quality(self, values: NDArray) -> NDArray[np.float64]:
        """Return the qualities of the best of the default and the first k values, for each of `COUNTS`."""
        found = np.minimum(np.minimum.accumulate(values), self.default)
        return self.best / found[np.minimum(np.array(COUNTS), len(found)) - 1]


def tasks() -> dict[str, list[Held]]:
    """Return the tasks of both draws."""
    seen = {row.tobytes() for row in kernels(tuple(chain.from_iterable(CORPUS.values())))[0]}
    rows, counts = kernels(UNSEEN)
    new = np.array([row.tobytes() not in seen for row in rows])
    order = np.random.default_rng(7).choice(np.flatnonzero(new), new.sum(), False, counts[new] / counts[new].sum())
    drawn: dict[str, list[Held]] = {"all": [], "headroom": []}
    for kernel in rows[order]:
        problem = OneKernel(kernel, SettingsProblem.slots)
        if not problem.fits or not 1 < problem.space.cardinality <= LARGEST or len(drawn["headroom"]) == TASKS:
            continue
        held = known(problem, OneKernel(kernel, SettingsProblem.slots, MACHINES[DEFAULT_MACHINE].analytical_model()))
        name = "all" if len(drawn["all"]) < TASKS else "headroom"
        if name == "all" or held.default >= HEADROOM * held.best:
            drawn[name].append(held)
    return drawn


def known(problem: OneKernel, on_paper: OneKernel) -> Held:
    """Evaluate all candidates of a kernel, by the hardware model and by the analytical one."""
    rows = Enumeration(problem.space, np.random.default_rng(0)).rows(0, problem.space.cardinality)
    costs, planned = problem.evaluate(rows).values, on_paper.evaluate(rows).values
    ties = np.flatnonzero(planned <= planned.min() * (1 + 1e-9))  # of those that it cannot tell apart, the closest
    chosen = ties[np.abs(rows[ties] - problem.default_row()).sum(axis=1).argmin()]
    return Held(problem, costs.min(), problem.evaluate(problem.default[None]).values[0], costs[chosen])


def costs_of(name: str, held: Held, seed: int, budget: int) -> NDArray[np.float64]:
    """Return the costs of a strategy's candidates, in order."""
    problem, strategy = held.problem, Registry().strategy(name)
    running = start(strategy, problem.space, budget, seed, problem.structure(), problem.default_row())
    parts = (lambda rows: problem.evaluate_parts(rows).parts) if strategy.uses_parts else None
    batches = play(running, lambda rows: problem.evaluate(rows).values, 10, parts)
    return np.concatenate([values for _, values in batches])


def row(tasks: str, strategy: str, qualities: NDArray, counts: tuple, **more: float) -> list[dict[str, object]]:
    """Return a row for each count: mean and worst 5 % of `(n, counts)` qualities."""
    worst = np.sort(qualities, axis=0)[: max(1, round(len(qualities) / 20))].mean(axis=0)
    numbers = zip(counts, qualities.mean(axis=0), worst, strict=True)
    return [{"tasks": tasks, "strategy": strategy, "k": k, "mean": m, "worst 5 %": w} | more for k, m, w in numbers]


def picks(held: Held, make: Callable[[Held], Strategy]) -> NDArray[np.float64]:
    """Return the qualities of the first pick alone, and of `COUNTS[:3]` picks."""
    values = held.problem.evaluate(make(held).ask(COUNTS[2])).values
    return np.append(held.best / values[0], held.quality(values)[:3])


def shipped(held: Held, **options: object) -> Strategy:
    """Return `one-shot` at the start of a run."""
    problem = held.problem
    return start(OneShot, problem.space, COUNTS[2], 0, problem.structure(), problem.default_row(), **options)


def quality() -> pd.DataFrame:
    """Return the qualities of all strategies; the table is written after each."""
    both, rows = tasks(), []
    for name, drawn in both.items():
        rows += row(name, "default", np.array([[h.best / h.default] for h in drawn]), (0,))
        rows += row(name, "analytical model", np.array([[h.best / h.analytical] for h in drawn]), (0,))
        shipped(drawn[0])  # compiles
        began = time.process_time()
        found = np.array([picks(held, shipped) for held in drawn])
        own = (time.process_time() - began) / len(drawn)
        rows += row(name, "one-shot", found, (0, *COUNTS[:3]), search=own)
    for strategy, (seeds, reached) in RUNS.items():
        for name, drawn in both.items():
            runs = [h.quality(costs_of(strategy, h, i, COUNTS[reached - 1])) for h in drawn for i in range(seeds)]
            rows += row(name, strategy, np.array(runs)[:, :reached], COUNTS[:reached])
            print(name, strategy, flush=True)
            pd.DataFrame(rows).to_csv(HERE / "quality.csv", index=False, float_format="%.4g")
    return pd.DataFrame(rows)


def ratios(table: pd.DataFrame) -> pd.DataFrame:
    """Return how much less time `one-shot` takes than evolution needs for the same mean quality."""
    rows = []
    for name, own in table.groupby("tasks"):
        other = own[own["strategy"] == "evolution"]
        for _, pick in own[(own["strategy"] == "one-shot") & (own["k"] > 0)].iterrows():
            reached = pick["mean"] <= other["mean"].max()
            needed = np.exp(np.interp(pick["mean"], other["mean"], np.log(other["k"]))) if reached else COUNTS[-1]
            for c in SECONDS:
                ratio = needed * c / (pick["search"] + pick["k"] * c)
                rows.append({"tasks": name, "k": pick["k"], "quality": pick["mean"], "seconds": c, "reached": reached})
                rows[-1] |= {"evaluations of evolution": needed, "ratio": ratio}
    return pd.DataFrame(rows)


def draw(table: pd.DataFrame) -> None:
    """Draw the mean quality against measurements."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    words = {"all": "40 kernels as they occur", "headroom": "40 kernels whose default is 5 % or more off"}
    for axis, (name, own) in zip(axes, table.groupby("tasks"), strict=True):
        for strategy, curve in own[own["k"] > 0].groupby("strategy", sort=False):
            axis.plot(curve["k"], curve["mean"], "o-", label=strategy, linewidth=3 if strategy == "one-shot" else 1.2)
        for strategy, style in (("default", ":"), ("analytical model", "--")):
            axis.axhline(
                own[own["strategy"] == strategy]["mean"].iloc[0], color="grey", linestyle=style, label=strategy
            )
        axis.set(xscale="log", xlabel="measurements", title=words[name])
    axes[0].set_ylabel("best known time / best found\n(higher is better)")
    axes[0].legend(fontsize=8)
    figure.savefig(HERE / "quality.png", dpi=110)


def main() -> None:
    """Write the tables and the figure."""
    table = quality()
    ratios(table).to_csv(HERE / "ratios.csv", index=False, float_format="%.4g")
    draw(table)


if __name__ == "__main__":
    main()
