"""What there is to decide about a program, and what a candidate decides: plain data between the processes."""

from __future__ import annotations

from dataclasses import dataclass

Order = tuple[int, ...]
"""The dimensions of an array as they lie in memory, the slowest first."""


@dataclass(frozen=True)
class Value:
    """An array: its name, shape and dtype, and where the source makes it."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    where: str = ""


@dataclass(frozen=True)
class Description:
    """What a search can decide about a program.

    Attributes:
      arguments, results: the arrays that enter and leave it, in order.
      marks: values inside.
      flows: which of all these flows into which: numbers of arguments, then marks, then results.
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
      arguments, results: numbers of arrays that enter and leave the program, and their orders.
      layouts: names of values inside, and their orders.
      barriers: names of values that are not fused into what uses them.
    """

    flags: tuple[tuple[str, str], ...] = ()
    arguments: tuple[tuple[int, Order], ...] = ()
    results: tuple[tuple[int, Order], ...] = ()
    layouts: tuple[tuple[str, Order], ...] = ()
    barriers: tuple[str, ...] = ()
