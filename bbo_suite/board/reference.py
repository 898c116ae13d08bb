"""The reference list: tasks, budgets and seeds on which every strategy of the board ran. Another list is a version."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..core.problem import family_of
from ..errors import UserError
from ..plan import Plan
from ..registry import Registry
from ..scores import normalised_gain

FILE = Path(__file__).with_name("reference.json")


@dataclass(frozen=True)
class Task:
    """A task of the list.

    Attributes:
      fingerprint: of the problem's content.
      real: a compiler or hardware set its costs, not a model.
      budgets: evaluations of a run.
      default, best: the costs of the compiler's default, and the best that was known when the list was made.
    """

    problem: str
    fingerprint: str
    real: bool
    budgets: tuple[int, ...]
    default: float
    best: float

    @property
    def family(self) -> str:
        """The family of the problem."""
        return family_of(self.problem)

    def share(self, cost: float) -> float:
        """Return the gain of a cost over the default as a share of the best known gain; 0 if nothing succeeded."""
        return normalised_gain(self.default / cost, self.default / self.best) if np.isfinite(cost) else 0.0


@dataclass(frozen=True)
class ReferenceList:
    """A version of the list.

    Attributes:
      seeds: runs of each strategy on each task with each budget.
      batch: candidates of one `ask`.
      made_with: versions of packages whose tasks depend on them.
      digest: of all that the list says.
    """

    version: int
    seeds: int
    batch: int
    made_with: Mapping[str, str]
    tasks: tuple[Task, ...]
    digest: str

    @property
    def name(self) -> str:
        """The version with the digest, as score files hold it."""
        return f"{self.version}-{self.digest}"

    @property
    def budgets(self) -> list[int]:
        """All budgets, in their order."""
        return sorted({budget for task in self.tasks for budget in task.budgets})

    def task(self, problem: str, fingerprint: str) -> Task | None:
        """Return the task of a problem; None if it is not on the list."""
        found = (task for task in self.tasks if (task.problem, task.fingerprint) == (problem, fingerprint))
        return next(found, None)

    def plans(self, strategies: Sequence[str]) -> Iterator[Plan]:
        """Yield the runs of some strategies: a plan for each group of tasks with equal budgets."""
        for budgets in dict.fromkeys(task.budgets for task in self.tasks):
            problems = [task.problem for task in self.tasks if task.budgets == budgets]
            yield Plan(problems, strategies, budgets, self.seeds, self.batch, plain_seeds=True)

    def check_here(self, registry: Registry) -> None:
        """Check that the tasks are here what they were when the list was made.

        Raises:
          UserError: one is not, or cannot be loaded.
        """
        for task in self.tasks:
            if registry.problem(task.problem).fingerprint() != task.fingerprint:
                versions = " ".join(f"{name}=={version}" for name, version in self.made_with.items())
                what = (
                    f"{task.problem} is not the task of reference list {self.version}: the compiler's version differs"
                )
                raise UserError(f"{what}; `pip install {versions}` gets what the list was made with")


@cache
def reference_list(file: Path = FILE) -> ReferenceList:
    """Return the reference list of this version."""
    content = json.loads(file.read_text(encoding="utf-8"))
    tasks = tuple(Task(**{**task, "budgets": tuple(task["budgets"])}) for task in content["tasks"])
    return ReferenceList(**{**content, "tasks": tasks}, digest=digest(content))


def digest(content: Mapping[str, Any]) -> str:
    """Return 8 hexadecimal digits of all that a list says."""
    return hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=4).hexdigest()
