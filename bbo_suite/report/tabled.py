"""A study of which only a table of runs is left, in the form that the report takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.level import LEVEL
from .run_summary import RunSummary
from .study_data import StudyData

if TYPE_CHECKING:
    import pandas as pd

_HEAD = ("problem", "fingerprint", "strategy", "seed", "budget", "default", "unit", LEVEL)


def tabled(name: str, runs: pd.DataFrame) -> StudyData:
    """Return a study of the rows of a table (see `store.run_table`): costs are known at the end of each run only."""
    summaries = [_summary(row) for row in runs.to_dict("records")]
    summaries.sort(key=lambda run: (run.problem, run.strategy, run.seed))
    return StudyData(name, summaries, _frame(runs), [], only_results=True)


def _summary(row: Mapping[Any, Any]) -> RunSummary:
    head = {name: row[name] for name in _HEAD} | {"options": None, "batch": None, "optimum": None}
    found = np.isfinite(row["best"])
    return RunSummary(
        problem=row["problem"],
        strategy=row["strategy"],
        head=head,
        ended="budget" if row["evaluations"] >= row["budget"] else "covered",
        error="",
        evaluations=row["evaluations"],
        unique=row["unique"],
        failures=Counter({"failed": row["failed"]} if row["failed"] else {}),
        reasons=Counter(),
        steps=np.ones(int(found), np.int64),  # when it was found is not known, only that it was
        costs=np.full(int(found), row["best"]),
        strategy_seconds=row["strategy_seconds"],
        evaluation_seconds=row["evaluation_seconds"],
        noise=np.nan,
    )


def _frame(runs: pd.DataFrame) -> pd.DataFrame:
    """Return one row per run, its last evaluation, in the form of `bbo_suite.load`."""
    names = ["problem", "strategy", "seed", "default", "budget", "unit", LEVEL]
    with np.errstate(divide="ignore"):
        speedup = runs["default"].to_numpy() / runs["best"].to_numpy()
    seconds = {name: runs[name] / runs["evaluations"] for name in ("strategy_seconds", "evaluation_seconds")}
    columns = {"evaluation": runs["budget"], "value": runs["best"], "status": "ok", "speedup": speedup, "parameters": 0}
    return runs[names].assign(**columns, **seconds).astype({"problem": "category", "strategy": "category"})
