"""The contract of a problem: a space, a default, and a cost for every candidate."""

from __future__ import annotations

import hashlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import UserError
from .space import Space
from .task import Strategies, Structure, Task
from .versions import arguments_version, code_version, is_ours

NO_CHANGE = "# the default"
"""What `paste` gives for a row that changes nothing, where only changes are written."""


class Status(IntEnum):
    """What became of a candidate."""

    OK = 0
    FORBIDDEN = 1
    COMPILE_ERROR = 2
    RUNTIME_ERROR = 3
    TIMEOUT = 4
    WRONG_RESULT = 5

    @property
    def word(self) -> str:
        """The status as it stands in files and tables."""
        return self.name.lower()


@dataclass(frozen=True)
class Evaluations:
    """What a batch of n candidates cost.

    Attributes:
      values: `(n,)` float64 in the problem's unit, to be minimised; inf for a candidate that failed.
      status: `(n,)` of `Status`.
      reasons: why a candidate failed, or a remark on one that did not, by its place in the batch.
      seconds: `(n,)` what each evaluation took; None lets the engine divide the batch's time.
    """

    values: NDArray[np.float64]
    status: NDArray[np.int8]
    reasons: dict[int, str] = field(default_factory=dict)
    seconds: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, values: ArrayLike) -> Self:
        """Return evaluations from `(n,)` values alone; inf counts as a runtime error."""
        numbers = np.asarray(values, np.float64)
        return cls(numbers, np.where(np.isposinf(numbers), Status.RUNTIME_ERROR, Status.OK).astype(np.int8))


class Problem(ABC):
    """A family of black-box tasks; one object is one instance.

    A subclass sets `instances`, and in its constructor, which takes an instance's name, `space` and `default`.
    `id` is given by the registry: `family/instance`.
    """

    instances: ClassVar[Sequence[str]] = ()
    unit: ClassVar[str] = "seconds"
    space: Space
    default: NDArray
    optimum: float | None = None
    id: str = ""
    workers: int = 1
    """Processes that a problem with a live compiler may use for a batch; no cost depends on it."""
    constructed_with: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})
    """The arguments of the constructor, from which another process builds the same problem."""

    def __new__(cls, *arguments: object, **keywords: object) -> Self:
        """Keep the constructor's arguments."""
        made = super().__new__(cls)
        made.constructed_with = arguments, keywords
        return made

    @classmethod
    def from_file(cls, path: str) -> Self:
        """Return the instance that a user's file holds, for ids `family:path`.

        Raises:
          UserError: the file cannot be read, or the family reads none.
        """
        raise UserError(f"{cls.__name__} reads no files ({path}); use one of its instances: {', '.join(cls.instances)}")

    @abstractmethod
    def evaluate(self, configs: NDArray) -> Evaluations:
        """Return the cost of `(n, d)` allowed candidates; the same candidate always costs the same, noise aside."""

    def structure(self) -> Structure | None:
        """Return what the problem declares about its parameters, None if nothing."""
        return None

    def fingerprint(self) -> str:
        """Return a text that changes when the problem does: rows of different fingerprints are never mixed.

        By default it covers the space, the default, the source of the class's module and the constructor's arguments.
        """
        content = f"{self._version()}|{self.space.digest()}|{self.space.pack(self.default_row())}"
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def _version(self) -> str:
        made = type(self)
        if is_ours(made):  # its release covers the rest of its module
            return inspect.getsource(made)
        return f"{made.__qualname__}|{code_version(made)}|{arguments_version(*self.constructed_with)}"

    def why_unversioned(self) -> str:
        """Return why the fingerprint would not show a change of the problem, so that a run cannot be resumed, or ""."""
        made = type(self)
        if is_ours(made) or made.fingerprint is not Problem.fingerprint:
            return ""
        if not code_version(made):
            return f"problem {self.id} has no source file"
        if not arguments_version(*self.constructed_with):
            return f"problem {self.id} has an argument whose content cannot be compared"
        return ""

    def default_row(self) -> NDArray:
        """Return a copy of the default as a `(d,)` row of the space.

        Raises:
          ValueError: it is none.
        """
        return self.space.check(np.array(self.default)[None])[0]

    def facts(self) -> dict[str, str]:
        """Return what `show` prints about this instance beyond its space, by name.

        `results` says how the results of a compiled program are checked, where they are; `best` repeats it.
        """
        return {}

    def paste(self, config: NDArray) -> str:
        """Return an allowed `(d,)` row in the compiler's own words, ready to paste; never empty.

        Here, and so in families that have no words of their own, a line `name = label` for each parameter that differs
        from the default.
        """
        differing = np.flatnonzero(config != self.default_row()).tolist()
        lines = [f"{self.space.name(i)} = {self.space.values(i)[config[i]]}" for i in differing]
        return "\n".join(lines) or NO_CHANGE

    def task(self, uses_structure: bool = True, strategies: Strategies | None = None) -> Task:
        """Return what a strategy may know; without the structure for one that does not say that it uses it.

        Args:
          strategies: for a strategy that runs others.
        """
        structure = self.structure() if uses_structure else None
        return Task(self.id, self.space, self.default_row(), self.unit, structure, strategies)
