"""Writes end_to_end.png beside this file and prints what tuning all four passes gains on every program that has a run.

python results/xtat/programs.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from bbo_suite.stats import mean_interval
from bbo_suite.store.run_table import read_runs

HERE = Path(__file__).parent
CHOSE = ("ssd", "resnet_v2", "translate", "convdraw", "moe")
"""Models on which annealing's settings were chosen."""
MUCH = 1.05


def summary(speedups: pd.Series) -> dict[str, float]:
    """Return the means over programs, arithmetic as the source has it and geometric with its 95 % interval."""
    geometric, low, high = np.exp(mean_interval(np.log(speedups.to_numpy())))
    means = {"programs": len(speedups), "mean": speedups.mean(), "geometric": geometric, "low": low, "high": high}
    return means | {"median": speedups.median(), "above 5 %": (speedups >= MUCH).mean(), "most": speedups.max()}


def summaries(table: pd.DataFrame) -> pd.DataFrame:
    """Return the summary of each strategy: of all programs, and with and without the models that chose settings."""
    chose = table.index.str.contains("|".join(f"/{name}-" for name in CHOSE))
    parts = {"all": table, "chose settings": table[chose], "chose none": table[~chose]}
    both = {"of both": table.dropna()} if table.shape[1] > 1 else {}
    rows = {(n, s): summary(part[s].dropna()) for n, part in (parts | both).items() for s in part}
    return pd.DataFrame(rows).T


def draw(speedups: pd.Series) -> None:
    """Draw the programs that gain 5 % or more, as the source's figure does."""
    shown = speedups[speedups >= MUCH].sort_values()
    figure, ax = plt.subplots(figsize=(8, 0.17 * len(shown) + 1.2), layout="constrained")
    ax.barh(shown.index.str.removeprefix("joint/"), 100 * (shown - 1), color="#0072B2")
    ax.tick_params(axis="y", labelsize=7)
    ax.margins(y=0.01)
    ax.set_xlabel("gain over the compiler's default, %")
    ax.set_title(
        f"{len(shown)} of {len(speedups)} programs gain 5 % or more (XTAT's schedule, 5,000 evaluations)", fontsize=9
    )
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(HERE / "end_to_end.png", dpi=80)


if __name__ == "__main__":
    runs = read_runs(next(HERE.glob("end_to_end-runs.csv*")))
    table = runs.pivot_table(index="problem", columns="strategy", values="speedup")
    print(summaries(table).round(4).to_string())
    print(runs.groupby("strategy")[["seconds", "evaluation_seconds"]].describe().T.round(1).to_string())
    draw(table["joint"].dropna())
