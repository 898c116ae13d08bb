"""Is it worth searching? What the space around the compiler's default fusion looks like.

Every program on the default machine, and a dozen on every machine.

    python results/landscape/study.py

Writes `landscape.csv` and `landscape.png` beside this file; README.md says what they show.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import typer
from joblib import Parallel, delayed
from numpy.typing import NDArray

import bbo_suite
from bbo_problems.tensor_compiler.hardware.machine import DEFAULT_MACHINE, MACHINES
from bbo_problems.tensor_compiler.tasks.programs import names
from bbo_suite import Problem, UserError, search

HERE = Path(__file__).parent
BUDGET, BATCH, MOST_FLIPS = 3000, 50, 4000
EVERYWHERE = (
    *("resnet50", "transformer", "mobilenet", "rnn", "convdraw-t16-train-b64", "wavernn-train-b32-f4"),
    *("nmt-train-b128-s50", "ssd-resnet34-train-b8", "translate-base-train-b64-s64", "bert-base-infer-b8-s384"),
    *("dlrm-terabyte-train-b2048", "unet-32-train-b32", "moe-switch-base-infer-b8-s512"),
)
ENOUGH = 1e-4
"""The least share of the run time that counts as better."""


def costs(problem: Problem, rows: NDArray) -> NDArray[np.float64]:
    """Return the `(n,)` costs of many candidates, a batch at a time."""
    parts = [problem.evaluate(rows[i : i + BATCH]).values for i in range(0, len(rows), BATCH)]
    return np.concatenate([np.empty(0), *parts])


def annealed(problem: Problem) -> tuple[NDArray, float]:
    """Return the best candidate that annealing finds from the default, and its cost."""
    batches = list(search("annealing", problem, BUDGET, batch=BATCH))
    values = np.concatenate([batch.values for batch in batches])
    return np.concatenate([batch.configs for batch in batches])[values.argmin()], float(values.min())


def needed(problem: Problem, best: NDArray, cost: float) -> NDArray[np.int64]:
    """Return the columns in which a candidate differs from the default and that cost something to set back."""
    columns = np.flatnonzero(best != problem.default_row())
    rows = np.repeat(best[None], len(columns), axis=0)
    rows[np.arange(len(columns)), columns] = problem.default_row()[columns]
    return columns[costs(problem, rows) > cost]


def study(program: str, machine: str) -> dict[str, object]:
    """Return one row of `landscape.csv`."""
    problem = bbo_suite.problem(f"fusion/{program}@{machine}")
    default, rng = problem.default_row(), np.random.default_rng(0)
    here = float(costs(problem, default[None])[0])
    everything, nothing = costs(problem, np.stack([np.ones_like(default), np.zeros_like(default)])) / here
    chance = costs(problem, problem.space.sample(200, rng)) / here
    columns = np.sort(rng.permutation(len(default))[:MOST_FLIPS])
    flips = np.repeat(default[None], len(columns), axis=0)
    flips[np.arange(len(columns)), columns] ^= 1
    change = costs(problem, flips) / here - 1
    best, cost = annealed(problem)
    kept = needed(problem, best, cost)
    improving = columns[change < -ENOUGH]
    return {
        "program": program,
        "machine": machine,
        "decisions": len(default),
        "default_seconds": here,
        "all_fused": everything,
        "none_fused": nothing,
        "best_of_200_random": chance.min(),
        "improving_flips": (change < -ENOUGH).mean(),
        "neutral_flips": (np.abs(change) <= ENOUGH).mean(),
        "improving_tenths": len(np.unique(improving * 10 // len(default))),
        "speedup": here / cost,
        "fused_by_search": int((best[kept] == 1).sum()),
        "unfused_by_search": int((best[kept] == 0).sum()),
    }


def attempt(program: str, machine: str) -> dict[str, object] | None:
    """Return a row, or nothing for a program without a decision, which is said."""
    try:
        return study(program, machine)
    except UserError as error:
        print(f"{program}@{machine}: {error}")
        return None


def draw(table: pd.DataFrame, target: Path) -> None:
    """Draw, for each machine, how the extremes compare with the default and what search gains."""
    columns = {
        "all_fused": "all fused / default",
        "none_fused": "none fused / default",
        "best_of_200_random": "best of 200 random / default",
        "speedup": f"speedup by {BUDGET:,} evaluations",
        "improving_flips": "share of single changes that improve",
    }
    figure, axes = plt.subplots(1, len(columns), figsize=(15, 3.6), layout="constrained")
    common = table[table["program"].isin(EVERYWHERE)]
    boxes = {name: common[common["machine"] == name] for name in MACHINES}
    boxes["all"] = table[table["machine"] == DEFAULT_MACHINE]
    for ax, (column, title) in zip(axes, columns.items(), strict=True):
        ax.boxplot([part[column] for part in boxes.values()], whis=(5, 95), widths=0.6)
        ax.set_xticks(range(1, len(boxes) + 1), list(boxes))
        ax.set_title(title, fontsize=9)
        ax.grid(axis="y", color="0.9")
        if column != "improving_flips":
            ax.set_yscale("log")
            ax.yaxis.set_major_formatter("{x:g}")
            ax.yaxis.set_minor_formatter("{x:g}")
            ax.axhline(1, color="0.4", lw=0.8)
    words = f"{len(EVERYWHERE)} programs on each machine; all: {len(boxes['all'])} programs on {DEFAULT_MACHINE}"
    figure.suptitle(f"Fusion, one point a program; {words}; whiskers: 5 % to 95 %", fontsize=10)
    figure.savefig(target, dpi=150)


def main(jobs: int = 2) -> None:
    """Measure all, and write the table and the figure."""
    pairs = [(program, DEFAULT_MACHINE) for program in names()]
    pairs += [(program, name) for program in EVERYWHERE for name in MACHINES if name != DEFAULT_MACHINE]
    work = Parallel(n_jobs=jobs, verbose=1)
    table = pd.DataFrame([row for row in work(delayed(attempt)(*pair) for pair in pairs) if row])
    table.to_csv(HERE / "landscape.csv", index=False, float_format="%.6g")
    draw(table, HERE / "landscape.png")
    print(table.drop(columns=["program"]).groupby("machine").median(numeric_only=True).T.round(4).to_string())


if __name__ == "__main__":
    typer.run(main)
