"""The three models of kernels, trained on one data set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from .dataset import Kernels
from .features import features
from .model_file import CostModel
from .network import Network
from .prediction import embeddings, scores
from .training import GRAPH, RELATIVE, Recipe, settings, train

_MOST = 4000
"""Kernels from which the meaning of a score is found."""
_NEAR = 1.5
"""Only settings that take at most this many times as long as the fastest matter for it: a search stays near these."""


def fit(
    data: Kernels, epochs: int, reduction: str, rng: Generator, shown: Callable[[str, int, float], None]
) -> CostModel:
    """Return the models.

    Args:
      shown: called with what is trained, the epoch, and its mean loss.

    Raises:
      UserError: there is nothing to learn from, or a loss is no longer a number.
    """

    def fitted(name: str, recipe: Recipe) -> Network:
        own = replace(recipe, epochs=epochs, reduction=reduction)
        return train(data, own, rng, lambda epoch, loss: shown(name, epoch, loss))

    absolute, relative = fitted("fusions and layouts", GRAPH), fitted("tiles and flags", RELATIVE)
    few = data.take(np.sort(rng.permutation(len(data))[:_MOST]))
    slopes = np.array([_slope(relative, kind, few) for kind in RELATIVE.kinds])
    return CostModel(data.machine, data.programs, reduction, absolute, relative, slopes)


def scored(network: Network, kind: str, data: Kernels) -> NDArray[np.float64]:
    """Return the scores of all settings of a kind (see `training.settings`)."""
    own = settings(data, kind)
    kernel = np.repeat(np.arange(len(data)), np.diff(own.starts))
    rows = features(data.rows[kernel], own.values, own.estimates, data.machine)
    return scores(network, kind, embeddings(network, data.graphs)[kernel], rows, own.estimates)


def _slope(network: Network, kind: str, data: Kernels) -> float:
    """Return how the log of the time grows with the score among good settings of a kernel, by least squares."""
    own = settings(data, kind)
    kernel = np.repeat(np.arange(len(data)), np.diff(own.starts))
    fastest = np.full(len(data), np.inf)
    np.minimum.at(fastest, kernel, own.seconds)
    near = np.flatnonzero(own.seconds <= _NEAR * fastest[kernel])
    values = (scored(network, kind, data), np.log(own.seconds))
    score, logs = (_centred(array[near], kernel[near]) for array in values)
    square = float(score @ score)
    return float(score @ logs) / square if square > 0 else 0.0


def _centred(values: NDArray[np.float64], kernel: NDArray[np.int64]) -> NDArray[np.float64]:
    means = np.bincount(kernel, values) / np.maximum(np.bincount(kernel), 1)
    return values - means[kernel]
