"""What was found for a problem: its program before and after, or the changes where no program is known."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from ..errors import UserError, error_boundary
from . import style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from ..verify.best import Best


def draw(best: Best) -> tuple[Figure, pd.DataFrame]:
    """Draw the minimal candidate of a problem (see `bbo_suite.verify.best`); return the figure and its data.

    Raises:
      UserError: no candidate succeeded, or the problem is not available.
    """
    if best.minimal is None or best.minimal_again is None or best.loaded is None or best.run is None:
        raise UserError(f"{best.problem} cannot be drawn: {best.why_not or 'no candidate succeeded'}")
    problem, unit = best.loaded, best.loaded.unit
    with error_boundary(f"problem {problem.id}", "picture"):
        pair = [problem.picture(config) for config in (problem.default_row(), best.minimal.config)]
    again = best.minimal_again
    costs = f"{_cost(median(again.defaults), unit)} → {_cost(again.value, unit)}"
    times = f", speedup {again.speedup:.4f}" if again.speedup else ""
    title = f"{style.short(problem.id, 60)}: {costs}{times}, by {best.run.identity.strategy}"
    if pair[0] is None or pair[1] is None:
        from . import changes

        return changes.draw(best.changes(), title, _note(best))
    from . import program

    return program.draw(pair[0], pair[1], unit, title, _note(best))


def _cost(cost: float, unit: str) -> str:
    return style.duration(cost) if unit == "seconds" else f"{cost:,.6g} {unit}"


def _note(best: Best) -> str:
    assert best.minimal is not None
    needed, changes, noise = len(best.minimal.needed), best.minimal.changes, best.minimal.noise
    if needed == changes:
        return f"All {needed:,} changes are needed." if needed != 1 else "The one change is needed."
    rise = f"rises by no more than the noise, {100 * noise:.2f} %," if noise else "does not rise"
    return f"{needed:,} of {changes:,} changes are needed: the cost {rise} if the others return to the default."
