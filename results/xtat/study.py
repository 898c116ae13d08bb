"""XTAT's three claims on the simulated compiler, and what tuning all four passes gains end to end.

    python results/xtat/study.py [--budget 10000] [--repeats 10]

Runs are kept under `results/xtat-*` and resumed. Writes `runs.csv`, `claims.csv`, `models.csv` and the figures beside
this file; README.md says what they show.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import typer

import bbo_suite
from bbo_suite.stats import mean_interval

HERE = Path(__file__).parent
MODELS = (
    "convdraw-t16-train-b64",
    "wavernn-train-b32-f4",
    "nmt-train-b128-s50",
    "ssd-resnet34-train-b8",
    "rnn-large-train-b128-s35",
    "resnet-50-train-b32",
    "resnet_v2-50-train-b32",
    "translate-base-train-b64-s64",
    "bert-base-infer-b8-s384",
    "dlrm-terabyte-train-b2048",
    "unet-32-train-b32",
    "moe-switch-base-infer-b8-s512",
)
ARMS = {
    "default": {},
    "graph-joint": {"schedule": "layout+fusion: annealing"},
    "graph-sequential": {"schedule": "layout: annealing; fusion: annealing"},
    "kernel-joint": {"schedule": "tile+flags: annealing"},
    "kernel-sequential": {"schedule": "tile: exhaustive; flags: exhaustive"},
    "kernel-sequential-annealed": {"schedule": "tile: annealing; flags: annealing"},
    "all-with-store": {"schedule": "layout+fusion+tile+flags: annealing", "stints": "10"},
    "all-without-store": {"schedule": "layout+fusion+tile+flags: annealing", "stints": "10", "store": "false"},
}
CLAIMS = {
    "layout and fusion: joint against sequential": ("graph-joint", "graph-sequential"),
    "tile and flags: joint against sequential (exhaustive)": ("kernel-joint", "kernel-sequential"),
    "tile and flags: joint against sequential (annealing)": ("kernel-joint", "kernel-sequential-annealed"),
    "all passes: with the store against without": ("all-with-store", "all-without-store"),
}
WORTH_SHOWING = 1.05


def runs(budget: int, repeats: int, jobs: int) -> pd.DataFrame:
    """Return one row a run: arm, model, seed and speedup over the default; does what is missing."""
    rows = []
    for arm, texts in ARMS.items():
        problems = [f"joint/{model}" for model in MODELS]
        settings = {
            "budget": budget,
            "repeats": repeats,
            "jobs": jobs,
            "study": f"xtat-{arm}-{budget}",
            "results": HERE.parent,
        }
        done = bbo_suite.run("joint", problems, option_texts=texts, quiet=False, **settings)
        rows += [{"arm": arm, "model": run["problem"].partition("/")[2], **run} for run in done]
    return pd.DataFrame(rows)[["arm", "model", "seed", "default", "best", "speedup", "evaluations", "unique", "failed"]]


def claims(table: pd.DataFrame) -> pd.DataFrame:
    """Return, for each claim, the mean speedup of one arm over the other, per model and over all, with its interval.

    95 %: per model over the runs, which share their seeds; over all models with one number a model.
    """
    logs = np.log(table.pivot_table(index=["model", "seed"], columns="arm", values="speedup"))
    rows = []
    for claim, (one, other) in CLAIMS.items():
        ratio = logs[one] - logs[other]
        groups = {**dict(iter(ratio.groupby("model"))), "all models": ratio.groupby("model").mean()}
        for model, values in groups.items():
            mean, low, high = np.exp(mean_interval(values.to_numpy()))
            rows.append({"claim": claim, "model": model, "ratio": mean, "low": low, "high": high, "n": len(values)})
    return pd.DataFrame(rows)


def models(table: pd.DataFrame) -> pd.DataFrame:
    """Return the mean speedup of each arm for each model with its 95 % interval over the runs."""
    rows = []
    for (arm, model), part in table.groupby(["arm", "model"]):
        mean, low, high = mean_interval(part["speedup"].to_numpy())
        rows.append({"arm": arm, "model": model, "speedup": mean, "low": low, "high": high, "n": len(part)})
    return pd.DataFrame(rows)


def draw_claims(table: pd.DataFrame, target: Path) -> None:
    """Draw one panel a claim: the ratio of speedups for each model and over all; right of 1 the first arm is better."""
    figure, axes = plt.subplots(1, len(CLAIMS), figsize=(16, 5), sharey=True, layout="constrained")
    for ax, (claim, part) in zip(axes, table.groupby("claim", sort=False), strict=True):
        places = np.arange(len(part))[::-1]
        errors = np.abs(part[["low", "high"]].to_numpy().T - part["ratio"].to_numpy())
        colours = ["#0072B2"] * (len(part) - 1) + ["#D55E00"]
        for place, ratio, error, colour in zip(places, part["ratio"], errors.T, colours, strict=True):
            ax.errorbar(ratio, place, xerr=error[:, None], fmt="o", color=colour, capsize=3)
        ax.axvline(1, color="0.4", lw=0.8)
        ax.set_yticks(places, part["model"])
        ax.set_title(claim, fontsize=9)
        ax.set_xlabel("ratio of speedups (right: the first is better)", fontsize=8)
        ax.grid(axis="x", color="0.9")
    runs_each = int(table.loc[table["model"] != "all models", "n"].iloc[0])
    figure.suptitle(f"Mean and 95 % interval; {runs_each} runs a model and arm, equal budgets", fontsize=10)
    figure.savefig(target, dpi=150)


def draw_models(table: pd.DataFrame, target: Path) -> None:
    """Draw the end-to-end speedup of the models that gain 5 % or more, best first; say how many gain less."""
    end = table[table["arm"] == "default"].sort_values("speedup", ascending=False)
    shown = end[end["speedup"] >= WORTH_SHOWING]
    figure, ax = plt.subplots(figsize=(9, 4.5), layout="constrained")
    errors = np.abs(shown[["low", "high"]].to_numpy().T - shown["speedup"].to_numpy())
    ax.bar(shown["model"], shown["speedup"] - 1, bottom=1, yerr=errors, capsize=3, color="#0072B2")
    ax.axhline(1, color="0.4", lw=0.8)
    ax.set_ylabel("speedup over the compiler's default")
    ax.tick_params(axis="x", rotation=40)
    plt.setp(ax.get_xticklabels(), ha="right")
    mean = np.exp(np.log(end["speedup"]).mean())
    title = f"layout+fusion: annealing; tile: exhaustive; flags: exhaustive (n = {end['n'].iloc[0]} runs a model)"
    ax.set_title(f"{title}\n{len(end) - len(shown)} of {len(end)} models gain less than 5 %; geometric mean {mean:.3f}")
    figure.savefig(target, dpi=150)


def main(budget: int = 10_000, repeats: int = 10, jobs: int = 2) -> None:
    """Run what is missing and write tables and figures."""
    table = runs(budget, repeats, jobs)
    table.to_csv(HERE / "runs.csv", index=False, float_format="%.8g")
    decided, gained = claims(table), models(table)
    decided.to_csv(HERE / "claims.csv", index=False, float_format="%.6g")
    gained.to_csv(HERE / "models.csv", index=False, float_format="%.6g")
    draw_claims(decided, HERE / "claims.png")
    draw_models(gained, HERE / "models.png")
    print(decided[decided["model"] == "all models"].to_string(index=False))


if __name__ == "__main__":
    typer.run(main)
