"""What a problem can tell a person about its candidates: changes, kernels, and how to use one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .space import Space

NO_CHANGE = "# the default"
"""What `paste` returns for the default, if it writes only differences."""


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


@dataclass(frozen=True)
class Words:
    """What a picture calls the pieces of a program; by default they are kernels, whose costs are times.

    Attributes:
      kernel, member: a piece, and what it is made of.
      edge: what an arrow between two pieces is.
      incoming, outgoing: what comes before the names of pieces that an arrow comes from, or goes to.
      strip: how all pieces stand side by side.
      gone: why a piece is gone.
    """

    kernel: str = "kernel"
    member: str = "instruction"
    edge: str = "data through memory"
    incoming: str = "reads"
    outgoing: str = "read by"
    strip: str = "in the order in which they run, as wide as they take long"
    gone: str = "others compute it"


@dataclass(frozen=True, eq=False)
class Program:
    """A program as a candidate compiles it.

    Attributes:
      kernels: in the order in which they run; their costs add up to that of the candidate.
      edges: `(m, 2)` numbers of kernels: the second reads what the first stores.
      words: for kernels that are something else, such as functions.
    """

    kernels: tuple[Kernel, ...]
    edges: NDArray[np.int64]
    words: Words = Words()


class Descriptions:
    """Optional methods of a problem: no strategy and no result depends on them."""

    space: Space
    default: NDArray
    pasted_file: str = ""
    """The name of the file that the text of `paste` belongs in, which `best` writes; empty if it is not for a file."""

    def facts(self) -> dict[str, str]:
        """Return further facts about this instance by name; `show` prints them.

        If the results of compiled programs are checked, `results` describes how; `best` prints it, too.
        """
        return {}

    def assumptions(self) -> dict[str, str]:
        """Return what the costs assume where the input does not say it, by name; `run` prints them, once."""
        return {}

    def paste(self, config: NDArray) -> str:
        """Return an allowed `(d,)` row in the compiler's own syntax, ready to paste; never empty.

        By default: a line `name = value` for each parameter that differs from the default.
        """
        return "\n".join(f"{change.name} = {change.value}" for change in self.changes(config)) or NO_CHANGE

    def changes(self, config: NDArray) -> list[Change]:
        """Return the differences of an allowed `(d,)` row from the default; those without effect may be left out."""
        default = np.asarray(self.default).tolist()
        columns = [(i, self.space.values(i)) for i in np.flatnonzero(config != default).tolist()]
        return [Change(i, self.space.name(i), str(v[default[i]]), str(v[config[i]])) for i, v in columns]

    def picture(self, config: NDArray) -> Program | None:
        """Return the program as an allowed `(d,)` row compiles it; None if the problem knows no kernels."""
        return None

    def replayed(self, config: NDArray, value: float) -> str:
        """Return in a few words what the compiler's own tool makes of what `paste` returns; empty if it is not tried.

        Args:
          config: an allowed `(d,)` row.
          value: its cost.
        """
        return ""

    def usage(self) -> str:
        """Return how to use what `paste` returns: with which tool and version, or that it is for reading only."""
        return ""
