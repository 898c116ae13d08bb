"""How close to the optimum of recorded GPU kernels do strategies come, and how soon?

    python results/recorded/study.py FILE [FILE ...]

The files are Kernel Tuner caches, T4 or KTT output of whole spaces. Runs are kept under `results/recorded-1600` and
resumed. Writes `fractions.csv` and `fractions.png` beside this file; README.md says what they show.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import typer

import bbo_suite
from bbo_suite.figures import style
from bbo_suite.stats import best_so_far

HERE = Path(__file__).parent
BUDGETS = (25, 50, 100, 200, 400, 800, 1600)
STRATEGIES = (
    "random",
    "annealing",
    "evolution",
    "mbo",
    "portfolio",
    "local",
    "pymoo:GA",
    "nevergrad:DiscreteLenglerOnePlusOne",
)


def fractions(frame: pd.DataFrame) -> pd.DataFrame:
    """Return, for each space, strategy and number of evaluations, optimum / best found: mean over runs, and its error.

    A run that ended before, since it had measured the whole space, stays at its best.
    """
    rows = []
    for (problem, strategy), group in frame.groupby(["problem", "strategy"], observed=True):
        optimum = bbo_suite.problem(str(problem)).optimum or np.nan
        runs = [run["value"].to_numpy() for _, run in group.groupby("seed")]
        bests = [best_so_far([values])[0] for values in runs]
        for budget in BUDGETS:
            reached = np.array([optimum / best[min(budget, len(best)) - 1] for best in bests])
            error = reached.std(ddof=1) / np.sqrt(len(reached)) if len(reached) > 1 else np.nan
            found = {"mean": reached.mean(), "error": error, "hits": (reached == 1).mean(), "runs": len(reached)}
            rows.append({"space": Path(str(problem)).name, "strategy": strategy, "evaluations": budget, **found})
    return pd.DataFrame(rows)


def draw(table: pd.DataFrame, target: Path) -> None:
    """Draw the mean over the spaces of optimum / best found against evaluations."""
    means = table.groupby(["strategy", "evaluations"])["mean"].mean().unstack()
    looks = style.looks(list(STRATEGIES))
    with plt.rc_context(style.SETTINGS):
        figure, ax = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
        for name in (name for name in STRATEGIES if name in means.index):
            look = looks[name]
            line = {"color": look.colour, "ls": look.dash, "marker": look.marker, "ms": 4}
            ax.plot(BUDGETS, means.loc[name], label=style.short(name), **line)
        style.evaluations(ax)
        ax.set_xticks(BUDGETS)
        ax.set_ylabel("optimum / best found (1 is the optimum)")
        ax.legend(fontsize=8)
        runs, spaces = int(table["runs"].min()), table["space"].nunique()
        ax.set_title(f"Mean over {spaces} recorded GPU spaces, {runs} runs each", fontsize=10)
        figure.savefig(target, dpi=150)


def main(
    files: Annotated[list[Path], typer.Argument(help="recorded spaces")], repeats: int = 10, jobs: int = 2
) -> None:
    """Do the runs that are missing, and write the table and the figure."""
    problems = [f"recorded:{path}" for path in files]
    settings = {"budget": BUDGETS[-1], "batch": 10, "study": "recorded-1600", "results": HERE.parent, "quiet": False}
    bbo_suite.run(list(STRATEGIES), problems, repeats=repeats, jobs=jobs, **settings)
    frame = bbo_suite.load("recorded-1600", HERE.parent)
    table = fractions(frame[frame["seed"] < repeats])
    table.to_csv(HERE / "fractions.csv", index=False, float_format="%.6g")
    draw(table, HERE / "fractions.png")


if __name__ == "__main__":
    typer.run(main)
