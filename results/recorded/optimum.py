"""Prints optimum / best after some evaluations, the mean over spaces, and over each: `optimum.py TABLE`."""

import sys
from pathlib import Path

import pandas as pd

from bbo_suite.store.run_table import read_runs

if __name__ == "__main__":
    runs = read_runs(Path(__file__).with_name(sys.argv[1]))
    cutoffs = [column for column in runs if column.startswith("best@")]
    found = runs[cutoffs].assign(**{f"best@{runs['budget'].max()}": runs["best"]})
    fractions = found.rdiv(runs["optimum"], axis=0).rename(columns=lambda column: column.removeprefix("best@"))
    rows = pd.concat([runs[["problem", "strategy"]], fractions], axis=1).groupby(["problem", "strategy"]).mean()
    print(rows.groupby("strategy").mean().round(3).to_string())
    print(rows.unstack("problem").T.round(3).to_string())
