"""A table of runs as a CSV file, one row each: what remains of a published study whose evaluations are not kept."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.level import LEVEL, Level
from ..errors import UserError
from .formulas import unmarked

if TYPE_CHECKING:
    import pandas as pd

NEEDED = ("problem", "strategy", "seed", "default", "best", "evaluations")
_TEXTS = ("study", "problem", "strategy", "fingerprint", "unit")
_NUMBERS = ("default", "best")
_COUNTS = ("seed", "evaluations", "budget")
_UNKNOWN = ("unique", "strategy_seconds", "evaluation_seconds")
_ELSE: dict[str, Any] = {
    **{"unit": "", "fingerprint": "", "failed": 0, "study": ""},
    **dict.fromkeys(_UNKNOWN, math.nan),
}


def run_tables(study: Path) -> list[Path]:
    """Return the tables of runs in a study's folder: `runs.csv`, and files whose names end in `-runs.csv`."""
    return sorted({*study.glob("runs.csv"), *study.glob("*-runs.csv")})


def read_run_table(file: Path) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the name and the runs of each study in a table: a study has one budget, in evaluations.

    Columns: problem, strategy, level (older tables have uses_structure and uses_parts), seed, default, best,
    evaluations, budget (where missing, the evaluations), unit, fingerprint, unique, failed, strategy_seconds,
    evaluation_seconds (where missing: unknown).

    Raises:
      UserError: the file cannot be read, or is not such a table.
    """
    name = file.parent.name if file.name == "runs.csv" else f"{file.parent.name}-{file.name.removesuffix('-runs.csv')}"
    for study, of_study in ((str(study), group) for study, group in _read(file).groupby("study", sort=True)):
        several = of_study["budget"].nunique() > 1
        for budget, runs in of_study.groupby("budget", sort=True):
            yield f"{study or name}-{budget}" if several else (study or name), runs.reset_index(drop=True)


def _read(file: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        unknown = {name: [""] for name in _UNKNOWN}
        frame = pd.read_csv(file, keep_default_na=False, na_values=unknown, dtype=dict.fromkeys(_TEXTS, str))
        if missing := [name for name in NEEDED if name not in frame]:
            raise UserError(
                f"{file} is not a table of runs: it has no column {missing[0]!r}; add it, or rename the file"
            )
        frame = frame.assign(**{name: value for name, value in _ELSE.items() if name not in frame})
        frame[LEVEL] = [Level.of(row).word for row in frame.to_dict("records")]
        frame = frame if "budget" in frame else frame.assign(budget=frame["evaluations"])
        types = dict.fromkeys(_NUMBERS, "float64") | dict.fromkeys(_COUNTS, "int64")
        texts = {name: frame[name].map(unmarked) for name in _TEXTS}
        frame = frame.assign(**texts).astype(types)
        _check(frame)
        return frame
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from None
    except (ValueError, OverflowError) as error:
        raise UserError(f"{file} is not a table of runs ({error}); restore it, or rename the file") from None


def _check(frame: pd.DataFrame) -> None:
    """Refuse a table whose numbers no run can have.

    Raises:
      ValueError: says which.
    """
    if not (abs(frame["default"]) < math.inf).all() or frame["best"].isna().any():
        raise ValueError("a default or a best cost is no number")
    if (frame[["evaluations", "budget"]] < 1).any(axis=None):
        raise ValueError("a run has no evaluation")
    if frame.duplicated(["study", "problem", "fingerprint", "strategy", "seed", "budget"]).any():
        raise ValueError("it has a run twice")
