"""The parameters of a problem: flags, orders of dimensions, barriers; and the decisions of a candidate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Space, choice, product, scale
from bbo_suite.core.parameters import Parameter

from .description import Decisions, Description, Order, Value
from .flags import DEFAULT, FLAGS, Flag

FLAG, ARGUMENT, RESULT, LAYOUT, BARRIER = (field.name for field in fields(Decisions))
"""What a parameter decides: a field of `Decisions`."""


@dataclass(frozen=True)
class Decision:
    """One parameter.

    Attributes:
      kind: what it decides.
      key: the flag or value: its name, or its number among arguments or results.
      values: possible values; one of them is `default`.
      value: number of the value in the description's flows, -1 for a flag.
      name: for users.
      ordered: whether the values are a scale.
    """

    kind: str
    key: str | int
    values: tuple[str | Order, ...]
    value: int
    name: str
    ordered: bool = False

    def parameter(self) -> Parameter:
        """Return it as a parameter of a space."""
        return (scale if self.ordered else choice)(self.name, self.values)


def decisions_of(description: Description, flags: Sequence[Flag] = FLAGS) -> list[Decision]:
    """Return all parameters for a program."""
    return [*(Decision(FLAG, f.name, f.values, -1, f.name, f.ordered) for f in flags), *_of_values(description)]


def _of_values(description: Description) -> Iterator[Decision]:
    groups = ((ARGUMENT, description.arguments), (LAYOUT, description.marks), (RESULT, description.results))
    number = 0
    for kind, values in groups:
        for place, value in enumerate(values):
            key = value.name if kind == LAYOUT else place
            if len(orders := _orders(value)) > 1:
                yield Decision(kind, key, (DEFAULT, *orders), number, f"layout {value.name}")
            if kind == LAYOUT:
                yield Decision(BARRIER, value.name, (DEFAULT, "barrier"), number, f"barrier {value.name}")
            number += 1


def _orders(value: Value) -> list[Order]:
    """Return orders of an array's dimensions: the order of its shape, and all orders with one dimension moved."""
    rank = len(value.shape)
    found: dict[Order, None] = {tuple(range(rank)): None}
    for taken in range(rank):
        rest = [i for i in range(rank) if i != taken]
        found |= {(*rest[:place], taken, *rest[place:]): None for place in range(rank)}
    return list(found)


def space_of(decisions: Sequence[Decision]) -> tuple[Space, NDArray[np.int64]]:
    """Return the space of the parameters and the default row."""
    space = product(*(decision.parameter() for decision in decisions))
    return space, np.array([decision.values.index(DEFAULT) for decision in decisions])


def decisions_of_row(decisions: Sequence[Decision], config: NDArray) -> Decisions:
    """Return the decisions of a `(d,)` row, without those that are the default."""
    chosen: dict[str, list] = {field.name: [] for field in fields(Decisions)}
    for decision, index in zip(decisions, config.tolist(), strict=True):
        value = decision.values[index]
        if value != DEFAULT:
            chosen[decision.kind].append(decision.key if decision.kind == BARRIER else (decision.key, value))
    return Decisions(**{kind: tuple(values) for kind, values in chosen.items()})
