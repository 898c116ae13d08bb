"""What more evaluations would bring, by the moments of published runs at which they looked as a run looks now."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .core.quantities import count, effect, is_time
from .errors import UserError

if TYPE_CHECKING:
    import pandas as pd

    from .store.results import RunResult

CUTOFFS = (20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
"""The evaluations after which the gains of published runs are known."""
LEAST = 50
"""Evaluations after which a run can be compared with others."""
FARTHEST = CUTOFFS[-1] // LEAST
"""How many times as many evaluations can be forecast."""
WORTH_IT = "worth-it"
"""Stands for a price of `_USUAL`."""
_USUAL = "0.1%/1000"
_LOOKS, _POOR = 1.4, 2
"""A run is looked at each time that its evaluations have grown by this factor; it ends after so many poor looks."""
_AHEAD = (2, 5)
"""How many times as many evaluations are looked at, besides the budget."""
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
_LAST = CUTOFFS[-1]
"""Nothing beyond is told unasked: no published run goes on, and intervals there are too wide to help."""
_WIDEST = 10.0
"""Wider intervals, as ratios, are not told unasked: they help nobody."""
_FEW = 3
"""Problems that `outlooks` is about, at most."""


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


@dataclass(frozen=True)
class Curve:
    """A run so far, as far as a forecast needs it.

    Attributes:
      gain: after a number of evaluations.
      evaluations: so far.
      parameters: of the problem.
      most: the gain of the optimum; inf if it is not known.
      candidates: of the problem's space; inf if their number is not known.
      over: True if the run has nothing left to try.
      unit: of its costs.
    """

    gain: Callable[[float], float]
    evaluations: int
    parameters: int
    most: float = math.inf
    candidates: float = math.inf
    over: bool = False
    unit: str = "s"

    @classmethod
    def of(cls, run: RunResult) -> Curve:
        """Return the curve of a run.

        Raises:
          UserError: how many parameters its problem has is not known.
        """
        head = run.head
        if "parameters" not in head:
            raise UserError("its run.json does not say how many parameters the problem has")
        most = head["default"] / head["optimum"] - 1 if head.get("optimum") else math.inf
        known = int(head["parameters"]), most, head.get("candidates", math.inf), run.ended == "covered", head["unit"]
        return cls(partial(_gain, run), run.evaluations, *known)


def _gain(run: RunResult, evaluations: float) -> float:
    return run.speedup(int(evaluations)) - 1


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
        ratio = target / evaluations
        if not 1 < ratio <= FARTHEST:
            reach = f"{evaluations + 1:,} to {FARTHEST * evaluations:,}"
            raise UserError(f"no forecast for {target:,} evaluations after {evaluations:,}; choose {reach}")
        now = max(gain(evaluations), 0.0)
        if math.isinf(now):  # its cost is 0: nothing can be better
            return Forecast(target, now, now, now)
        here = np.array([np.log(max(gain(evaluations / f), 0.0) + _NOTHING) for f in (1, *_EARLIER)])
        query = np.concatenate([here[:1], here[0] - here[1:], _size(evaluations, np.log([parameters]))[0]])
        growth, weight = self._alike(query, ratio)
        low, median, high = (max(float(np.exp(here[0] + q)) - _NOTHING, 0.0) for q in _quantiles(growth, weight))
        return Forecast(target, max(low, now), max(median, now), max(high, now))

    def middle(self, curves: Sequence[Curve], target: int) -> Forecast:
        """Return the median forecast of several runs of a strategy on a problem, from what the shortest has.

        Runs that have nothing left to try keep their gain, however few evaluations they took.

        Raises:
          UserError: as for `forecast`.
        """
        made, now = list[tuple[float, float, float]](), min(curve.evaluations for curve in curves)
        for curve in curves:
            if curve.over and target > curve.evaluations:
                made.append((max(curve.gain(curve.evaluations), 0.0),) * 3)
                continue
            found = self.forecast(curve.gain, now, curve.parameters, target)
            made.append((min(found.low, curve.most), min(found.median, curve.most), min(found.high, curve.most)))
        return Forecast(target, *map(median, zip(*made, strict=True)))

    def outlook(self, curves: Sequence[Curve]) -> str:
        """Return what more evaluations would bring to the runs of a strategy on a problem, in a short line.

        It is empty if the runs are too short, have found or tried all that there is, or nobody can say.
        """
        now, first = min(curve.evaluations for curve in curves), curves[0]
        gain = median(max(curve.gain(now), 0.0) for curve in curves)
        targets = [10**k for k in range(2, 5) if 2 * now <= 10**k < min(first.candidates, _LAST + 1)]
        targets = [n for n in targets if n <= now * FARTHEST][:2]
        if now < LEAST or not targets or gain >= first.most or any(curve.over for curve in curves):
            return ""
        known = self.narrow(curves, targets)
        so_far = percent(gain) if is_time(first.unit) else effect(1 + gain, first.unit)
        return f"after {now:,}: {so_far}; {would_reach(known, first.unit)}" if known else ""

    def narrow(self, curves: Sequence[Curve], targets: Iterable[int]) -> list[Forecast]:
        """Return the median forecasts (see `middle`) whose intervals are narrow enough to be told unasked."""
        made = (self.middle(curves, target) for target in targets if target <= _LAST)
        return [each for each in made if each.high <= _WIDEST * each.low]

    def outlooks(self, curves: Iterable[tuple[str, str, Curve]]) -> Iterator[str]:
        """Yield a line for each problem, with the largest gains first, of the strategy with the largest gain on it.

        Args:
          curves: the problem and the strategy of each.
        """
        groups: dict[tuple[str, str], list[Curve]] = {}
        for problem, strategy, curve in curves:
            groups.setdefault((problem, strategy), []).append(curve)
        gains = {names: median(each.gain(each.evaluations) for each in own) for names, own in groups.items()}
        best: dict[str, tuple[str, str]] = {}
        for names in sorted(groups, key=lambda names: -gains[names]):
            best.setdefault(names[0], names)
        told = ((names, self.outlook(groups[names])) for names in best.values())
        lines = (f"{strategy} on {problem} {line}" for (problem, strategy), line in told if line)
        yield from islice(lines, _FEW)

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


class Worth:
    """Says when the rest of a run is not worth a price, at two looks one after the other.

    Args:
      price: the gain of an evaluation that is asked for.
      budget: of the run.
      forecaster: by default that of the published curves.
    """

    def __init__(self, price: float, budget: int, forecaster: Forecaster | None = None) -> None:
        self.price, self._budget, self._forecaster = price, budget, forecaster or published()
        self._next, self._poor = float(LEAST), 0

    def is_over(self, curve: Curve) -> bool:
        """Return whether the run should end now; to be asked after each batch."""
        if not self._next <= curve.evaluations < self._budget:
            return False
        self._next = curve.evaluations * _LOOKS
        self._poor = 0 if self._pays(curve) else self._poor + 1
        return self._poor >= _POOR

    def _pays(self, curve: Curve) -> bool:
        """Return whether the middle of a forecast is worth the price at any of the looks ahead."""
        here, now = curve.evaluations, max(curve.gain(curve.evaluations), 0.0)
        ahead = [n for n in (*(here * f for f in _AHEAD), self._budget) if n <= min(self._budget, FARTHEST * here)]
        return math.isfinite(now) and any(
            self._forecaster.middle([curve], n).median - now >= self.price * (n - here) for n in ahead
        )


def price_of(text: str) -> float:
    """Return the gain of an evaluation that a price such as `0.1%/100` asks for.

    Raises:
      UserError: the text is no price.
    """
    found = re.fullmatch(r"(\d*\.?\d+)\s*%\s*/\s*([^/]+)", _USUAL if text == WORTH_IT else text.strip())
    with suppress(ValueError):
        if found and float(found[1]) > 0 and count(found[2]) > 0:
            return float(found[1]) / 100 / count(found[2])
    raise UserError(f"{text!r} is no price; write {WORTH_IT}, or a gain for evaluations, such as 0.1%/100")


@cache
def published() -> Forecaster:
    """Return the forecaster that looks at the curves of the published study."""
    return Forecaster()


def of_results(runs: Iterable[RunResult]) -> list[str]:
    """Return the lines of `Forecaster.outlooks` for the runs of a study, without those of which too little is known."""
    known = [run for run in runs if "parameters" in run.head and run.evaluations and not run.error]
    return list(published().outlooks((run.problem, run.strategy, Curve.of(run)) for run in known))


def would_reach(forecasts: Iterable[Forecast], unit: str) -> str:
    """Return forecasts of costs in a unit in words: `1,000 would reach 4 to 7 %, 10,000 6 to 11 %`.

    Percentages are gains of times, and by how much other costs are fewer, as in other lines.
    """
    (n, first), *others = ((made.evaluations, _between(made, unit)) for made in forecasts)
    return ", ".join([f"{n:,} would reach {first}", *(f"{m:,} {reach}" for m, reach in others)])


def _between(made: Forecast, unit: str) -> str:
    low, high = (percent(gain if is_time(unit) else gain / (1 + gain)) for gain in (made.low, made.high))
    return low if low == high else f"{low.removesuffix(' %')} to {high}"


def percent(gain: float) -> str:
    """Return a gain as text, with two digits."""
    if math.isinf(gain):
        return "infinite"
    return f"{100 * gain:.2g} %" if gain < 1 else f"{100 * gain:,.0f} %"


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
