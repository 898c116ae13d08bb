"""Lines at the speedups that a problem knows: of other settings of its compiler, and of a known optimum."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from ..store.identity import BASELINES
from . import style
from .marks import tell

_COLOUR = "0.35"
_PLATE: dict[str, Any] = {"facecolor": "white", "alpha": 0.85, "linewidth": 0, "pad": 0.8}


def all_known(frame: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Return the speedups, by name, that each problem of a study's frame knows."""
    return frame.attrs.get(BASELINES, {})


def draw(ax: Axes, speedups: dict[str, float], vertical: bool = False) -> None:
    """Draw a line with its name for each speedup within the axis's limits, and name the others at its end.

    Args:
      vertical: if speedups are on the x axis.
    """
    low, high = ax.get_xlim() if vertical else ax.get_ylim()
    for name, value in sorted(speedups.items(), key=lambda item: item[1]):
        if low <= value <= high:
            line = (ax.axvline if vertical else ax.axhline)(value, color=_COLOUR, lw=1, ls=(0, (4, 2)))
            tell(line, f"{name}: {value:.4f}")
            _name(ax, style.short(name, 24), value, vertical)
    outside = [f"{style.short(name, 24)} {value:.4g}" for name, value in speedups.items() if not low <= value <= high]
    if outside:
        ax.annotate(f"beyond the axis: {', '.join(outside)}", (0, 1), xycoords="axes fraction", xytext=(2, -2),
                    textcoords="offset points", ha="left", va="top", fontsize=7.5, color=_COLOUR,
                    bbox=_PLATE)  # fmt: skip


def _name(ax: Axes, name: str, value: float, vertical: bool) -> None:
    place, system = ((value, 1), ("data", "axes fraction")) if vertical else ((0, value), ("axes fraction", "data"))
    ax.annotate(name, place, xycoords=system, xytext=(-2, -2) if vertical else (2, 1), textcoords="offset points",
                ha="right" if vertical else "left", va="top" if vertical else "bottom",
                rotation=90 if vertical else 0, fontsize=7.5, color=_COLOUR, bbox=_PLATE)  # fmt: skip


def caption(frame: pd.DataFrame) -> str:
    """Return the sentence of a caption about the lines; empty if the frame's problems know none."""
    if not set(all_known(frame)) & set(frame["problem"].unique()):
        return ""
    return " Dashed grey lines: other settings that the problem knows, and a known optimum."
