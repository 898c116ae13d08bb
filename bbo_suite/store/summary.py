"""One stored run in numbers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.level import LEVEL
from .ending import end_reason
from .fast_rows import pieces
from .identity import read_head
from .remeasured import final_speedup, finalists


def summarise(path: Path) -> dict[str, Any]:
    """Return one run in numbers, as `run --json` prints it; None where there is no number.

    The speedup is that of the best candidate as measured again, where it was; `search_speedup` is that of the search.

    Raises:
      UserError: a file is missing or damaged.
    """
    head, counts = read_head(path), _Counts(path)
    ended = end_reason(path, counts.evaluations)
    found = math.isfinite(counts.best)
    in_search = float(head["default"] / counts.best) if found and counts.best > 0 else None
    again = final_speedup(finalists(path), counts.best_evaluation)
    return {
        **{key: head[key] for key in ("problem", "strategy", "seed", "budget", "batch")},
        "evaluations": counts.evaluations,
        "unique": len(np.unique(np.concatenate(counts.digests))),
        "failed": counts.failed,
        "default": head["default"],
        "best": counts.best if found else None,
        "speedup": in_search if again is None else again if math.isfinite(again) else None,
        "search_speedup": in_search,
        "remeasured": again is not None,
        "optimum": head["optimum"],
        "strategy_seconds": counts.seconds["strategy_seconds"],
        "evaluation_seconds": counts.seconds["evaluation_seconds"],
        LEVEL: head[LEVEL],
        "complete": ended is not None,
        "ended": ended,
        "path": str(path),
    }


class _Counts:
    """The totals of a log, of which only one piece at a time is in memory."""

    def __init__(self, path: Path) -> None:
        from pandas.util import hash_array

        self.evaluations, self.failed, self.best, self.best_evaluation = 0, 0, math.inf, 0
        self.seconds = {"strategy_seconds": 0.0, "evaluation_seconds": 0.0}
        self.digests: list[NDArray[np.uint64]] = []
        for piece in pieces(path, ["digest"]):
            self.evaluations += len(piece)
            self.failed += int((piece["status"] != "ok").sum())
            if len(piece) and piece["value"].min() < self.best:
                place = int(piece["value"].to_numpy().argmin())
                self.best, self.best_evaluation = (
                    float(piece["value"].iloc[place]),
                    int(piece["evaluation"].iloc[place]),
                )
            self.digests.append(hash_array(piece["digest"].to_numpy(object)))
            for name in self.seconds:
                self.seconds[name] += float(piece[name].sum())
