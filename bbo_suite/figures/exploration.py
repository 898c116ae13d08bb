"""One run: which parameters changed when it improved, and which of them matter."""

from __future__ import annotations

from collections.abc import Callable

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ..core.quantities import effect, with_noun
from ..core.space import DIGITS
from ..scores import final_values
from . import style

SHOWN = 20
ROWS = 2000
"""Candidates that the random forest is fitted to, at most."""
_ENOUGH = 8

Names = Callable[[int], str]


def candidates(run: pd.DataFrame) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """Return the rows of a run's frame that hold a full candidate, and these candidates `(n, d)`."""
    kept = run[run["config"] != ""]
    texts = kept["config"].astype(str).tolist()
    if any("-" in text for text in texts):
        return kept, np.array([text.split("-") for text in texts], np.int64)
    index = np.zeros(128, np.int64)
    index[[ord(digit) for digit in DIGITS]] = np.arange(len(DIGITS))
    return kept, index[np.frombuffer("".join(texts).encode(), np.uint8)].reshape(len(texts), -1)


def changes(kept: pd.DataFrame, configs: NDArray) -> pd.DataFrame:
    """Return what changed at each improvement: evaluation, parameter; a row for each parameter that changed."""
    values = kept["value"].to_numpy()
    better = values < np.minimum.accumulate(np.append(np.inf, values[:-1]))
    steps = configs[better]
    step, parameter = np.nonzero(steps[1:] != steps[:-1])
    return pd.DataFrame({"evaluation": kept["evaluation"].to_numpy()[better][1:][step], "parameter": parameter})


def importance(kept: pd.DataFrame, configs: NDArray) -> NDArray[np.float64]:
    """Return the `(d,)` importances of the parameters for the rank of the cost, by a random forest; their sum is 1.

    Nan if there are too few candidates or all cost the same. Failed candidates are left out.
    """
    from sklearn.ensemble import RandomForestRegressor

    costs = kept["value"].to_numpy()
    used = np.flatnonzero(np.isfinite(costs))
    used = used[np.unique(np.linspace(0, len(used) - 1, min(ROWS, len(used))).astype(int))]
    ranks = np.unique(costs[used], return_inverse=True)[1]
    if len(used) < _ENOUGH or not ranks.any():
        return np.full(configs.shape[1], np.nan)
    forest = RandomForestRegressor(100, max_features=1 / 3, random_state=0)
    return forest.fit(configs[used], ranks).feature_importances_


def exploration_data(run: pd.DataFrame, names: Names | None = None) -> pd.DataFrame:
    """Return the 20 most important parameters: parameter, name, importance, changed (a tuple of evaluations).

    Without importances, the parameters that changed most often.

    Args:
      run: the frame of one run.
      names: returns the name of parameter i.
    """
    kept, configs = candidates(run)
    moved, weight = changes(kept, configs), importance(kept, configs)
    at = moved.groupby("parameter")["evaluation"].agg(tuple)
    data = pd.DataFrame({"parameter": np.arange(configs.shape[1]), "importance": weight})
    data["changed"] = [at.get(i, ()) for i in data["parameter"]]
    order = np.lexsort((data["changed"].map(len), data["importance"].fillna(0)))[::-1][:SHOWN]
    data = data.iloc[order]
    data = data[(data["importance"] > 0) | (data["changed"].map(len) > 0)].reset_index(drop=True)
    data.insert(1, "name", [(names or "x{}".format)(i) for i in data["parameter"]])
    return data


@mpl.rc_context(style.SETTINGS)
def draw(frame: pd.DataFrame, names: Names | None = None) -> tuple[Figure, pd.DataFrame]:
    """Draw when parameters changed in one run; return the figure and its data (`exploration_data`)."""
    data = exploration_data(frame, names)
    known = bool(data["importance"].notna().any())
    width = 5.2 if known else 8.0
    figure, axes = style.panels(1 + known, width, 0.24 * max(4, len(data)) + 1.2, 0.5, sharey=True)
    _changes(axes[0, 0], data)
    axes[0, 0].set_xlim(0.9, 1.1 * len(frame))
    if known:
        _importance(axes[0, 1], data)
    labels = [style.short(name, 44) for name in data["name"]]
    axes[0, 0].set_yticks(range(len(labels)), labels, fontsize=8.5)
    axes[0, 0].set_ylim(max(4, len(labels)) - 0.4, -0.6)
    style.caption(figure, _caption(frame, data))
    return figure, data


def _changes(ax: Axes, data: pd.DataFrame) -> None:
    for place, at in enumerate(data["changed"]):
        ax.plot(at, [place] * len(at), "|", color=style.looks(["one"])["one"].colour, markersize=9, mew=1.6)
    style.evaluations(ax)
    ax.set_title("changed at an improvement", fontsize=10)


def _importance(ax: Axes, data: pd.DataFrame) -> None:
    ax.barh(range(len(data)), data["importance"], 0.72, color="0.45")
    ax.set(xlabel="importance (sum 1)", xlim=(0, None))
    ax.set_title("importance for the cost", fontsize=10)
    ax.tick_params(axis="y", length=0)


def _caption(run: pd.DataFrame, data: pd.DataFrame) -> str:
    kept, configs = candidates(run)
    one = run.iloc[-1]
    what = style.short(f"{one['problem']}, {one['strategy']}, seed {one['seed']}", 120)
    known = f"all {len(kept):,} candidates" if len(kept) == len(run) else f"the {len(kept):,} candidates that improved"
    hint = "" if len(kept) == len(run) else ", a small and biased sample (`run --all-configs` keeps all)"
    which, forest = "matter most", f"Importance: from a random forest that was fitted to {known}{hint}."
    if data["importance"].isna().all():
        which, forest = "changed most often", f"No importance: {known} are too few or have the same cost."
    return (
        f"One run: {what}; {effect(one['speedup'], one['unit'])} after {with_noun(len(run), 'evaluation')}. "
        f"The {len(data)} parameters of {configs.shape[1]:,} that {which}; a mark: the parameter changed when the best "
        f"candidate improved. {forest}"
    )


def missing(frame: pd.DataFrame) -> str | None:
    """Return why a frame does not support the figure, or None."""
    if len(final_values(frame).frame) > 1 or "config" not in frame:
        return "shows one run; name it by --run PROBLEM/STRATEGY/SEED"
    if not (frame["config"] != "").any():
        return "needs a candidate that was stored in full"
    return None
