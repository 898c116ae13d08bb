"""Who is named in figures of many strategies: all of up to twelve, else the best few, with the others in grey."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.typing import DrawStyleType

from . import ends, style

_ALL, _BEST = 12, 8
_GREY = style.Look("0.78", "-", "")


@dataclass(frozen=True)
class Cast:
    """The strategies of a study.

    Attributes:
      looks: of those that are named; the same on every page of a figure.
      labels: of all, marked where one sees the problem's structure.
    """

    looks: dict[str, style.Look]
    labels: dict[str, str]

    def look(self, strategy: str) -> style.Look:
        """Return the look of any strategy."""
        return self.looks.get(strategy, _GREY)

    @property
    def legend(self) -> dict[str, style.Look]:
        """What a legend names, and how it looks: those that are named, and how many others there are."""
        others = len(self.labels) - len(self.looks)
        shown = {self.labels[name]: look for name, look in self.looks.items()}
        return shown | ({f"{others} others": _GREY} if others else {})

    def only(self, strategies: Iterable[str]) -> Cast:
        """Return those of the strategies that a figure shows, each with the look that it has in all figures."""
        shown = set(strategies)
        looks = {name: look for name, look in self.looks.items() if name in shown}
        return Cast(looks, {name: label for name, label in self.labels.items() if name in shown})

    def order(self, strategies: Iterable[str]) -> list[str]:
        """Return strategies in the order of drawing: the grey ones below."""
        return sorted(strategies, key=lambda name: (name in self.looks, name))

    @property
    def words(self) -> str:
        """What a caption says of those that are not named."""
        others = len(self.labels) - len(self.looks)
        return (
            f" Named: the {len(self.looks)} best by mean rank of the {len(self.labels)} strategies." if others else ""
        )


def cast(frame: pd.DataFrame) -> Cast:
    """Return who is named in figures of a study, and how they look."""
    means = ends.table(frame)
    names = sorted(means.columns)
    named = names if len(names) <= _ALL else sorted(ends.by_rank(means)[:_BEST])
    return Cast(style.looks(named), labels(frame))


def labels(frame: pd.DataFrame) -> dict[str, str]:
    """Return each strategy's words, no more shortened than tells all apart."""
    last = ends.ends(frame)
    sees = dict(zip(last["strategy"], last["uses_structure"], strict=True))
    most = next((m for m in (40, 50, 60) if len({style.short(name, m) for name in sees}) == len(sees)), 200)
    return {name: style.label(name, own, most) for name, own in sees.items()}


def draw_shares(ax: Axes, data: pd.DataFrame, who: Cast, x: str, drawstyle: DrawStyleType = "default") -> None:
    """Draw each strategy's `share` over the column `x` of `data`; one that is not named is thin."""
    for name in who.order(set(data["strategy"])):
        curve, look = data[data["strategy"] == name], who.look(name)
        ax.plot(curve[x], curve["share"], color=look.colour, linestyle=look.dash, lw=1.6 if look.marker else 0.9,
                marker=look.marker, markersize=4, markevery=0.1, drawstyle=drawstyle)  # fmt: skip


def legend(figure: Figure, looks: dict[str, style.Look], beside: bool = False) -> None:
    """Name the lines of a figure above all panels, or beside the only one."""
    lines = [Line2D([], [], color=k.colour, linestyle=k.dash, marker=k.marker, markersize=4) for k in looks.values()]
    columns = 1 if beside else max(1, int(figure.get_figwidth() * 11 / (max(map(len, looks)) + 8)))
    made = figure.legend(lines, ["x" * len(name) for name in looks], ncols=columns, fontsize=8.5, handlelength=3.5,
                         loc="outside right upper" if beside else "outside upper left")  # fmt: skip
    for text, name in zip(made.get_texts(), looks, strict=True):
        text.set_text(name)  # afterwards: a legend leaves out a name that starts with an underscore
