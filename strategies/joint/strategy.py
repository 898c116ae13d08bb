"""The joint multi-pass search XTAT-M: passes are tuned together or in turn, each step by its own strategy."""

from __future__ import annotations

from collections.abc import Generator as Steps
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Level, Strategy, Task, option
from bbo_suite.registry import Registry

from . import schedule
from .candidate import Candidate
from .chain import Chain
from .one_pass import OnePass
from .subspace import Subspace, divide, merged, per_node
from .subspace_search import SubspaceSearch


@dataclass(frozen=True)
class JointOptions:
    """Options of `joint`."""

    schedule: str = option("", "steps such as 'layout+fusion: annealing; tile: exhaustive'; empty: that of XTAT")
    store: bool = option(True, "fill in the best known values where a graph changes, before the compiler's default")
    stints: int = option(1, "searches in each step, each around the best candidate so far", low=1, high=10_000)


class Joint(Strategy):
    """The joint search of XTAT (Phothilimthana et al. 2021).

    A schedule consists of steps. A step tunes one or several passes with any strategy. It searches a small space: the
    decisions of these passes on the graphs of the best candidate so far. When a decision changes the graph of later
    passes, their decisions are filled in again: from the best candidate if the decision is unchanged, else from the
    global store, else from the compiler's default. A step of separable passes tunes node by node, those with the
    largest share of the run time first; nodes with equal keys are tuned together. Steps get equal parts of the
    remaining budget. What a step does not spend goes to later steps, and in the end to those that still have something
    to try. The default is evaluated first, alone. The strategy of a step sees a declared structure only if its space is
    the task's.

        python -m bbo_suite run --strategy joint --problem joint/resnet50 \\
          --option "schedule=layout+fusion: mbo; tile: exhaustive"
    """

    Options: ClassVar[type] = JointOptions
    level: ClassVar[Level] = Level.STRUCTURE
    options: JointOptions

    def __init__(self, task: Task, budget: int, rng: Generator, options: JointOptions) -> None:
        super().__init__(task, budget, rng, options)
        passes = task.structure.passes if task.structure else None
        self._compiler = passes or OnePass(task)
        self._chain = Chain(task, self._compiler, options.store)
        registry, text = task.strategies or Registry(), options.schedule
        ids = registry.strategies().keys() - {"joint"}
        self._schedule = schedule.parse(text, self._compiler, ids) if text else schedule.default(self._compiler)
        self._strategies = {step.strategy: registry.strategy(step.strategy) for step in self._schedule}
        self._best = self._chain.start()
        self._left = budget
        self._searches = self._all_searches()
        self._search: SubspaceSearch | None = None

    @classmethod
    def members(cls, options: JointOptions) -> list[str]:
        """Return the ids of the strategies that the schedule names; an empty list for the default schedule."""
        return [step.partition(":")[2].strip() for step in options.schedule.split(";") if ":" in step]

    def ask(self, n: int) -> NDArray:
        """Return at most `n` well-formed candidates of the flat space; no rows when no step has any left."""
        if self._left == self.budget:
            return self._update(self._best, self._best.row[None].copy())
        while True:
            if self._search is None or not self._search.left or self._search.covered:
                self._search = next(self._searches, None)
            if self._search is None:
                return np.empty((0, len(self.task.space)), self.task.space.dtype)
            rows = self._search.ask(n)
            if len(rows):
                return self._update(self._search.base, rows)

    def _update(self, base: Candidate, rows: NDArray) -> NDArray:
        self._batch = self._chain.update(base, rows)
        self._left -= len(rows)
        return self._batch.rows

    def tell(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Update the best candidate and the best value of each decision, and tell the costs to the search."""
        self._chain.learn(self._batch, values)
        best = int(values.argmin())
        if values[best] < self._best.cost:
            self._best = self._batch.candidate(best, float(values[best]))
        if self._search is not None:
            self._search.tell(values)

    def _all_searches(self) -> Steps[SubspaceSearch, None, None]:
        """Yield one search after another; steps that are not covered come again while there is budget."""
        steps = self._schedule
        while steps and self._left:
            unfinished = []
            for place, step in enumerate(steps):
                covered = yield from self._step(step, _upper(self._left / (len(steps) - place)))
                unfinished += [] if covered else [step]
            steps = tuple(unfinished)

    def _step(self, step: schedule.Step, budget: int) -> Steps[SubspaceSearch, None, bool]:
        """Yield the searches of a step and return whether it is covered."""
        end = self._left - budget
        for stints_left in range(self.options.stints, 0, -1):
            if (yield from self._stint(step, _upper((self._left - end) / stints_left))):
                return True
        return False

    def _stint(self, step: schedule.Step, budget: int) -> Steps[SubspaceSearch, None, bool]:
        """Yield a search of each subspace of a step around the best candidate; return whether all are covered."""
        end, covered, strategy = self._left - budget, True, self._strategies[step.strategy]
        subspaces = self._subspaces(step)
        shares, caps = (np.array([getattr(subspace, f) for subspace in subspaces]) for f in ("share", "candidates"))
        for place in range(len(subspaces)):
            most = min(_upper(divide(self._left - end, shares[place:], caps[place:])[0]), self._left - end)
            if not most:
                return False
            search = SubspaceSearch(self.task, subspaces[place], self._best, strategy, most, self.rng.spawn(1)[0])
            yield search
            covered &= search.covered
        return covered

    def _subspaces(self, step: schedule.Step) -> list[Subspace]:
        """Return the subspaces of a step that have more than one candidate."""
        self._chain.tune(step.passes)
        self._best = self._chain.deepen(self._best)
        decided = [self._chain.decisions(name, self._best) for name in step.passes]
        subspaces = per_node(decided) if self._compiler.separable.issuperset(step.passes) else merged(decided)
        return [subspace for subspace in subspaces if subspace.candidates > 1]


def _upper(share: float) -> int:
    return int(np.ceil(share - 1e-9))
