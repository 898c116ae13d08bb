"""`plot --figure program`: what was found for each problem, or by one run."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UserError

if TYPE_CHECKING:
    from ..registry import Registry
    from ..verify.best import Best


def draw_found(
    registry: Registry,
    study: str,
    results: Path,
    problems: Sequence[str] | None,
    run: Path | None,
    formats: Sequence[str],
) -> Iterator[Path]:
    """Draw the best candidate of each problem, or of a run's folder; what cannot be drawn is named on standard error.

    Args:
      problems: ids of those to draw (default: all).

    Raises:
      UserError: nothing can be drawn.
    """
    from ..figures import save
    from ..files.names import folder_name
    from ..store.folders import study_path

    complaints: list[str] = []
    paths, drawn = study_path(study, results) / "figures", False
    for best, figure in _drawings(_bests(registry, study, results, problems, run, complaints), complaints):
        yield from save([(f"program-{run.name if run else folder_name(best.problem)}", *figure)], paths, formats)
        drawn = True
    if not drawn:
        raise UserError(complaints[0] if complaints else f"study {study!r} has no run that can be read")
    for complaint in complaints:
        print(f"not drawn: {complaint}", file=sys.stderr)


def _bests(
    registry: Registry,
    study: str,
    results: Path,
    problems: Sequence[str] | None,
    run: Path | None,
    complaints: list[str],
) -> Iterator[Best]:
    from ..store.stored_run import open_run
    from ..verify.best import best_of, best_of_run

    if run is None:
        yield from best_of(registry, study, results, complaints, simplify=True, problems=problems)
    else:
        yield best_of_run(registry, open_run(run), simplify=True)


def _drawings(bests: Iterator[Best], complaints: list[str]) -> Iterator[tuple[Best, tuple]]:
    from ..figures import found
    from .tables import reserved

    while True:
        with reserved(True):  # problems may print
            if (best := next(bests, None)) is None:
                return
            try:
                figure = found.draw(best)
            except UserError as error:
                complaints.append(str(error))
                continue
        yield best, figure
