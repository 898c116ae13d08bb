"""A table of the speedups that problems know besides the default, and of the runs that beat them."""

from __future__ import annotations

import numpy as np

from ..store.identity import PUBLISHED_IN, known_speedups
from ..store.results import RunResult
from . import table
from .scores import Scores
from .table import Table


def baselines(scores: Scores) -> Table:
    """Return each baseline and known optimum or bound with its speedup, and how many runs are better."""
    rows, sources = [], []
    for problem in scores.cutoffs:
        runs = [run for run in scores.compared if run.problem == problem]
        sources += list(dict.fromkeys(f"{problem}: {known}." for run in runs if (known := run.head.get(PUBLISHED_IN))))
        for name, speedup in sorted(_known(runs).items(), key=lambda item: -item[1]):
            found = [scores.speedup(run) for run in runs]
            best, better = max(found), sum(value > speedup for value in found)
            cells = [table.text(problem), table.text(name), table.speedup(speedup), table.speedup(best)]
            gap = speedup / best - 1 if best > 0 else np.nan
            text = f"{100 * gap:+,.2f} %" if best > 0 else "–"
            share = table.number(better / len(found), f"{better} of {len(found)}")
            rows.append([*cells, table.number(gap, text), share])
    columns = ["problem", "baseline", "its speedup", "best run", "gap of the best run", "runs that are better"]
    note = f"{_NOTE} Published: {' '.join(sources)}" if sources else _NOTE
    return Table("baselines", "Baselines that the problems know", note, columns, rows)


_NOTE = """Speedup over the compiler's default. As stored at the start of the first run that knows them; a baseline need
not be in the space that was searched, and no candidate is better than a bound. Gap: by how much the best run costs more
than the baseline; less than 0 if it costs less. On a problem with published results this says more than the
speedup."""


def _known(runs: list[RunResult]) -> dict[str, float]:
    return next((known for run in runs if (known := known_speedups(run.head))), {})
