"""Highlighted strategies: all if there are at most twelve, else the best eight; the others are grey."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.typing import DrawStyleType

from ..core.level import Level
from ..scores import final_values
from . import captions, style
from .interactive import mark

_ALL, _BEST = 12, 8
_GREY = style.Look("0.78", "-", "")


@dataclass(frozen=True)
class Highlight:
    """The strategies of a study, some of them highlighted.

    Attributes:
      looks: of the highlighted strategies; the same in every figure of a study.
      labels: of all strategies; those that know more than costs are marked.
      levels: of all strategies.
    """

    looks: dict[str, style.Look]
    labels: dict[str, str]
    levels: dict[str, Level]

    def look(self, strategy: str) -> style.Look:
        """Return the look of any strategy; grey if it is not highlighted."""
        return self.looks.get(strategy, _GREY)

    @property
    def legend(self) -> dict[str, style.Look]:
        """The entries of a legend: the highlighted strategies, and the number of the others."""
        others = len(self.labels) - len(self.looks)
        shown = {self.labels[name]: look for name, look in self.looks.items()}
        return shown | ({f"{others} others": _GREY} if others else {})

    def only(self, strategies: Iterable[str]) -> Highlight:
        """Return the highlight of the strategies that a figure shows; looks stay the same."""
        shown = set(strategies)
        looks = {name: look for name, look in self.looks.items() if name in shown}
        labels = {name: label for name, label in self.labels.items() if name in shown}
        return Highlight(looks, labels, {name: level for name, level in self.levels.items() if name in shown})

    def order(self, strategies: Iterable[str]) -> list[str]:
        """Return strategies in drawing order: grey ones first, so that they lie below."""
        return sorted(strategies, key=lambda name: (name in self.looks, name))

    @property
    def caption(self) -> str:
        """The sentences of a caption about strategies that are not highlighted, and about levels of knowledge."""
        few, known = len(self.looks), len(self.labels)
        others = f" Highlighted: the {few} best of {known} strategies by mean rank." if few < known else ""
        seen = [level for level in Level if level in self.levels.values()]
        if len(seen) < 2:
            return others
        lines = ", ".join(f"{style.LINES[level][1]}: {level.sees}" for level in seen)
        return f"{others} What a strategy sees: {lines}.{captions.different_levels(seen)}"


def highlighted(frame: pd.DataFrame) -> Highlight:
    """Return which strategies the figures of a study highlight, and how they look."""
    values = final_values(frame)
    names, sees = sorted(values.table.columns), values.levels
    named = names if len(names) <= _ALL else sorted(values.by_rank[:_BEST])
    return Highlight(style.looks_by_knowledge({name: sees[name] for name in named}), labels(frame), sees)


def labels(frame: pd.DataFrame) -> dict[str, str]:
    """Return each strategy's label, shortened as far as labels stay different."""
    sees = final_values(frame).levels
    most = next((m for m in (40, 50, 60) if len({style.short(name, m) for name in sees}) == len(sees)), 200)
    return {name: style.label(name, own, most) for name, own in sees.items()}


def draw_shares(
    ax: Axes, data: pd.DataFrame, highlight: Highlight, x: str, drawstyle: DrawStyleType = "default"
) -> None:
    """Draw each strategy's `share` against the column `x` of `data`; grey ones are thin."""
    for name in highlight.order(set(data["strategy"])):
        curve, look = data[data["strategy"] == name], highlight.look(name)
        (line,) = ax.plot(curve[x], curve["share"], color=look.colour, linestyle=look.dash, marker=look.marker,
                          lw=1.6 if look.marker else 0.9, markersize=4, markevery=0.1, drawstyle=drawstyle)  # fmt: skip
        mark(line, highlight.labels[name])


def legend(figure: Figure, looks: dict[str, style.Look]) -> None:
    """Add a legend above all panels."""
    lines = [Line2D([], [], color=k.colour, linestyle=k.dash, marker=k.marker, markersize=4) for k in looks.values()]
    columns = max(1, int(figure.get_figwidth() * 11 / (max(map(len, looks)) + 8)))
    made = figure.legend(lines, ["x" * len(name) for name in looks], ncols=columns, fontsize=8.5, handlelength=3.5,
                         loc="outside upper left")  # fmt: skip
    for text, line, name in zip(made.get_texts(), made.get_lines(), looks, strict=True):
        text.set_text(name)  # set afterwards: a legend omits names that start with an underscore
        for artist in (text, line):
            mark(artist, name, "in all panels")
