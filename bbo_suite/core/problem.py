"""The contract of a problem: a space, a default, and a cost for every candidate."""

from __future__ import annotations

import hashlib
import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import UserError
from ..parts.parts import Parts
from .level import Level
from .program import Descriptions
from .space import Space
from .task import Compiler, Screen, Strategies, Structure, Task
from .versions import arguments_version, code_version, is_ours

ESTIMATE = "estimate"
"""The name of the model that is the compiler's own."""


SAME_CODE = "same code as another candidate"
"""The remark on a candidate that was not measured, because another one was compiled to the same."""


class Status(IntEnum):
    """The outcome of an evaluation."""

    OK = 0
    FORBIDDEN = 1
    COMPILE_ERROR = 2
    RUNTIME_ERROR = 3
    TIMEOUT = 4
    WRONG_RESULT = 5

    @property
    def word(self) -> str:
        """The status as text for files and tables."""
        return self.name.lower()


@dataclass(frozen=True, repr=False)
class Evaluations:
    """The results of evaluating a batch of n candidates.

    Attributes:
      values: `(n,)` float64 costs in the problem's unit, to be minimised; inf for a candidate that failed.
      status: `(n,)` of `Status`.
      reasons: why a candidate failed, or a remark on one that did not, by its position in the batch.
      seconds: `(n,)` the time of each evaluation; None: the engine divides the batch's time evenly.
      parts: what each candidate consists of, with the cost of each part; None if it was not asked for or is unknown.
    """

    values: NDArray[np.float64]
    status: NDArray[np.int8]
    reasons: dict[int, str] = field(default_factory=dict)
    seconds: NDArray[np.float64] | None = None
    parts: Parts | None = None

    @classmethod
    def of(cls, values: ArrayLike) -> Self:
        """Return evaluations from `(n,)` values alone; inf counts as a runtime error.

        Raises:
          ValueError: they are complex numbers or texts.
        """
        if (given := np.asarray(values)).dtype.kind not in "biufO":
            raise ValueError(f"the values are of type {given.dtype}; a cost is a number")
        numbers = np.asarray(given, np.float64)
        return cls(numbers, np.where(np.isposinf(numbers), Status.RUNTIME_ERROR, Status.OK).astype(np.int8))

    def __repr__(self) -> str:
        """Return the number of candidates with each status and the lowest cost."""
        statuses, counts = np.unique(self.status, return_counts=True)
        found = ", ".join(f"{n:,} {Status(s).word}" for s, n in zip(statuses.tolist(), counts.tolist(), strict=True))
        best = f"; best {min(self.values):.6g}" if len(self.values) else ""
        return f"Evaluations({len(self.values):,} candidates: {found or 'none'}{best})"


def family_of(problem_id: str) -> str:
    """Return the family of a problem by its id, `family/instance` or `family:path`."""
    return re.split("[:/]", problem_id)[0]


def set_fact(problem: Problem, name: str, value: object) -> None:
    """Set an attribute of a problem, also if its class is a frozen dataclass."""
    object.__setattr__(problem, name, value)


class Problem(Descriptions, ABC):
    """A family of optimization problems; an object is one instance.

    A subclass sets `instances`. Its constructor takes the name of an instance and sets `space` and `default`.
    The registry sets `id` to `family/instance`.
    """

    instances: ClassVar[Sequence[str]] = ()
    variant_marks: ClassVar[str] = "@#"
    """The characters that begin a variant of an instance, which the constructor interprets; empty if it has none."""
    reads_files: ClassVar[bool] = False
    """True if the constructor also takes the `Path` of a user's file."""
    decision: ClassVar[str] = ""
    """What a candidate decides, in a few words. This and the next four are for tables of families."""
    costs: ClassVar[str] = ""
    """What the cost is, in a few words; empty: the unit says it."""
    optimum_known: ClassVar[str] = "no"
    """For which instances the optimum is known: `yes`, `no`, or which."""
    time_per_candidate: ClassVar[str] = ""
    """How long an evaluation takes, such as `10 to 50 ms`."""
    extra: ClassVar[str] = ""
    """The extra of this distribution that installs what the family needs, as in `pip install bbo_suite[halide]`."""
    unit: ClassVar[str] = "seconds"
    space: Space
    default: NDArray
    optimum: float | None = None
    bound: float | None = None
    """No candidate costs less; for problems whose optimum is unknown."""
    published_in: str = ""
    """Where the costs in `baselines` and the bound are published; empty if this suite computes them."""
    id: str = ""
    noisy: bool = False
    """True if the costs of one candidate differ; then a run measures its best candidates again in the end."""
    timed: bool = False
    """True if costs are times that other work on this machine changes; then runs are made one at a time."""
    workers: int = 1
    """The number of processes that a live compiler may use for a batch; costs do not depend on it."""
    constructed_with: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})
    """The arguments of the constructor, from which another process builds the same problem."""
    statistics: Sequence[str] = ()
    """The names of what `compile` tells; empty: compiling tells nothing, or already the cost."""
    programs: Sequence[Problem] = ()
    """The problems that each candidate is evaluated on, if this one combines several; `best --keep` asks for them."""

    def __new__(cls, *arguments: object, **keywords: object) -> Self:
        """Keep the constructor's arguments."""
        made = super().__new__(cls)
        set_fact(made, "constructed_with", (arguments, keywords))
        return made

    @classmethod
    def from_file(cls, path: str) -> Self:
        """Return the problem that a user's file describes, for ids `family:path`.

        Raises:
          UserError: the file cannot be read, or the family does not read files.
        """
        if cls.reads_files:
            return cls(Path(path))
        raise UserError(
            f"{cls.__name__} does not read files ({path}); use one of its instances: {', '.join(cls.instances)}"
        )

    @classmethod
    def available(cls) -> str:
        """Return why the family cannot be used on this machine, such as a library that is missing; empty if it can."""
        return ""

    @abstractmethod
    def evaluate(self, configs: NDArray) -> Evaluations:
        """Return the costs of `(n, d)` allowed candidates; apart from noise, a candidate always costs the same.

        The engine calls it with rows of the space's type whose indices are in range. To evaluate candidates from
        elsewhere, call `bbo_suite.evaluate`, which checks them.
        """

    def evaluate_parts(self, configs: NDArray) -> Evaluations:
        """Return the costs as `evaluate` does, and with them those of the parts if the problem knows them."""
        return self.evaluate(configs)

    @property
    def tells_parts(self) -> bool:
        """True if `evaluate_parts` returns parts."""
        return type(self).evaluate_parts is not Problem.evaluate_parts

    @property
    def exact_parts(self) -> bool:
        """True if parts with equal keys always have equal costs; see `Decomposition.exact`."""
        structure = None if self.noisy else self.structure()
        parts = structure.parts if structure else None
        return not self.noisy and bool(getattr(parts, "exact", True))  # decompositions of plugins may not say it

    def combine(self, parts: Parts) -> NDArray[np.float64]:
        """Return the `(n,)` costs of candidates that follow from their parts: by default the sums."""
        return parts.sums()

    def compile(self, configs: NDArray) -> NDArray[np.float64]:
        """Return the `(n, k)` `statistics` of allowed candidates, such as sizes of functions, without measuring any.

        They are numbers that do not vary from one compilation to the next; nan for a candidate that fails.
        """
        raise NotImplementedError

    def structure(self) -> Structure | None:
        """Return what the problem declares about its parameters; None if nothing."""
        return None

    def screen(self, model: str) -> Screen:
        """Return a model of the costs, which predicts those of any candidates without an evaluation.

        By default there is `estimate`, if the problem declares the compiler's own estimates of parts: their sum.

        Args:
          model: a name that the problem knows, or the path of a file.

        Raises:
          UserError: there is no such model for this problem.
        """
        structure = self.structure()
        parts = structure.parts if structure else None
        if model != ESTIMATE or parts is None or parts.estimate is None:
            raise UserError(f"there is no model {model!r} of the costs of {self.id}; its family has to offer one")
        return parts.estimated

    def leave_cache(self) -> None:
        """Evaluate every candidate from now on: costs that are stored outside this object are neither read nor written.

        By default nothing is stored.
        """
        return

    def fingerprint(self) -> str:
        """Return a text that changes when the problem changes. Rows with different fingerprints are never mixed.

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
        """Return why the fingerprint cannot detect a change of the problem, so that runs cannot be resumed; else ""."""
        made = type(self)
        if made.fingerprint is not Problem.fingerprint:
            return ""
        return self._why_code_is_unversioned()

    def _why_code_is_unversioned(self) -> str:
        made = type(self)
        if is_ours(made):
            return ""
        if not code_version(made):
            return f"problem {self.id} has no source file"
        if not arguments_version(*self.constructed_with):
            return f"problem {self.id} has an argument whose content cannot be compared"
        return ""

    def default_row(self) -> NDArray:
        """Return a copy of the default as a `(d,)` row of the space.

        Raises:
          ValueError: the default is not a row of the space.
        """
        return self.space.check(np.array(self.default)[None])[0]

    def baselines(self) -> dict[str, float]:
        """Return the costs, by name, that candidates are compared with besides the default, such as that of `-O3`.

        In the problem's unit; inf where one fails. They are stored with a run when it starts, and need no candidate of
        the space. A known optimum is in `optimum`.
        """
        return {}

    def ratios(self, config: NDArray, reference: NDArray | str, first: int, count: int) -> Sequence[float]:
        """Return logarithms of the ratios of two candidates' costs, each measured in turns; inf if the first fails.

        By default there are none: then the engine evaluates one after the other.

        Args:
          config: `(d,)` a candidate.
          reference: `(d,)` another one, or the name of a baseline.
          first: pairs of these two that were measured before.
          count: of pairs, at most.

        Raises:
          UserError: the reference fails.
        """
        return ()

    def __repr__(self) -> str:
        """Return the class, the id, the space and the unit."""
        space = getattr(self, "space", None)  # missing if the constructor failed
        return f"{type(self).__name__}({self.id!r}, {space!r}, unit {self.unit!r})"

    def task(self, level: Level = Level.STRUCTURE, strategies: Strategies | None = None) -> Task:
        """Return the problem as a strategy of a level sees it.

        Args:
          strategies: for a strategy that runs others.

        Raises:
          UserError: the structure does not fit the space.
        """
        structure = self.structure() if level >= Level.STRUCTURE else None
        if isinstance(structure, Structure):
            structure.check(self.id, len(self.space))
        screen = self.screen if level >= Level.STRUCTURE else None
        names = self.statistics if level >= Level.COMPILATION else ()
        compiler = Compiler(self.id, self.space, names, self.compile) if names else None
        task = Task(self.id, self.space, self.default_row(), self.unit, structure, strategies, screen, compiler)
        return task.at(level)
