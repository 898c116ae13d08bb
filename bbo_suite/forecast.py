"""What more evaluations would bring, by the moments of published runs at which they looked as a run looks now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .errors import UserError

if TYPE_CHECKING:
    import pandas as pd

CUTOFFS = (20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
"""The evaluations after which the gains of published runs are known."""
LEAST = 50
"""Evaluations after which a run can be compared with others."""
_CURVES = Path(__file__).with_name("curves.csv.gz")
_NOTHING = 1e-3
"""Added to gains before their logarithm is taken: smaller ones are all alike."""
_EARLIER = (2, 4, 8)
"""How a run looks: its gain, and by which factors it grew since it had so many times fewer evaluations."""
_SCALES = np.array([3.0, 0.3, 0.5, 0.7, 2.0, 6.0, 2.0])
"""Differences that count alike: of the features of a moment, see `_moments`."""
_NEAREST = 60
"""Moments of each family that are looked at, so that each family counts alike."""
_LOW, _HIGH = 0.1, 0.9


@dataclass(frozen=True)
class Forecast:
    """The gain that a run is expected to have after more evaluations; gains are default / best - 1.

    Attributes:
      low, high: in eight of ten cases it is between them.
    """

    evaluations: int
    low: float
    median: float
    high: float


class Forecaster:
    """Forecasts of runs from curves of others.

    Args:
      curves: a row a run with `family`, `parameters`, and the gain after each of `CUTOFFS` in a column of that name; by
        default those of the published study.
    """

    def __init__(self, curves: pd.DataFrame | None = None) -> None:
        found = _published() if curves is None else curves
        self._families = found["family"].to_numpy(str)
        self._logs = np.log(found[[str(n) for n in CUTOFFS]].to_numpy(float) + _NOTHING)
        self._parameters = np.log(found["parameters"].to_numpy(float))
        self._starts = np.array([n for n in CUTOFFS[:-1] if n >= LEAST])

    def forecast(self, gain: Callable[[float], float], evaluations: int, parameters: int, target: int) -> Forecast:
        """Return the gain after `target` evaluations of a run that has had some.

        Args:
          gain: of the run after a number of evaluations.
          parameters: of the problem.

        Raises:
          UserError: the run is too short, or the target is too far ahead or not ahead.
        """
        if evaluations < LEAST:
            raise UserError(f"a forecast needs {LEAST} evaluations, and there are {evaluations:,}; run more")
        ratio, most = target / evaluations, CUTOFFS[-1] // LEAST
        if not 1 < ratio <= most:
            reach = f"{evaluations + 1:,} to {most * evaluations:,}"
            raise UserError(f"no forecast for {target:,} evaluations after {evaluations:,}; choose {reach}")
        here = np.array([np.log(max(gain(evaluations / f), 0.0) + _NOTHING) for f in (1, *_EARLIER)])
        query = np.concatenate([here[:1], here[0] - here[1:], _size(evaluations, np.log([parameters]))[0]])
        growth, weight = self._alike(query, ratio)
        low, median, high = (max(float(np.exp(here[0] + q)) - _NOTHING, 0.0) for q in _quantiles(growth, weight))
        now = max(gain(evaluations), 0.0)
        return Forecast(target, max(low, now), max(median, now), max(high, now))

    def _alike(self, query: NDArray[np.float64], ratio: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return how the logarithms of gains grew from the moments that look most alike, and their weights."""
        starts = self._starts[self._starts * ratio <= CUTOFFS[-1]]
        moments = np.concatenate([self._moments(n) for n in starts])
        growth = np.concatenate([self._at(n * ratio) - self._at(n) for n in starts])
        distances = np.linalg.norm((moments - query) / _SCALES, axis=1)
        families = np.tile(self._families, len(starts))
        chosen = np.concatenate([_nearest(distances, families == family) for family in np.unique(families)])
        width = np.quantile(distances[chosen], 0.25) + 1e-9
        return growth[chosen], np.exp(-((distances[chosen] / width) ** 2) / 2)

    def _moments(self, evaluations: float) -> NDArray[np.float64]:
        """Return `(runs, 7)` how they looked: gain, growth since earlier, evaluations, parameters, and their ratio."""
        here = self._at(evaluations)
        growth = [here - self._at(evaluations / factor) for factor in _EARLIER]
        return np.column_stack([here, *growth, _size(evaluations, self._parameters)])

    def _at(self, evaluations: float) -> NDArray[np.float64]:
        """Return the `(runs,)` logarithms of gains, between two cutoffs by a straight line in the logarithm."""
        knots = np.log([1, *CUTOFFS])
        logs = np.column_stack([np.full(len(self._logs), np.log(_NOTHING)), self._logs])
        place = int(np.clip(np.searchsorted(knots, np.log(evaluations)), 1, len(knots) - 1))
        share = (np.log(evaluations) - knots[place - 1]) / (knots[place] - knots[place - 1])
        return logs[:, place - 1] + share * (logs[:, place] - logs[:, place - 1])


@cache
def _published() -> pd.DataFrame:
    import pandas as pd

    return pd.read_csv(_CURVES)


def _size(evaluations: float, parameters: NDArray[np.float64]) -> NDArray[np.float64]:
    count = np.full(len(parameters), np.log(evaluations))
    return np.column_stack([count, parameters, parameters - count])


def _nearest(distances: NDArray[np.float64], among: NDArray[np.bool_]) -> NDArray[np.int64]:
    places = np.flatnonzero(among)
    return places[np.argsort(distances[places], kind="stable")[:_NEAREST]]


def _quantiles(values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    order = np.argsort(values, kind="stable")
    shares = np.cumsum(weights[order]) / weights.sum()
    return values[order][np.minimum(np.searchsorted(shares, (_LOW, 0.5, _HIGH)), len(values) - 1)]
