"""A strategy's options as a space that can be searched."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from ..errors import UserError

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

WIDE = 100.0
"""A range whose ends differ by this factor is searched on a logarithmic scale."""
REACH = 10.0
"""The furthest that a search goes from a default by which its range reaches far beyond: options take far larger values
than make sense, and a population of a hundred thousand is mostly slow."""


@dataclass(frozen=True)
class Knob:
    """One option: a choice among values, or a number in a closed range.

    Numbers of a wide range are searched by their logarithm, or, where the range begins at 0, which often means
    `automatic`, by that of one more; and within ten times the default, or a tenth of it.
    """

    name: str
    choices: tuple[Any, ...] = ()
    low: float = 0.0
    high: float = 0.0
    whole: bool = False

    @property
    def _shift(self) -> float | None:
        """What is added before the logarithm; None for a linear scale."""
        shift = 0.0 if self.low > 0 else 1.0
        return shift if self.low >= 0 and (self.high + shift) / (self.low + shift) >= WIDE else None

    def distribution(self) -> BaseDistribution:
        """Return the range for Optuna; that of a number is of what `coded` returns."""
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        if self.choices:
            return CategoricalDistribution(self.choices)
        if self.whole and self._shift is None:
            return IntDistribution(int(self.low), int(self.high))
        return FloatDistribution(self.coded(self.low), self.coded(self.high))

    def coded(self, value: Any) -> Any:  # noqa: ANN401 - whatever the option holds
        """Return the value as it is searched."""
        return value if self.choices or self._shift is None else math.log(value + self._shift)

    def option(self, coded: Any) -> Any:  # noqa: ANN401
        """Return the value of what `coded` returned, numbers with four digits, as people would write them."""
        if self.choices:
            return coded
        value = coded if self._shift is None else math.exp(coded) - self._shift
        value = min(max(value, self.low), self.high)
        return round(value) if self.whole else float(f"{value:.4g}")


def knobs_of(options: type, owner: str) -> list[Knob]:
    """Return a knob for every option with a finite number of values or a closed range.

    Raises:
      UserError: there is none.
    """
    types = get_type_hints(options)
    found = [_knob(field, types[field.name]) for field in dataclasses.fields(options)]
    knobs = [knob for knob in found if knob is not None]
    if not knobs:
        what = "no options" if not found else "no option with a finite number of values or a closed range"
        raise UserError(f"{owner} has {what}, so there is nothing to tune")
    return knobs


def _knob(field: dataclasses.Field[Any], kind: Any) -> Knob | None:  # noqa: ANN401 - a class or a form of `typing`
    if kind is bool:
        return Knob(field.name, (False, True))
    if get_origin(kind) is Literal:
        return Knob(field.name, get_args(kind))
    low, high = field.metadata.get("low", -math.inf), field.metadata.get("high", math.inf)
    if kind not in (int, float) or not (math.isfinite(low) and math.isfinite(high)) or low == high:
        return None
    default = field.default
    if low >= 0 and isinstance(default, int | float) and 0 < default < high / REACH:
        low, high = max(low, default / REACH), default * REACH
    return Knob(field.name, (), math.ceil(low) if kind is int else low, high, kind is int)
