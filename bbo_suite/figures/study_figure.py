"""The figures that a study may have. Their modules, which import matplotlib, are loaded when one is drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..errors import UserError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

PANELS, PAGES = 9, 3
"""Panels on a page, and pages of a figure, at most."""


@dataclass(frozen=True)
class StudyFigure:
    """A figure of a study: call it with the study's frame (see `bbo_suite.load`).

    Attributes:
      name: of its file, and on the command line.
      module: of this package. Its `draw(frame)` returns the matplotlib figure and the data that it shows; its
        `missing(frame)`, if it has one, returns why a study does not support the figure, or None.
      question: that the figure answers.
      paged: True if it has a panel for each problem and `draw` takes `problems`, their ids; a study of many problems
        then needs several pages.
      only_results: True if it needs only the last row of each run.
    """

    name: str
    module: str
    question: str
    paged: bool = False
    only_results: bool = False

    def __call__(self, frame: pd.DataFrame, **options: Any) -> tuple[Figure, pd.DataFrame]:  # noqa: ANN401 - of `draw`
        """Return the figure and the data that it shows.

        Args:
          frame: of a study; of one run for `exploration`.
          options: of the module's `draw`, such as `problems=["fusion/resnet50"]` for a figure with a panel for each.

        Raises:
          UserError: the study does not support the figure.
        """
        if reason := "needs an evaluation" if frame.empty else self.missing(frame):
            raise UserError(f"the figure {self.name!r} cannot be drawn: it {reason}")
        return self._loaded().draw(frame, **options)

    def _loaded(self) -> ModuleType:
        return import_module(f".{self.module}", __package__)

    def missing(self, frame: pd.DataFrame) -> str | None:
        """Return what the study lacks for this figure, or None if it can be drawn."""
        check = getattr(self._loaded(), "missing", None)
        return check(frame) if check else None

    def pages(self, frame: pd.DataFrame, most: int = PAGES) -> Iterator[tuple[str, Figure, pd.DataFrame]]:
        """Draw the figure on as many pages as needed; yield the file stem, the figure and its data for each.

        Of problems that do not fit on `most` pages, those with the largest gain are drawn.
        """
        problems: Sequence[str] = sorted(frame["problem"].unique())
        if not self.paged or len(problems) <= PANELS:
            yield (self.name, *self(frame))
            return
        known, problems = len(problems), _largest(frame, problems, most * PANELS)
        for number, start in enumerate(range(0, len(problems), PANELS), start=1):
            figure, data = self(frame, problems=problems[start : start + PANELS])
            if len(problems) < known:
                _say_which(figure, len(problems), known)
            yield f"{self.name}-{number}", figure, data


def _largest(frame: pd.DataFrame, problems: Sequence[str], most: int) -> Sequence[str]:
    """Return the problems with the largest gain, sorted by name; all if there are no more than `most`."""
    if len(problems) <= most or "speedup" not in frame:
        return problems[:most]
    best = frame.groupby("problem", observed=True)["speedup"].max()
    return sorted(map(str, best.sort_values(ascending=False, kind="stable").index[:most]))


def _say_which(figure: Figure, shown: int, known: int) -> None:
    from .style import extend_caption

    which = f"Shown: the {shown} of {known} problems with the largest gain"
    extend_caption(figure, f"{which}; `plot --problem` draws any others.")


FIGURES: dict[str, StudyFigure] = {
    figure.name: figure
    for figure in (
        StudyFigure(
            "convergence", "convergence", "How good is the best candidate after each number of evaluations?", paged=True
        ),
        StudyFigure(
            "speedup", "speedup", "Which strategy is best after the whole budget?", paged=True, only_results=True
        ),
        StudyFigure("ecdf", "ecdf", "How soon are targets reached, over all problems?"),
        StudyFigure("time", "total_time", "How good is the best candidate after a given time?", paged=True),
        StudyFigure("overhead", "overhead", "How much time does a strategy itself need?", only_results=True),
        StudyFigure(
            "profile", "profile", "How often is a strategy within a factor of the best one?", only_results=True
        ),
        StudyFigure(
            "critical", "critical", "Which strategies differ significantly over all problems?", only_results=True
        ),
        StudyFigure("heat", "heat", "On which problems is a strategy good?", only_results=True),
        StudyFigure("gains", "gains", "How large is the gain on each problem?", only_results=True),
        StudyFigure("exploration", "exploration", "What did the run explore?"),
    )
}
"""Every figure of a study's frame by name, in reading order: `FIGURES["heat"](frame)`."""

MODELS = StudyFigure("models", "models", "How well do a strategy's models predict unseen candidates?", paged=True)
"""The figure of a study's diagnostics (see `bbo_suite.store.diagnostics.load_diagnostics`)."""
