"""One stored run in numbers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from .frames import rows
from .identity import read_head
from .run_folder import end_reason


def summarise(path: Path) -> dict[str, Any]:
    """Return one run in numbers, as `run --json` prints it; None where there is no number.

    Raises:
      UserError: a file is missing or damaged.
    """
    head, frame = read_head(path), rows(path)
    best = frame["value"].min() if len(frame) else math.inf
    found = bool(math.isfinite(best))
    ended = end_reason(path, len(frame))
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
        "complete": ended is not None,
        "ended": ended,
        "path": str(path),
    }
