"""The search space of a strategy's options."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from ..errors import UserError

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

WIDE = 100.0
"""A range whose ends differ by this factor or more is searched on a logarithmic scale."""
REACH = 10.0
"""A range that reaches far beyond the default is cut to the default divided and multiplied by this: options accept far
larger values than make sense; a population of a hundred thousand, for example, is mostly slow."""


@dataclass(frozen=True)
class Dimension:
    """One option: a choice among values, or a number in a closed range.

    A number with a wide range is searched on a logarithmic scale. Where the range begins at 0, which often means
    "automatic", one is added before the logarithm is taken.

    Attributes:
      choices: the values to choose from; empty for a number.
      low, high: the ends of a number's range.
      whole: whether the number is an integer.
    """

    name: str
    choices: tuple[Any, ...] = ()
    low: float = 0.0
    high: float = 0.0
    whole: bool = False

    @property
    def _shift(self) -> float | None:
        """The number that is added before the logarithm is taken; None for a linear scale."""
        shift = 0.0 if self.low > 0 else 1.0
        return shift if self.low >= 0 and (self.high + shift) / (self.low + shift) >= WIDE else None

    def distribution(self) -> BaseDistribution:
        """Return Optuna's distribution of the encoded values."""
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        if self.choices:
            return CategoricalDistribution(self.choices)
        if self.whole and self._shift is None:
            return IntDistribution(int(self.low), int(self.high))
        return FloatDistribution(self.encode(self.low), self.encode(self.high))

    def encode(self, value: Any) -> Any:  # noqa: ANN401 - whatever the option holds
        """Return the value as it is searched: numbers may be on a logarithmic scale."""
        return value if self.choices or self._shift is None else math.log(value + self._shift)

    def decode(self, encoded: Any) -> Any:  # noqa: ANN401
        """Return the option's value from what `encode` returned, with four digits, as people would write it."""
        if self.choices:
            return encoded
        value = encoded if self._shift is None else math.exp(encoded) - self._shift
        value = min(max(value, self.low), self.high)
        return round(value) if self.whole else float(f"{value:.4g}")


def search_space(options: type, owner: str) -> list[Dimension]:
    """Return a dimension for every option with a finite number of values or a closed range.

    Raises:
      UserError: there is no such option.
    """
    types = get_type_hints(options)
    fields = [_dimension(field, types[field.name]) for field in dataclasses.fields(options)]
    dimensions = [dimension for dimension in fields if dimension is not None]
    if not dimensions:
        what = "no options" if not fields else "no option with a finite number of values or a closed range"
        raise UserError(f"{owner} has {what}, so there is nothing to tune")
    return dimensions


def _dimension(field: dataclasses.Field[Any], kind: Any) -> Dimension | None:  # noqa: ANN401 - a class or a form of `typing`
    if kind is bool:
        return Dimension(field.name, (False, True))
    if get_origin(kind) is Literal:
        return Dimension(field.name, get_args(kind))
    low, high = field.metadata.get("low", -math.inf), field.metadata.get("high", math.inf)
    if kind not in (int, float) or not (math.isfinite(low) and math.isfinite(high)) or low == high:
        return None
    default = field.default
    if low >= 0 and isinstance(default, int | float) and 0 < default < high / REACH:
        low, high = max(low, default / REACH), default * REACH
    return Dimension(field.name, (), math.ceil(low) if kind is int else low, high, kind is int)
