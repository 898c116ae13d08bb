"""Writes claims.csv, tasks.csv and gain.png beside this file, and prints the claims."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from plan import DRAWN

from bbo_suite.figures.style import save_with_few_colours
from bbo_suite.scores import compare
from bbo_suite.store.run_table import read_runs

HERE = Path(__file__).parent
CLAIMS = {
    ("fusion", 200): (("annealing", "local"), 10_000, 0.98),
    ("fusion", 50): (("annealing",), 1_000, 1.0),
    ("tile", 200): (("local",), 10_000, 0.98),
    ("flags", 200): (("local",), 10_000, 0.98),
    ("layout", 200): (("annealing", "evolution", "local", "mbo"), 10_000, 0.95),
    ("joint", 200): (("joint",), 1_000, 1.3),
    ("joint", 1_000): (("joint",), 10_000, 1.0),
    **{(family, 200): (("annealing",), 1_000, None) for family in ("llvm", "gcc", "xla-tpu")},
    **{(family, 50): (("annealing",), 300, None) for family in ("llvm", "gcc", "xla-tpu")},
}
"""A family and evaluations of `graybox`: its rivals, their evaluations, the ratio aimed at."""
LEVELS = {"annealing": "costs only", "mbo": "costs only", "local": "structure", "graybox": "costs of parts"}
LEVEL = 0.9995
"""A ratio from which on two gains count as level."""


def tasks(runs: pd.DataFrame) -> Iterator[dict[str, object]]:
    """Yield a row for each claim and task: mean gains in percent, that of the best rival, their ratio, and p."""
    for (family, budget), (rivals, rival_budget, _) in CLAIMS.items():
        own = runs[runs["problem"].str.startswith(f"{family}/")]
        pairs = {rival: compare(own, (("graybox", budget), (rival, rival_budget)), "gain") for rival in rivals}
        found = pd.concat(table.assign(rival=rival) for rival, table in pairs.items())
        for problem, against in found.groupby("problem"):
            best = against.loc[against["other_mean"] == against["other_mean"].max()].iloc[0]
            ratio = best["mean"] / best["other_mean"] if best["other_mean"] else np.nan  # on some tasks nobody gains
            row = {"family": family, "budget": budget, "rival_budget": rival_budget, "problem": problem}
            row |= {"rival_strategy": best["rival"], "graybox": best["mean"], "rival": best["other_mean"]}
            yield row | {"ratio": ratio, "p": best["p"]}


def claims(table: pd.DataFrame) -> Iterator[dict[str, object]]:
    """Yield a row for each claim: the geometric mean of the ratios, the least, and how many are 1 or more."""
    for (family, budget), (rivals, rival_budget, aim) in CLAIMS.items():
        ratios = table.loc[(table["family"] == family) & (table["budget"] == budget), "ratio"].clip(lower=1e-3)
        row = {"family": family, "budget": budget, "rivals": " or ".join(rivals)}
        row |= {"rival_budget": rival_budget, "aim": aim, "tasks": len(ratios), "ratio": np.exp(np.log(ratios).mean())}
        yield row | {"least": ratios.min(), "level_or_better": (ratios >= LEVEL).sum()}


def draw(runs: pd.DataFrame) -> None:
    """Draw the gain against the budget, a panel for each of three tasks, a line style for each level of knowledge."""
    dashes = {"costs only": "-", "structure": "--", "costs of parts": ":"}
    colours = {"annealing": "#0072b2", "mbo": "#009e73", "local": "#d55e00", "graybox": "#000000"}
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
    for ax, problem in zip(axes, DRAWN, strict=True):
        for strategy, level in LEVELS.items():
            own = runs[(runs["problem"] == problem) & (runs["strategy"] == strategy)]
            bands = own.groupby("budget")["gain"].quantile([0.25, 0.5, 0.75]).unstack()
            look = {"color": colours[strategy], "lw": 2}
            ax.plot(bands.index, bands[0.5], ls=dashes[level], marker="o", ms=4, label=f"{strategy}: {level}", **look)
            ax.fill_between(bands.index, bands[0.25], bands[0.75], color=colours[strategy], alpha=0.15, lw=0)
        budgets = (50, 200, 1_000, 10_000)
        ax.set(xscale="log", xlabel="evaluations (the run's budget)", title=problem, ylim=(0, None))
        ax.set_xticks(budgets, [f"{budget:,}" for budget in budgets])
    axes[0].set_ylabel("gain over the default in %")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    save_with_few_colours(figure, HERE / "gain.png", 64, dpi=110)


if __name__ == "__main__":
    table = read_runs(HERE / "runs.csv.gz")
    table["gain"] = 100 * (table["default"] / table["best"] - 1)
    by_task = pd.DataFrame(tasks(table))
    by_claim = pd.DataFrame(claims(by_task))
    by_task.to_csv(HERE / "tasks.csv", index=False, float_format="%.4g")
    by_claim.to_csv(HERE / "claims.csv", index=False, float_format="%.4g")
    print(by_claim.to_string(index=False))
    draw(table)
