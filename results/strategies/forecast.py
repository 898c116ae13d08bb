"""How good are forecasts? Writes the curves that ship, and two tables: each family forecast from all others.

python results/strategies/forecast.py    # forecast.csv, until.csv, and bbo_suite/curves.csv.gz
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import bbo_suite
from bbo_suite.forecast import CUTOFFS, Curve, Forecaster, Worth, price_of
from bbo_suite.store.run_table import read_runs

HERE = Path(__file__).parent
STRATEGIES = ("annealing", "evolution", "joint", "local", "mbo", "portfolio")
"""Those of ours with runs of 10,000 evaluations."""
CASES = ((200, 400), (200, 1_000), (200, 10_000), (1_000, 2_000), (1_000, 5_000), (1_000, 10_000))
LEAST_GAIN = 1e-3
"""Of runs with smaller gains the factor says nothing."""
PRICES = ("worth-it", "0.2%/1000", "0.1%/100")
UNTIL = ["price", "runs", "saved", "lost", "lost over families", "lost by fixed", "lost over families by fixed"]
EVERY = 4
"""Every so many runs are stopped: all would take minutes."""


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


def stopped(known: pd.DataFrame, price: str) -> pd.DataFrame:
    """Return for each run when `run --until PRICE` ends it, its gain then, and its gain at its end."""
    found = []
    for family, runs in known.groupby("family"):
        forecaster = Forecaster(known[known["family"] != family])
        for row in runs.iloc[::EVERY].itertuples(index=False):
            gain = partial(between, np.append(0, row[2:]))
            end = _end(Worth(price_of(price), CUTOFFS[-1], forecaster), gain, int(row.parameters))
            found.append((family, end, gain(end), gain(CUTOFFS[-1])))
    return pd.DataFrame(found, columns=["family", "evaluations", "gain", "whole"])


def _end(worth: Worth, gain: Callable[[float], float], parameters: int) -> int:
    """Return the evaluations after which a run ends that is asked after each batch of 10."""
    for evaluations in range(50, CUTOFFS[-1], 10):
        if worth.is_over(Curve(gain, evaluations, parameters)):
            return evaluations
    return CUTOFFS[-1]


def lost(runs: pd.DataFrame) -> tuple[float, float]:
    """Return the lost share of the gain of all runs together, and the mean over families of the share of each."""
    families = runs.groupby("family")[["gain", "whole"]].sum()
    return 1 - runs["gain"].sum() / runs["whole"].sum(), float((1 - families["gain"] / families["whole"]).mean())


def stopping(known: pd.DataFrame) -> Iterator[list[object]]:
    """Yield a row for each price: the evaluations saved, the gain lost, and what a budget as short for all loses."""
    tried = known.groupby("family").nth(slice(None, None, EVERY))
    gains = [partial(between, np.append(0, row[2:])) for row in tried.itertuples(index=False)]
    whole = pd.DataFrame({"family": tried["family"], "whole": [gain(CUTOFFS[-1]) for gain in gains]})
    for price in PRICES:
        runs = stopped(known, price)
        mean = runs["evaluations"].mean()
        fixed = whole.assign(gain=[gain(mean) for gain in gains])
        yield [price, len(runs), 1 - mean / CUTOFFS[-1], *lost(runs), *lost(fixed)]


def main() -> None:
    """Write the files."""
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
    pd.DataFrame(stopping(known), columns=UNTIL).to_csv(HERE / "until.csv", index=False, float_format="%.3g")


if __name__ == "__main__":
    main()
