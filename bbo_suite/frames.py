"""Stored runs as tables: every evaluation in a pandas frame, and one summary a run."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .diagnostics import DIAGNOSTICS
from .errors import UserError
from .rows import HEADER
from .store import ROWS, RUN, complete, read_json

if TYPE_CHECKING:
    import pandas as pd

_TYPES = {
    "evaluation": "int32",
    "digest": "str",
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


def rows(path: Path) -> pd.DataFrame:
    """Return the complete rows of one run's folder, also while it is written; columns as in `rows.csv`."""
    import pandas as pd

    file = path / ROWS
    data = file.read_bytes() if file.exists() else b""
    whole = data[: data.rfind(b"\n") + 1] or HEADER.encode()
    try:
        exact = {"value": float}  # what pandas does by itself may differ in the last digit
        columns = [*_TYPES, *exact]
        frame = pd.read_csv(io.BytesIO(whole), usecols=columns, dtype=_TYPES, converters=exact, keep_default_na=False)
        return frame.astype(exact)
    except ValueError as error:
        raise UserError(f"{file} is damaged ({error}); restore it, or delete its folder to run it anew") from None


def load(study: str, results: Path | str = "results") -> pd.DataFrame:
    """Return every evaluation of a study, one row each.

    Columns: problem, strategy, seed, evaluation, value, status, speedup (the default's cost over the best cost so
    far), strategy_seconds, evaluation_seconds, digest, config, reason, default, budget, unit, uses_structure.

    Raises:
      UserError: there is no such study, or a file of it is damaged.
    """
    import pandas as pd

    frames = []
    for file in sorted(study_path(study, results).glob(f"*/{RUN}")):
        head, frame = read_json(file), rows(file.parent)
        for column in ("problem", "strategy", "seed", "default", "budget", "unit", "uses_structure"):
            frame[column] = head[column]
        frame["speedup"] = head["default"] / frame["value"].cummin()
        frames.append(frame)
    joined = pd.concat(frames, ignore_index=True)
    return joined.astype(dict.fromkeys(["problem", "strategy", "unit", "status"], "category"))


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
        frames.append(frame.assign(**{column: head[column] for column in columns})[frames[0].columns])
    return pd.concat(frames[1:] or frames, ignore_index=True)


def summarise(path: Path) -> dict[str, Any]:
    """Return one run in numbers, as `run --json` prints it; null where there is no number."""
    head, frame = read_json(path / RUN), rows(path)
    best = frame["value"].min() if len(frame) else math.inf
    found = bool(math.isfinite(best))
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
        "complete": complete(path, len(frame)),
        "path": str(path),
    }
