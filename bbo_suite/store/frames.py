"""The evaluations of a study as one pandas frame."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.arguments import typed
from ..core.level import LEVEL
from ..errors import UserError
from ..files.names import printable
from .folders import name_damaged, readable, run_folders
from .identity import BASELINES, known_speedups, read_head
from .remeasured import finalists
from .rows import COLUMNS, joined_runs, open_log

if TYPE_CHECKING:
    import pandas as pd

_FIXED = ("problem", "strategy", "seed", "default", "budget", "unit", LEVEL, "parameters")
"""Columns that are constant within a run."""
REMEASURED = "remeasured"
"""The column of speedups that were measured again."""
_AGAIN = "speedups measured again"


@typed
def load(study: str, results: Path | str = "results", texts: Collection[str] = (), only: str = "*") -> pd.DataFrame:
    """Return every evaluation of a study, one row each; damaged runs are left out and named on standard error.

    Columns: problem, strategy, seed, evaluation, value, status, speedup (the default's cost over the best cost so
    far), strategy_seconds, evaluation_seconds, default, budget, unit, level, parameters (their
    number), and the texts. If a run measured its best candidates again: remeasured, the speedup of the best candidate
    so far by these measurements, nan if it is not among them. `frame.attrs["baselines"]` has the speedups, by name,
    that each problem knows.

    Args:
      texts: which of digest, config and reason to read; they double the memory and the time of a large study.
      only: the folder of one run, or a pattern of folders; all by default.

    Raises:
      UserError: there is no such study, or every run of it is damaged.
    """
    paths = [path for path in run_folders(study, results) if path.match(only)]
    errors: list[UserError] = []
    heads = dict(readable(paths, lambda path: (path, read_checked(path)), errors))
    read = list(joined_runs(heads, texts, errors))
    name_damaged(errors, some=bool(read))
    descriptions = [described(path, heads[path]) for part in read for path in part.paths]
    return joined(descriptions, [length for part in read for length in part.lengths], [part.frame for part in read])


def read_checked(path: Path) -> dict[str, Any]:
    """Return the content of a run's `run.json`.

    Raises:
      UserError: it is damaged, or the file of what was measured again is.
    """
    finalists(path)
    return read_head(path)


def described(path: Path, head: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a run's `run.json` with the number of parameters, which older ones lack.

    Added are the speedups of the candidates that were measured again, by evaluation.
    """
    again = {each.evaluation: each.speedup for each in finalists(path)}
    return {_AGAIN: again, **({} if "parameters" in head else {"parameters": _parameters(path)}), **head}


def joined(heads: Sequence[dict[str, Any]], lengths: Sequence[int], frames: list[pd.DataFrame]) -> pd.DataFrame:
    """Return the frame of a study.

    Args:
      heads: the description of each run.
      lengths: its number of rows.
      frames: the rows of all runs, in any partition. Their columns are removed.
    """
    import pandas as pd

    columns: dict[str, Any] = {str(name): _joined(frames, str(name)) for name in list(frames[0])}
    columns["speedup"] = _speedups(heads, lengths, columns["value"])
    if any(head[_AGAIN] for head in heads):
        columns[REMEASURED] = _remeasured(heads, lengths, columns["value"])
    columns |= {name: _repeated([head[name] for head in heads], lengths) for name in _FIXED}
    frame = pd.DataFrame(columns, copy=False)
    frame.attrs[BASELINES] = {printable(head["problem"]): known for head in heads if (known := known_speedups(head))}
    return frame


def _speedups(heads: Sequence[dict[str, Any]], lengths: Sequence[int], values: pd.Series) -> NDArray[np.float64]:
    """Return the default's cost over the best cost so far in each run."""
    speedups = values.to_numpy(np.float64, copy=True)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # a cost of 0 is an infinite speedup
        for head, end, length in zip(heads, itertools.accumulate(lengths), lengths, strict=True):
            own = speedups[end - length : end]
            np.divide(float(head["default"]), np.minimum.accumulate(own, out=own), out=own)
    return speedups


def _remeasured(heads: Sequence[dict[str, Any]], lengths: Sequence[int], values: pd.Series) -> NDArray[np.float64]:
    """Return the speedup, measured again, of the best candidate so far in each run: 0 before one works, nan if not."""
    costs, again = values.to_numpy(np.float64), np.full(len(values), np.nan)
    for head, end, length in zip(heads, itertools.accumulate(lengths), lengths, strict=True):
        best = np.minimum.accumulate(costs[end - length : end])
        starts = np.flatnonzero(np.append(True, best[1:] < best[:-1])[:length])
        known = [0.0 if np.isinf(best[start]) else head[_AGAIN].get(int(start) + 1, np.nan) for start in starts]
        again[end - length : end] = np.repeat(known, np.diff([*starts, length]))
    return again


def _joined(parts: list[pd.DataFrame], name: str) -> pd.Series:
    """Remove a column from all parts and join it, so that only one column at a time is in memory twice."""
    import pandas as pd
    from pandas.api.types import union_categoricals

    taken: list[pd.Series] = [part.pop(name) for part in parts]
    if taken[0].dtype == "category":
        return pd.Series(union_categoricals(taken))
    return pd.concat(taken, ignore_index=True)


def _repeated(values: list[Any], lengths: Sequence[int]) -> Any:  # noqa: ANN401 - an array of numpy or of pandas
    """Return a column that is constant in each run, text as a category."""
    import pandas as pd

    if isinstance(values[0], str):
        return pd.Categorical([printable(value) for value in values]).repeat(lengths)
    column = np.array(values)
    small = column.dtype.kind == "i" and abs(column).max() < 2**31
    return np.repeat(column.astype(np.int32) if small else column, lengths)


def _parameters(path: Path) -> int:
    """Return the number of parameters from a run's first row, the only source in older runs."""
    with open_log(path) as log:
        config = next(itertools.islice(log, 1, None), b"," * len(COLUMNS)).split(b",")[COLUMNS.index("config")]
    return config.count(b"-") + 1 if b"-" in config else len(config)
