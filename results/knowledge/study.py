"""What the costs of parts are worth: a strategy that hears them against those that do not.

    python results/knowledge/study.py [--only fusion] [--repeats 10] [--ours] [--tables]

Runs are kept under `results/knowledge-BUDGET` and resumed, so the study can be made in parts. Writes `runs.csv`,
`claims.csv`, `tasks.csv` and `gain.png` beside this file; README.md says what they show.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer
from scipy.stats import mannwhitneyu

import bbo_suite
from bbo_suite.store.results import summarise

HERE = Path(__file__).parent
TASKS = {
    "fusion": (
        *("resnet50", "transformer", "resnet-50-infer-b1", "resnet-101-infer-b1", "resnet-152-infer-b128"),
        *("resnet-34-train-b64", "mobilenet-0.5-infer-b1", "mobilenet-1.0-infer-b1", "mobilenet-1.4-infer-b32"),
        *("unet-32-infer-b1", "unet-64-infer-b16", "unet-256-infer-b1", "gpt2-124m-decode-b128-s256"),
        *("bert-base-infer-b1-s128", "bert-large-infer-b1-s384", "bert-tiny-train-b256-s128"),
        *("nmt-2layer-train-b256-s80", "wavernn-infer-b128-f400", "moe-32-infer-b32-s512", "rnn-4layer-train-b64-s128"),
    ),
    "tile": ("bert-tiny-infer-b64-s128", "mobilenet-1.4-infer-b32", "unet-256-infer-b1", "bert-base-infer-b1-s128"),
    "flags": ("bert-tiny-infer-b64-s128", "mobilenet-1.4-infer-b32", "unet-256-infer-b1", "bert-base-infer-b1-s128"),
    "layout": (
        *("bert-tiny-infer-b64-s128", "mobilenet-1.4-infer-b32"),
        *("bert-tiny-train-b256-s128", "unet-32-infer-b1"),
    ),
    "joint": ("bert-tiny-infer-b64-s128", "mobilenet-1.4-infer-b32", "resnet-50-infer-b1", "unet-32-infer-b1"),
    "llvm": ("sort", "huffman", "tree"),
    "gcc": ("sort", "huffman", "hash"),
    "xla-tpu": ("attention", "dlrm"),
}
"""Of fusion, the first program of each model and size that `results/landscape` found to have 100 to 4,000 decisions and
a gain of 0.2 % or more. No setting of `graybox` was chosen on any of these models."""


@dataclass(frozen=True)
class Claim:
    """Graybox after `budget` evaluations against the best of some rivals after `rival_budget`.

    Without rivals, against the best of all strategies in `rivals.csv`: the runs of an earlier study on these tasks.
    """

    family: str
    budget: int
    rivals: tuple[str, ...]
    rival_budget: int
    aim: float | None = None


CLAIMS = (
    Claim("fusion", 200, ("annealing", "local"), 10_000, 0.98),
    Claim("fusion", 50, ("annealing",), 1_000, 1.0),
    Claim("tile", 200, ("local",), 10_000, 0.98),
    Claim("flags", 200, ("local",), 10_000, 0.98),
    Claim("layout", 200, (), 10_000, 0.95),
    Claim("joint", 200, ("joint",), 1_000, 1.3),
    Claim("joint", 1_000, ("joint",), 10_000, 1.0),
    Claim("llvm", 200, ("annealing",), 1_000),
    Claim("llvm", 50, ("annealing",), 300),
    Claim("gcc", 200, ("annealing",), 1_000),
    Claim("gcc", 50, ("annealing",), 300),
    Claim("xla-tpu", 200, ("annealing",), 1_000),
    Claim("xla-tpu", 50, ("annealing",), 300),
)
DRAWN = ("fusion/resnet50", "fusion/transformer", "fusion/unet-256-infer-b1")
LEVELS = {"annealing": "costs only", "mbo": "costs only", "local": "structure", "graybox": "costs of parts"}
KEY = ["budget", "problem", "strategy", "seed"]
_LEVEL = 0.9995
"""A ratio from which on two gains count as level."""
BUDGETS = (50, 200, 1_000, 10_000)


def problems(family: str) -> list[str]:
    """Return the ids of the tasks of a family."""
    return [f"{family}/{name}" for name in TASKS[family]]


def make(repeats: int, only: list[str], ours: bool) -> None:
    """Make the runs of some families that are missing, of `graybox` alone if `ours`."""
    wanted: set[tuple[int, str, str]] = set()
    for claim in CLAIMS:
        for problem in problems(claim.family) if claim.family in only else ():
            wanted |= {(claim.budget, "graybox", problem)}
            wanted |= {(claim.rival_budget, rival, problem) for rival in claim.rivals}
    if "fusion" in only:
        wanted |= {(budget, strategy, problem) for budget in BUDGETS for strategy in LEVELS for problem in DRAWN}
    wanted = {run for run in wanted if run[1] == "graybox"} if ours else wanted
    table = pd.DataFrame(sorted(wanted), columns=["budget", "strategy", "problem"])
    for (budget, strategy), group in table.groupby(["budget", "strategy"]):
        where = {"study": f"knowledge-{budget}", "results": HERE.parent}
        bbo_suite.run(strategy, list(group["problem"]), budget=budget, repeats=repeats, quiet=False, **where)


def gathered() -> pd.DataFrame:
    """Return one row for each complete run, of the stored studies and of `runs.csv`."""
    file = HERE / "runs.csv"
    tables = [pd.read_csv(file)] if file.exists() else []
    if ends := list(HERE.parent.glob("knowledge-*/*/end.json")):
        rows = pd.DataFrame([summarise(end.parent) for end in ends])
        rows["gain"] = 100 * (rows["default"] / rows["best"] - 1)
        rows["own_ms"] = 1000 * rows["strategy_seconds"] / rows["evaluations"]
        tables.append(rows[[*KEY, "evaluations", "default", "best", "gain", "own_ms"]])
    return pd.concat(tables).drop_duplicates(KEY, keep="last").sort_values(KEY)


def judged(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each claim and task: mean gains in percent, their ratio, and p of Mann and Whitney."""
    elsewhere = pd.read_csv(HERE / "rivals.csv")
    found = []
    for claim in CLAIMS:
        all_rivals = rows[rows["strategy"].isin(claim.rivals)] if claim.rivals else elsewhere
        ours = rows[(rows["strategy"] == "graybox") & (rows["budget"] == claim.budget)].groupby("problem")["gain"]
        for problem, rivals in all_rivals[all_rivals["budget"] == claim.rival_budget].groupby("problem"):
            if problem in problems(claim.family) and problem in ours.groups:
                found.append(compared(claim, str(problem), ours.get_group(problem), rivals))
    return pd.DataFrame(found)


def compared(claim: Claim, problem: str, ours: pd.Series, rivals: pd.DataFrame) -> dict[str, object]:
    """Return a row of `judged`."""
    gains = rivals.groupby("strategy")["gain"]
    best = str(gains.mean().idxmax())
    p = mannwhitneyu(ours, gains.get_group(best), alternative="two-sided").pvalue
    means = ours.mean(), gains.mean()[best]
    ratio = means[0] / means[1] if means[1] else np.nan  # on some tasks nobody gains
    return {
        **{"family": claim.family, "budget": claim.budget, "rival_budget": claim.rival_budget, "problem": problem},
        **{"rival_strategy": best, "graybox": means[0], "rival": means[1], "ratio": ratio, "p": p},
    }


def summed_up(tasks: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each claim: the geometric mean of the ratios, the least, and how many are 1 or more."""
    found = []
    for claim in CLAIMS:
        own = tasks[(tasks["family"] == claim.family) & (tasks["budget"] == claim.budget)]
        if len(own):
            ratios, rivals = own["ratio"].clip(lower=1e-3), " or ".join(claim.rivals) or "the best of all"
            settings = {"family": claim.family, "budget": claim.budget, "rivals": rivals}
            level = int((ratios >= _LEVEL).sum())
            numbers = {"ratio": np.exp(np.log(ratios).mean()), "least": ratios.min(), "level_or_better": level}
            counts = {"rival_budget": claim.rival_budget, "aim": claim.aim, "tasks": len(own)}
            found.append(settings | counts | numbers)
    return pd.DataFrame(found)


def draw(rows: pd.DataFrame) -> None:
    """Draw the gain against the budget, a panel for each of three tasks, a line style for each level of knowledge."""
    import matplotlib.pyplot as plt

    dashes = {"costs only": "-", "structure": "--", "costs of parts": ":"}
    colours = {"annealing": "#0072b2", "mbo": "#009e73", "local": "#d55e00", "graybox": "#000000"}
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
    for ax, problem in zip(axes, DRAWN, strict=True):
        for strategy, level in LEVELS.items():
            own = rows[(rows["problem"] == problem) & (rows["strategy"] == strategy)]
            bands = own.groupby("budget")["gain"].quantile([0.25, 0.5, 0.75]).unstack()
            look = {"color": colours[strategy], "lw": 2}
            ax.plot(bands.index, bands[0.5], ls=dashes[level], marker="o", ms=4, label=f"{strategy}: {level}", **look)
            ax.fill_between(bands.index, bands[0.25], bands[0.75], color=colours[strategy], alpha=0.15, lw=0)
        ax.set(xscale="log", xlabel="evaluations (the run's budget)", title=problem, ylim=(0, None))
        ax.set_xticks(BUDGETS, [f"{budget:,}" for budget in BUDGETS])
    axes[0].set_ylabel("gain over the default in %")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(HERE / "gain.png", dpi=110)


def main(
    repeats: int = 10,
    only: Annotated[list[str] | None, typer.Option(help="families, all by default")] = None,
    ours: Annotated[bool, typer.Option("--ours", help="make the runs of graybox alone")] = False,
    tables: Annotated[bool, typer.Option("--tables", help="make no runs, only tables of those that are there")] = False,
) -> None:
    """Make the runs, the tables and the figure."""
    if not tables:
        make(repeats, only or list(TASKS), ours)
    rows = gathered()
    rows.to_csv(HERE / "runs.csv", index=False, float_format="%.6g")
    tasks = judged(rows)
    tasks.to_csv(HERE / "tasks.csv", index=False, float_format="%.4g")
    claims = summed_up(tasks)
    claims.to_csv(HERE / "claims.csv", index=False, float_format="%.4g")
    print(claims.to_string(index=False))
    draw(rows)


if __name__ == "__main__":
    typer.run(main)
