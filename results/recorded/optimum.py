"""Prints optimum / best after some evaluations, the mean over spaces and over each, and may draw the former.

python results/recorded/optimum.py TABLE [FIGURE]
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from bbo_suite.figures.style import looks, save_with_few_colours
from bbo_suite.store.run_table import read_runs

HERE = Path(__file__).parent


def fractions(runs: pd.DataFrame) -> pd.DataFrame:
    """Return optimum / best, the mean over the runs of each strategy on each space: a column for each cutoff."""
    found = runs.filter(like="best@").assign(**{f"best@{runs['budget'].max()}": runs["best"]})
    shares = found.rdiv(runs["optimum"], axis=0).rename(columns=lambda column: int(column.removeprefix("best@")))
    return pd.concat([runs[["problem", "strategy"]], shares], axis=1).groupby(["problem", "strategy"]).mean()


def draw(means: pd.DataFrame, figure: Path) -> None:
    """Draw the means over spaces, a line for each strategy."""
    picture, ax = plt.subplots(figsize=(9, 5), layout="constrained")
    for name, look in looks(list(means.index)).items():
        ax.plot(means.columns, means.loc[name], color=look.colour, marker=look.marker, linestyle=look.dash, label=name)
    ax.set(xscale="log", xlabel="evaluations", ylabel="optimum / best found (1 is the optimum)", xticks=means.columns)
    ax.set_xticklabels([f"{n:,}" for n in means.columns])
    ax.minorticks_off()
    ax.legend(frameon=False)
    save_with_few_colours(picture, figure, 64, dpi=100)


if __name__ == "__main__":
    runs = read_runs(HERE / sys.argv[1])
    rows = fractions(runs)
    means = rows.groupby("strategy").mean()
    hits = (runs["best"] <= runs["optimum"] * (1 + 1e-9)).groupby(runs["strategy"]).mean()
    print(means.assign(hits=hits).round(3).to_string())
    print(rows.unstack("problem").T.round(3).to_string())
    if len(sys.argv) > 2:
        draw(means, HERE / sys.argv[2])
