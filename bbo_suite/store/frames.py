"""Stored runs as tables: every evaluation in a pandas frame, and one summary a run."""

from __future__ import annotations

import io
import math
from collections.abc import Collection, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.problem import Status
from ..errors import UserError
from ..files import read_json
from .diagnostics import DIAGNOSTICS
from .identity import RUN, read_head
from .rows import HEADER, ROWS
from .run_folder import END, complete

if TYPE_CHECKING:
    import pandas as pd

TEXTS = ("digest", "config", "reason")
"""The columns of text: most of the memory of a large frame, and few readers need them."""

_FIXED = ("problem", "strategy", "seed", "default", "budget", "unit", "uses_structure", "parameters")
_TYPES: dict[str, Any] = {
    "evaluation": "int32",
    "digest": "str",
    "value": "float64",
    "status": "category",
    "strategy_seconds": "float32",
    "evaluation_seconds": "float32",
    "config": "str",
    "reason": "str",
}


def study_path(study: str, results: Path | str) -> Path:
    """Return the folder of a study.

    Raises:
      UserError: there is no run in it.
    """
    path = Path(results) / study
    if not list(path.glob(f"*/{RUN}")):
        known = sorted({run.parents[1].name for run in Path(results).glob(f"*/*/{RUN}")})
        hint = f"known: {', '.join(known)}" if known else "no study is there yet"
        raise UserError(f"there is no study {study!r} in {results} ({hint}); make one with `run --study {study}`")
    return path


def rows(path: Path, texts: Collection[str] = TEXTS) -> pd.DataFrame:
    """Return the complete rows of one run's folder, also while it is written; columns as in `rows.csv`.

    Args:
      texts: which of the columns of text to read.
    """
    import pandas as pd

    file = path / ROWS
    data = file.read_bytes() if file.exists() else b""
    whole = data[: data.rfind(b"\n") + 1] or HEADER.encode()
    types = {name: kind for name, kind in _TYPES.items() if name not in TEXTS or name in texts}
    types["status"] = pd.CategoricalDtype([status.word for status in Status])  # of all runs alike, so cheap to join
    try:
        how: dict[str, Any] = {"keep_default_na": False, "low_memory": False, **_exact()}
        frame = pd.read_csv(io.BytesIO(whole), usecols=list(types), dtype=types, **how)
        return frame.astype({name: "category" for name in ("config", "reason") if name in texts})
    except ValueError as error:
        raise UserError(f"{file} is damaged ({error}); restore it, or delete its folder to run it anew") from None


@cache
def _exact() -> dict[str, Any]:
    """Return what makes pandas read floats to the last digit, as it does by itself since 3.1."""
    import pandas as pd

    new = tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1)
    return {} if new else {"float_precision": "round_trip"}


def load(study: str, results: Path | str = "results", texts: Collection[str] = (), only: str = "*") -> pd.DataFrame:
    """Return every evaluation of a study, one row each.

    Columns: problem, strategy, seed, evaluation, value, status, speedup (the default's cost over the best cost so
    far), strategy_seconds, evaluation_seconds, default, budget, unit, uses_structure, parameters (their number), and
    the texts.

    Args:
      texts: which of digest, config and reason to read; they double the memory and the time of a large study.
      only: the folder of one run; all when left out.

    Raises:
      UserError: there is no such study, or a file of it is damaged.
    """
    paths = [file.parent for file in sorted(study_path(study, results).glob(f"{only}/{RUN}"))]
    heads = [read_head(path) for path in paths]
    parts = [rows(path, texts) for path in paths]
    return joined([(described(path, head), part) for path, head, part in zip(paths, heads, parts, strict=True)])


def described(path: Path, head: dict[str, Any]) -> dict[str, Any]:
    """Return what a run's `run.json` says of it, with the number of parameters, which older ones do not tell."""
    return {"parameters": _parameters(path), **head}


def joined(runs: Sequence[tuple[dict[str, Any], pd.DataFrame]]) -> pd.DataFrame:
    """Return the frame of a study from each run's description and rows, of which the columns are taken out."""
    import pandas as pd

    heads, parts = [head for head, _ in runs], [part for _, part in runs]
    lengths = [len(part) for part in parts]
    for head, part in runs:
        part["speedup"] = head["default"] / part["value"].cummin()
    columns: dict[str, Any] = {str(name): _joined(parts, str(name)) for name in list(parts[0])}
    columns |= {name: _repeated([head[name] for head in heads], lengths) for name in _FIXED}
    return pd.DataFrame(columns, copy=False)


def _joined(parts: list[pd.DataFrame], name: str) -> pd.Series:
    """Take a column out of all parts, so that no more than one is in memory twice."""
    import pandas as pd
    from pandas.api.types import union_categoricals

    taken: list[pd.Series] = [part.pop(name) for part in parts]
    if taken[0].dtype == "category":
        return pd.Series(union_categoricals(taken))
    return pd.concat(taken, ignore_index=True)


def _repeated(values: list[Any], lengths: list[int]) -> Any:  # noqa: ANN401 - an array of numpy or of pandas
    """Return a column that is constant in each run, text as a category."""
    import numpy as np
    import pandas as pd

    if isinstance(values[0], str):
        return pd.Categorical([printable(value) for value in values]).repeat(lengths)
    column = np.array(values)
    small = column.dtype.kind == "i" and abs(column).max() < 2**31
    return np.repeat(column.astype(np.int32) if small else column, lengths)


def printable(text: str) -> str:
    """Return text without the half characters that stand for the bytes of a strange file name: Arrow refuses them."""
    return text.encode(errors="backslashreplace").decode()


def _parameters(path: Path) -> int:
    """Return the number of parameters of a run's candidates by its first row; of older runs nothing else says it."""
    with (path / ROWS).open(encoding="utf-8") if (path / ROWS).exists() else io.StringIO() as file:
        config = next(islice(file, 1, None), ",,,,,,").split(",")[6]
    return config.count("-") + 1 if "-" in config else len(config)


def diagnostics(study: str, results: Path | str = "results") -> pd.DataFrame:
    """Return what the strategies of a study said of themselves: problem, strategy, seed, evaluation, name, value.

    Raises:
      UserError: there is no such study, or a file of it is damaged.
    """
    import pandas as pd

    columns = ["problem", "strategy", "seed"]
    frames = [pd.DataFrame(columns=[*columns, "evaluation", "name", "value"])]
    for file in sorted(study_path(study, results).glob(f"*/{DIAGNOSTICS}")):
        try:
            frame = pd.read_csv(file, dtype={"evaluation": int, "name": str, "value": float}, keep_default_na=False)
        except ValueError as error:
            raise UserError(f"{file} is damaged ({error}); restore it, or delete it") from None
        head = read_json(file.parent / RUN)
        names = {column: printable(head[column]) if column != "seed" else head[column] for column in columns}
        frames.append(frame.assign(**names)[frames[0].columns])
    return pd.concat(frames[1:] or frames, ignore_index=True)


def summarise(path: Path) -> dict[str, Any]:
    """Return one run in numbers, as `run --json` prints it; null where there is no number."""
    head, frame = read_json(path / RUN), rows(path)
    best = frame["value"].min() if len(frame) else math.inf
    found = bool(math.isfinite(best))
    ended = complete(path, len(frame))
    return {
        **{key: head[key] for key in ("problem", "strategy", "seed", "budget", "batch")},
        "evaluations": len(frame),
        "unique": int(frame["digest"].nunique()),
        "failed": int((frame["status"] != "ok").sum()),
        "default": head["default"],
        "best": float(best) if found else None,
        "speedup": float(head["default"] / best) if found and best > 0 else None,
        "optimum": head["optimum"],
        "strategy_seconds": float(frame["strategy_seconds"].sum()),
        "evaluation_seconds": float(frame["evaluation_seconds"].sum()),
        "uses_structure": head["uses_structure"],
        "complete": ended,
        "ended": read_json(path / END).get("reason") if ended else None,
        "path": str(path),
    }
