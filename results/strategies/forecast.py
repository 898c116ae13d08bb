"""How good are forecasts? Writes the curves that ship, and forecast.csv: each family forecast from all others.

python results/strategies/forecast.py    # forecast.csv, and bbo_suite/curves.csv.gz
"""

from __future__ import annotations

import csv
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import bbo_suite
from bbo_suite.forecast import CUTOFFS, Forecaster
from bbo_suite.store.run_table import read_runs

HERE = Path(__file__).parent
STRATEGIES = ("annealing", "evolution", "joint", "local", "mbo", "portfolio")
"""Those of ours with runs of 10,000 evaluations."""
CASES = ((200, 400), (200, 1_000), (200, 10_000), (1_000, 2_000), (1_000, 5_000), (1_000, 10_000))
LEAST_GAIN = 1e-3
"""Of runs with smaller gains the factor says nothing."""


def curves() -> pd.DataFrame:
    """Return the gains of the study's longest runs by evaluations."""
    runs = read_runs(HERE / "runs.csv.gz")
    runs = runs[(runs["budget"] == CUTOFFS[-1]) & runs["strategy"].isin(STRATEGIES)]
    tasks = pd.read_csv(HERE / "tasks.csv").set_index("task")["parameters"]
    costs = {str(n): runs["best"] if n == CUTOFFS[-1] else runs[f"best@{n}"] for n in CUTOFFS}
    gains = {n: (runs["default"] / cost - 1).clip(lower=0).round(6) for n, cost in costs.items()}
    families = runs["problem"].str.split("[/:]").str[0]
    return pd.DataFrame({"family": families, "parameters": runs["problem"].map(tasks), **gains})


def forecast(known: pd.DataFrame, first: int, target: int) -> NDArray[np.float64]:
    """Return `(runs, 5)` low, median, high, what came of it, and what the median growth of runs would make of it.

    Each family is forecast by the others.
    """
    found = []
    for family, runs in known.groupby("family"):
        others = known[known["family"] != family]
        forecaster, usual = Forecaster(others), np.median(growth(others, first, target))
        for row in runs.itertuples(index=False):
            gain = partial(between, np.append(0, row[2:]))
            made = forecaster.forecast(gain, first, int(row.parameters), target)
            simple = usual * (gain(first) + LEAST_GAIN) - LEAST_GAIN
            found.append((made.low, made.median, made.high, gain(target), simple))
    return np.array(found)


def growth(known: pd.DataFrame, first: int, target: int) -> NDArray[np.float64]:
    """Return by which factors the gains of runs grew."""
    gains = [[between(np.append(0, row[2:]), n) for n in (first, target)] for row in known.itertuples(index=False)]
    before, after = np.array(gains).T + LEAST_GAIN
    return after / before


def between(gains: NDArray[np.float64], evaluations: float) -> float:
    """Return a gain between two cutoffs, on a line in the logarithms."""
    logs = np.interp(np.log(evaluations), np.log([1, *CUTOFFS]), np.log(gains + LEAST_GAIN))
    return float(np.exp(logs) - LEAST_GAIN)


def main() -> None:
    """Write both files."""
    known = curves()
    packed = {"method": "gzip", "mtime": 0}
    known.to_csv(Path(bbo_suite.__file__).with_name("curves.csv.gz"), index=False, compression=packed)
    with (HERE / "forecast.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["after", "for", "runs", "median factor", "by median growth", "within 80 % interval"])
        for first, target in CASES:
            found = forecast(known, first, target)
            low, median, high, truth, simple = found[found[:, 3] > LEAST_GAIN].T
            within = (low <= truth + 1e-9) & (truth <= high + 1e-9)
            ours, usual = (np.exp(np.median(abs(np.log(np.maximum(x, 1e-5) / truth)))) for x in (median, simple))
            table.writerow([first, target, len(truth), f"{ours:.2f}", f"{usual:.2f}", f"{within.mean():.2f}"])


if __name__ == "__main__":
    main()
