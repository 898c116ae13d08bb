"""How good a model is on programs that it was not trained on, beside the compiler's analytical model."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bbo_suite import UserError

from .dataset import Kernels
from .fitting import scored
from .model_file import CostModel
from .network import Network
from .scores import chosen_ape, mape
from .training import settings

KINDS = {"graph": "kernel times, MAPE %", "tiles": "chosen tiles, APE %", "flags": "chosen flags, APE %"}
"""What is predicted, and what its errors are called."""


def errors(scores: NDArray[np.float64], kind: str, data: Kernels) -> dict[str, float]:
    """Return the error for each program with something to choose: MAPE of logs of times, or APE of what they choose.

    Args:
      scores: `(s,)` of all settings of a kind (see `training.settings`).
    """
    own, found = settings(data, kind), {}
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
        analytical = errors(np.log(settings(data, kind).estimates), kind, data)
        yield f"{title:40} {'learned':>8} {'analytical':>10}"
        for name, error in learned.items():
            yield f"{name:40} {error:8.2f} {analytical[name]:10.2f}"
        yield f"{'mean':40} {np.mean([*learned.values()]):8.2f} {np.mean([*analytical.values()]):10.2f}"
