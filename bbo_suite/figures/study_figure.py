"""What a figure is to those who write files or reports of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

PAGE = 9
"""Panels that a page holds."""


@dataclass(frozen=True)
class Drawing:
    """A figure that any study may have.

    Attributes:
      name: of its file, and on the command line.
      question: that it answers, in a sentence.
      function: takes a study's frame (see `bbo_suite.load`) and returns the figure and the data that it drew; of a
        paged drawing also, as `problems`, the ids of the problems to draw.
      needs: takes the frame and returns why it does not support the figure, or None.
      paged: has a panel for each problem, so that a study of many needs several pages.
    """

    name: str
    question: str
    function: Callable[..., tuple[Figure, pd.DataFrame]]
    needs: Callable[[pd.DataFrame], str | None]
    paged: bool = False

    def pages(self, frame: pd.DataFrame) -> Iterator[tuple[str, Figure, pd.DataFrame]]:
        """Draw it, on as many pages as it takes; yield a file's stem, a figure and its data for each."""
        problems: Sequence[str] = sorted(frame["problem"].unique())
        if not self.paged or len(problems) <= PAGE:
            yield (self.name, *self.function(frame))
            return
        for number, start in enumerate(range(0, len(problems), PAGE), start=1):
            yield (f"{self.name}-{number}", *self.function(frame, problems=problems[start : start + PAGE]))


def always(frame: pd.DataFrame) -> None:
    """Any study supports the figure."""
