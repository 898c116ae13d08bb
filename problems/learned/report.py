"""How good a model is on programs that it was not trained on, beside the compiler's analytical model."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bbo_suite import UserError

from .dataset import Kernels, Settings
from .kernels import features
from .model import CostModel
from .network import Network
from .training import scored

_ITERATIONS = 300
KINDS = {"graph": "kernel times, MAPE %", "tiles": "chosen tiles, APE %", "flags": "chosen flags, APE %"}
"""What is predicted, and what its errors are called."""


def errors(scores: NDArray[np.float64], kind: str, data: Kernels) -> dict[str, float]:
    """Return the error for each program with something to choose: MAPE of logs of times, or APE of what they choose.

    Args:
      scores: `(s,)` of all settings of a kind (see `Kernels.settings`).
    """
    own, found = data.settings(kind), {}
    counts = np.diff(own.starts)
    for number, name in enumerate(data.programs):
        kernels = np.flatnonzero((data.program == number) & (counts > (kind != "graph")))
        mine = np.repeat(data.program == number, counts) & np.repeat(counts > (kind != "graph"), counts)
        if len(kernels):
            starts = np.concatenate([[0], np.cumsum(counts[kernels])])
            predicted, seconds = scores[mine], own.seconds[mine]
            found[name] = (
                mape(np.exp(predicted), seconds) if kind == "graph" else chosen_ape(predicted, seconds, starts)
            )
    return found


def check_unseen(model: CostModel, data: Kernels) -> None:
    """Check that a model can be judged on a data set.

    Raises:
      UserError: it was trained on one of the programs, or for another machine.
    """
    if model.machine != data.machine:
        raise UserError(f"the model is for {model.machine}, the data for {data.machine}; give data of the same machine")
    if both := sorted(set(model.programs) & set(data.programs)):
        raise UserError(f"the model was trained on {', '.join(both)}; give data of other programs")


def network_of(model: CostModel, kind: str) -> Network:
    """Return the network that predicts a kind."""
    return model.absolute if kind == "graph" else model.relative


def lines(model: CostModel, data: Kernels) -> Iterator[str]:
    """Yield a table for each of `KINDS`: the errors of the learned and of the analytical model, by program.

    Raises:
      UserError: as `check_unseen` does.
    """
    check_unseen(model, data)
    for kind, title in KINDS.items():
        learned = errors(scored(network_of(model, kind), kind, data), kind, data)
        analytical = errors(np.log(data.settings(kind).estimates), kind, data)
        yield f"{title:40} {'learned':>8} {'analytical':>10}"
        for name, error in learned.items():
            yield f"{name:40} {error:8.2f} {analytical[name]:10.2f}"
        yield f"{'mean':40} {np.mean([*learned.values()]):8.2f} {np.mean([*analytical.values()]):10.2f}"


def mape(predicted: NDArray[np.float64], seconds: NDArray[np.float64]) -> float:
    """Return the mean absolute percentage error of `(k,)` predicted seconds."""
    return float(100 * np.mean(np.abs(predicted / seconds - 1)))


def chosen_ape(scores: NDArray[np.float64], seconds: NDArray[np.float64], starts: NDArray[np.int64]) -> float:
    """Return the absolute percentage error of the settings that scores choose (Kaufman et al. 2021, tile size).

    The sum over kernels of what the setting with the lowest score takes more than the fastest, over the sum of the
    fastest.

    Args:
      scores, seconds: `(s,)` of all settings.
      starts: `(k + 1,)`; the settings of kernel i are `starts[i]:starts[i + 1]`.
    """
    lost = fastest = 0.0
    for first, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        if end > first:
            least = float(seconds[first:end].min())
            lost += float(seconds[first + int(np.argmin(scores[first:end]))]) - least
            fastest += least
    return 100 * lost / fastest


def boosted(training: Kernels, kind: str, test: Kernels, loss: str = "squared_error") -> NDArray[np.float64]:
    """Return the predicted logs of the seconds of all settings of the test kernels (see `Kernels.settings`).

    The loss is one of scikit-learn's.

    The trees learn what the analytical model's estimate gets wrong; for tiles and flags, apart from the mean over the
    settings of a kernel, since only differences within it matter.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor

    trees = HistGradientBoostingRegressor(loss=loss, max_iter=_ITERATIONS, random_state=0)
    own, kernel, rows = _table(training, kind)
    wrong = np.log(own.seconds / own.estimates)
    if kind != "graph":
        wrong = wrong - (np.bincount(kernel, wrong) / np.maximum(np.bincount(kernel), 1))[kernel]
    trees.fit(rows, wrong)
    own, _, rows = _table(test, kind)
    return np.log(own.estimates) + trees.predict(rows)


def _table(data: Kernels, kind: str) -> tuple[Settings, NDArray[np.int64], NDArray[np.float32]]:
    """Return all settings of a kind, the kernel of each, and their features."""
    own = data.settings(kind)
    kernel = np.repeat(np.arange(len(data)), np.diff(own.starts))
    return own, kernel, features(data.rows[kernel], own.values, own.estimates, data.machine)
