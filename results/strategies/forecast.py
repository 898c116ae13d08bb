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
UNTIL = [
    *("price", "runs", "saved", "lost", "lost over families", "lost by fixed", "lost over families by fixed"),
    *("least that can be lost", "least over families"),
]
FORECAST = ["after", "for", "runs", "factor", "by median growth", "by other runs", "within 80 % interval"]
LOOKS = np.arange(50, CUTOFFS[-1] + 1, 10)
"""Evaluations after which a run may end."""
AIM = 0.6
"""Evaluations that were to be saved, for 5 % of the gain."""
EVERY = 4
"""Every so many runs are stopped: all would take minutes."""


def curves() -> pd.DataFrame:
    """Return the gains of the study's longest runs by evaluations; problems and strategies are the index."""
    runs = read_runs(HERE / "runs.csv.gz")
    runs = runs[(runs["budget"] == CUTOFFS[-1]) & runs["strategy"].isin(STRATEGIES)]
    tasks = pd.read_csv(HERE / "tasks.csv").set_index("task")["parameters"]
    costs = {str(n): runs["best"] if n == CUTOFFS[-1] else runs[f"best@{n}"] for n in CUTOFFS}
    gains = {n: (runs["default"] / cost - 1).clip(lower=0).round(6) for n, cost in costs.items()}
    families = runs["problem"].str.split("[/:]").str[0]
    found = pd.DataFrame({"family": families, "parameters": runs["problem"].map(tasks), **gains})
    return found.set_index([runs["problem"], runs["strategy"]])


def forecast(known: pd.DataFrame, first: int, target: int) -> NDArray[np.float64]:
    """Return `(runs, 6)` low, median, high, what came of it, by median growth, and by other runs of the same task.

    Each family is forecast by the others.
    """
    found = []
    for family, runs in known.groupby("family"):
        others = known[known["family"] != family]
        forecaster, usual = Forecaster(others), np.median(growth(others, first, target))
        for row, other in zip(runs.itertuples(index=False), by_other_runs(runs, target), strict=True):
            gain = partial(between, np.append(0, row[2:]))
            made = forecaster.forecast(gain, first, int(row.parameters), target)
            simple = usual * (gain(first) + LEAST_GAIN) - LEAST_GAIN
            found.append((made.low, made.median, made.high, gain(target), simple, other))
    return np.array(found)


def by_other_runs(known: pd.DataFrame, target: int) -> pd.Series:
    """Return for each run the median gain of the other runs of its strategy on its problem."""
    gains = pd.Series([between(np.append(0, row[2:]), target) for row in known.itertuples(index=False)], known.index)
    return gains.groupby(level=[0, 1]).transform(lambda own: [np.median(np.delete(own, i)) for i in range(len(own))])


def growth(known: pd.DataFrame, first: int, target: int) -> NDArray[np.float64]:
    """Return by which factors the gains of runs grew."""
    gains = [[between(np.append(0, row[2:]), n) for n in (first, target)] for row in known.itertuples(index=False)]
    before, after = np.array(gains).T + LEAST_GAIN
    return after / before


def between(gains: NDArray[np.float64], evaluations: float | NDArray[np.int64]) -> NDArray[np.float64] | np.float64:
    """Return gains between two cutoffs, on a line in the logarithms."""
    logs = np.interp(np.log(evaluations), np.log([1, *CUTOFFS]), np.log(gains + LEAST_GAIN))
    return np.exp(logs) - LEAST_GAIN


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
    for evaluations in map(int, LOOKS[:-1]):
        if worth.is_over(Curve(gain, evaluations, parameters)):
            return evaluations
    return CUTOFFS[-1]


def lost(runs: pd.DataFrame) -> tuple[float, float]:
    """Return the lost share of the gain of all runs together, and the mean over families of the share of each."""
    families = runs.groupby("family")[["gain", "whole"]].sum()
    return 1 - runs["gain"].sum() / runs["whole"].sum(), float((1 - families["gain"] / families["whole"]).mean())


def least_lost(gains: NDArray[np.float64], mean: float) -> float:
    """Return the least share of all gain that runs lose if they end after `mean` evaluations in the mean.

    Args:
      gains: `(runs, looks)`, weighted, all known beforehand: so each run ends where its gain less a price is largest.
    """
    low, high = 1e-15, 1.0
    for _ in range(60):
        price = np.sqrt(low * high)
        ends = np.argmax(gains - price * LOOKS, axis=1)
        low, high = (price, high) if LOOKS[ends].mean() > mean else (low, price)
    return float(1 - gains[np.arange(len(gains)), ends].sum() / gains[:, -1].sum())


def stopping(known: pd.DataFrame) -> Iterator[list[object]]:
    """Yield a row for each price, and one for the aim.

    It has the evaluations saved, the gain lost, what a budget as short for all loses, and what a perfect forecast does.
    """
    tried = known.groupby("family").nth(slice(None, None, EVERY))
    gains = [partial(between, np.append(0, row[2:])) for row in tried.itertuples(index=False)]
    whole = pd.DataFrame({"family": tried["family"], "whole": [gain(CUTOFFS[-1]) for gain in gains]})
    all_gains = np.array([gain(LOOKS) for gain in gains])
    shares = all_gains / whole.groupby("family")["whole"].transform("sum").to_numpy()[:, None]
    for price in (*PRICES, "the aim"):
        runs = stopped(known, price) if price in PRICES else None
        mean = (1 - AIM) * CUTOFFS[-1] if runs is None else runs["evaluations"].mean()
        fixed = whole.assign(gain=[gain(mean) for gain in gains])
        ours = (np.nan, np.nan) if runs is None else lost(runs)
        least = least_lost(all_gains, mean), least_lost(shares, mean)
        yield [price, len(tried), 1 - mean / CUTOFFS[-1], *ours, *lost(fixed), *least]


def main() -> None:
    """Write the files."""
    known = curves()
    packed = {"method": "gzip", "mtime": 0}
    known.to_csv(Path(bbo_suite.__file__).with_name("curves.csv.gz"), index=False, compression=packed)
    with (HERE / "forecast.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(FORECAST)
        for first, target in CASES:
            found = forecast(known, first, target)
            low, median, high, truth, simple, other = found[found[:, 3] > LEAST_GAIN].T
            within = (low <= truth + 1e-9) & (truth <= high + 1e-9)
            factors = [np.exp(np.median(abs(np.log(np.maximum(x, 1e-5) / truth)))) for x in (median, simple, other)]
            table.writerow([first, target, len(truth), *(f"{x:.2f}" for x in (*factors, within.mean()))])
    pd.DataFrame(stopping(known), columns=UNTIL).to_csv(HERE / "until.csv", index=False, float_format="%.3g")


if __name__ == "__main__":
    main()
