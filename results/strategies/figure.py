"""The figure: one panel for each question; `tables.py` calls it."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from PIL import Image
from study import BUDGETS, ENTRIES

from bbo_suite.core.level import Level
from bbo_suite.registry import Registry

OURS = ("annealing", "evolution", "mbo")
PEERS = tuple(name for name in ENTRIES if name.startswith(("nevergrad", "pymoo")))
PINKS = ("#cc79a7", "#882255", "#ff7fbf", "#661100")
COLOURS = {"annealing": "#0072b2", "evolution": "#56b4e9", "mbo": "#009e73", "local": "#d55e00", "graybox": "#000000"}
COLOURS |= {"joint": "#e69f00", "random": "#999999", **dict(zip(PEERS, PINKS, strict=True))}
DASHES = {Level.COSTS: "-", Level.STRUCTURE: "--", Level.PARTS: ":"}


def level(name: str) -> Level:
    """Return what a strategy of the study knows."""
    return Registry().strategy(ENTRIES[name].strategy).level


def _lines(ax: Axes, table: pd.DataFrame, names: tuple[str, ...]) -> None:
    """Draw the mean share over families against the budget."""
    wide = table.pivot_table(index=["family", "task"], columns=["strategy", "budget"], values="share")
    for name in names:
        own = wide[name].dropna(axis=1).groupby("family").mean().mean()
        look = {"color": COLOURS[name], "ls": DASHES[level(name)], "marker": "o", "ms": 4, "lw": 2}
        ax.plot(own.index, own, label=name, **look)
    ax.set(xscale="log", ylim=(-0.02, 1.02), xlabel="evaluations (the run's budget)", ylabel="share of the best known")
    ax.set_xticks(BUDGETS, [f"{budget:,}" for budget in BUDGETS])
    ax.legend(frameon=False, fontsize=7)


def _dots(ax: Axes, table: pd.DataFrame, shown: tuple[tuple[str, int], ...]) -> None:
    """Draw for each family the mean share of some strategies with their budgets."""
    wide = table.pivot_table(index="family", columns=["strategy", "budget"], values="share")
    wide = wide[[one for one in shown if one in wide]].dropna(how="all")
    wide = wide.loc[wide.max(axis=1).sort_values().index]
    ax.hlines(range(len(wide)), wide.min(axis=1), wide.max(axis=1), color="#dddddd", zorder=0)
    for (name, n), marker in zip(wide.columns, "osD^v", strict=False):
        ax.plot(wide[name, n], range(len(wide)), marker, color=COLOURS[name], label=f"{name} at {n:,}", alpha=0.85)
    ax.set_yticks(range(len(wide)), wide.index)
    ax.set(xlim=(-0.02, 1.02), xlabel="share of the best known gain")
    ax.legend(frameon=False, fontsize=7)


def draw(table: pd.DataFrame, file: Path) -> None:
    """Draw one panel for each question."""
    figure, axes = plt.subplots(2, 2, figsize=(11, 8.4), layout="constrained")
    _lines(axes[0, 0], table, ("random", *OURS, "local"))
    axes[0, 0].set_title("Which strategy with n evaluations? (dashed: sees structure)")
    _dots(axes[0, 1], table, (("annealing", 10_000), ("local", 10_000), ("joint", 10_000)))
    axes[0, 1].set_title("What is structure worth?")
    _dots(axes[1, 0], table, (("local", 200), ("graybox", 200), ("annealing", 10_000)))
    axes[1, 0].set_title("What are costs of parts worth?")
    _dots(axes[1, 1], table, (("mbo", 1_000), *((name, 1_000) for name in PEERS)))
    axes[1, 1].set_title("Which peers are ahead anywhere?")
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=85)
    Image.open(file).convert("RGB").quantize(256).save(file, optimize=True)
