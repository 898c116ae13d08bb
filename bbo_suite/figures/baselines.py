"""Lines at the speedups that a problem knows: of baselines, and of a known optimum or bound."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from ..store.identity import BASELINES
from . import style
from .interactive import add_tooltip

_COLOUR = "0.35"
_CLOSE = 0.05
"""The part of an axis that a label takes."""
_LETTERS = 60
"""Of a label, per line."""
_PLATE: dict[str, Any] = {"facecolor": "white", "alpha": 0.85, "linewidth": 0, "pad": 0.8}


def all_known(frame: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Return the speedups, by name, that each problem of a study's frame knows."""
    return frame.attrs.get(BASELINES, {})


def draw(ax: Axes, speedups: dict[str, float]) -> None:
    """Draw a horizontal line with its name for each speedup within the limits, and name the others below.

    Lines that are close together share a label.
    """
    inside = _lines(ax, speedups, ax.axhline, ax.get_ylim())
    for names, value in _grouped(ax, inside):
        _text(ax, names, (0, value), (2, 1), ("axes fraction", "data"))
    if outside := {name: value for name, value in speedups.items() if name not in inside}:
        _text(ax, f"beyond the axis: {_listed(outside)}", (0, 0), (2, 2), "axes fraction")


def draw_across_bars(ax: Axes, speedups: dict[str, float]) -> None:
    """Draw a vertical line for each speedup within the limits, and name all below the axis: bars leave no room."""
    _lines(ax, speedups, ax.axvline, ax.get_xlim())
    if speedups:
        _text(ax, f"known: {_listed(speedups)}", (0, 0), (0, -36), "axes fraction", va="top")


def _lines(
    ax: Axes, speedups: dict[str, float], line: Callable[..., Line2D], limits: tuple[float, float]
) -> dict[str, float]:
    """Draw lines and return the speedups that have one."""
    inside = {name: value for name, value in speedups.items() if limits[0] <= value <= limits[1]}
    for name, value in inside.items():
        add_tooltip(line(value, color=_COLOUR, lw=1, ls=(0, (4, 2))), f"{name}: {value:.4f}")
    return inside


def _grouped(ax: Axes, speedups: dict[str, float]) -> list[tuple[str, float]]:
    """Return the names of lines that are too close for labels of their own, and the speedup of the highest."""
    groups: list[tuple[str, float]] = []
    first = -1.0
    for name, value in sorted(speedups.items(), key=lambda item: item[1]):
        place = (ax.transScale + ax.transLimits).transform((1, value))[1]
        if groups and place - first < _CLOSE:
            groups[-1] = f"{style.short(name, 24)}; {groups[-1][0]}", value
        else:
            groups.append((style.short(name, 24), value))
            first = place
    return groups


def _listed(speedups: dict[str, float]) -> str:
    return "; ".join(
        f"{style.short(name, 24)} {value:{'.4g' if value < 1000 else ',.0f'}}"
        for name, value in sorted(speedups.items(), key=lambda item: item[1])
    )


def _text(
    ax: Axes,
    text: str,
    place: tuple[float, float],
    offset: tuple[int, int],
    system: str | tuple[str, str],
    va: str = "bottom",
) -> None:
    ax.annotate(textwrap.fill(text, _LETTERS), place, xycoords=system, xytext=offset, textcoords="offset points",
                ha="left", va=va, fontsize=7.5, color=_COLOUR, bbox=_PLATE)  # fmt: skip


def caption(frame: pd.DataFrame) -> str:
    """Return the sentence of a caption about the lines; empty if the frame's problems know none."""
    if not set(all_known(frame)) & set(frame["problem"].unique()):
        return ""
    return (
        " Dashed grey lines: costs that the problem knows: of other settings, of others' results, and of a known"
        " optimum or bound."
    )
