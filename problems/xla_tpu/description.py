"""What can be decided about a program, and what a candidate decides: plain data that processes exchange."""

from __future__ import annotations

from dataclasses import dataclass

Order = tuple[int, ...]
"""The dimensions of an array in memory, major to minor."""


@dataclass(frozen=True)
class Value:
    """An array: its name, shape and dtype, and the source line that makes it."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    where: str = ""


@dataclass(frozen=True)
class Description:
    """What a search can decide about a program.

    Attributes:
      arguments, results: its arguments and results, in order.
      marks: values inside it.
      flows: pairs (from, to) of these that flow into each other, numbered arguments first, then marks, then results.
      digest: changes with the program.
    """

    arguments: tuple[Value, ...]
    results: tuple[Value, ...]
    marks: tuple[Value, ...]
    flows: tuple[tuple[int, int], ...]
    digest: str


@dataclass(frozen=True)
class Decisions:
    """What a candidate changes.

    Attributes:
      flags: names and values of flags.
      arguments, results: numbers of arguments and results, and their orders.
      layouts: names of values inside, and their orders.
      barriers: names of values that are not fused into their users.
    """

    flags: tuple[tuple[str, str], ...] = ()
    arguments: tuple[tuple[int, Order], ...] = ()
    results: tuple[tuple[int, Order], ...] = ()
    layouts: tuple[tuple[str, Order], ...] = ()
    barriers: tuple[str, ...] = ()
