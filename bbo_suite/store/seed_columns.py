"""A table of runs with a column of gains for each seed: a third of the size of one with a row for each run."""

from __future__ import annotations

from pathlib import Path

import pandas as pd


def read(file: Path, key: list[str]) -> pd.DataFrame:
    """Return one row for each run: the columns of `key`, own_ms, seed and gain; none if there is no file."""
    if not file.exists():
        return pd.DataFrame(columns=[*key, "own_ms", "seed", "gain"])
    rows = pd.read_csv(file).melt([*key, "own_ms"], var_name="seed", value_name="gain")
    return rows.dropna().astype({"seed": int})


def write(file: Path, key: list[str], runs: pd.DataFrame) -> None:
    """Write such rows: the gain of each seed, and the median of own_ms over the seeds."""
    table = runs.pivot(index=key, columns="seed", values="gain")
    table.insert(0, "own_ms", runs.groupby(key)["own_ms"].median().map("{:.2g}".format))
    table.to_csv(file, float_format="%.4g")
