"""What a problem tells about a candidate besides its cost: its differences from the default, and its kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Change:
    """A difference of a candidate from the default.

    Attributes:
      column: of the parameter.
      name: what is decided.
      default, value: the decision of the default and of the candidate.
    """

    column: int
    name: str
    default: str
    value: str


@dataclass(frozen=True)
class Kernel:
    """Instructions that run together.

    Attributes:
      name: of the instruction whose result it stores, one of `members`; a program has at most one kernel of a name.
      cost: of all its runs, in the problem's unit.
      members: the names of the instructions that it computes; several kernels may compute the same one.
      settings: what else is chosen for it, by name.
    """

    name: str
    cost: float
    members: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Program:
    """A program as a candidate compiles it.

    Attributes:
      kernels: in the order in which they run; their costs add up to that of the candidate.
      edges: `(m, 2)` numbers of kernels: the second reads what the first stores.
    """

    kernels: tuple[Kernel, ...]
    edges: NDArray[np.int64]
