"""Building a small space by hand: `product(choice("layout", ["NCHW", "NHWC"]), scale("tile", [8, 16]))`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .constraint import Constraint
from .space import Kind, Space


@dataclass(frozen=True)
class Parameter:
    """A named parameter, or a sequence of `length` slots with the same values."""

    name: str
    values: Sequence[Any]
    kind: Kind
    length: int = 1
    distinct: bool = False


def choice(name: str, values: Sequence[Any]) -> Parameter:
    """Return a parameter whose values have no order."""
    return Parameter(name, values, Kind.CHOICE)


def scale(name: str, values: Sequence[Any]) -> Parameter:
    """Return a parameter whose values are ordered, smallest first."""
    return Parameter(name, values, Kind.SCALE)


def sequence(name: str, length: int, values: Sequence[Any]) -> Parameter:
    """Return a sequence of `length` slots; each holds any of the values."""
    return Parameter(name, values, Kind.SLOT, length)


def permutation(name: str, values: Sequence[Any]) -> Parameter:
    """Return a sequence with one slot per value that uses every value once."""
    return Parameter(name, values, Kind.SLOT, len(values), distinct=True)


def product(*parameters: Parameter, constraints: Sequence[Constraint] = ()) -> Space:
    """Return the space of the parameters.

    Args:
      constraints: rules over columns of the space; a sequence of n slots has n columns.

    Raises:
      ValueError: two parameters have the same name, or `Space` refuses the arguments.
    """
    twice = {p.name for p in parameters if sum(p.name == other.name for other in parameters) > 1}
    if twice:
        raise ValueError(f"parameter {min(twice)!r} occurs twice; give each parameter its own name")
    owners = [p for p in parameters for _ in range(p.length)]
    places = [i for p in parameters for i in range(p.length)]
    numbers = [number for number, p in enumerate(parameters) for _ in range(p.length)]
    return Space(
        sizes=[len(p.values) for p in owners],
        kinds=[p.kind for p in owners],
        groups=[n if p.kind is Kind.SLOT else -1 for n, p in zip(numbers, owners, strict=True)],
        permutations=[n for n, p in enumerate(parameters) if p.distinct],
        constraints=constraints,
        names=[f"{p.name}[{i}]" if p.kind is Kind.SLOT else p.name for p, i in zip(owners, places, strict=True)],
        values=[p.values for p in owners],
    )
