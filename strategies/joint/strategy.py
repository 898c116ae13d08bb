"""The joint multi-pass search XTAT-M: passes are tuned together or in turn, each step by its own strategy."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from collections.abc import Generator as Steps
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Decisions, Kind, Level, MultiPass, Space, Strategy, Task, Told, UserError, option
from bbo_suite.errors import did_you_mean
from bbo_suite.registry import Registry

from .chain import Candidate, Chain, OnePass


@dataclass(frozen=True)
class JointOptions:
    """Options of `joint`."""

    schedule: str = option("", "steps such as 'layout+fusion: annealing; tile: exhaustive'; empty: that of XTAT")
    store: bool = option(True, "fill in the best known values where a graph changes, before the compiler's default")
    stints: int = option(1, "searches in each step, each around the best candidate so far", low=1, high=10_000)


class Joint(Strategy):
    """Tunes passes together or one after another (XTAT, Phothilimthana et al. 2021).

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
        self._schedule = parse_schedule(text, self._compiler, ids) if text else default_schedule(self._compiler)
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

    def _step(self, step: Step, budget: int) -> Steps[SubspaceSearch, None, bool]:
        """Yield the searches of a step and return whether it is covered."""
        end = self._left - budget
        for stints_left in range(self.options.stints, 0, -1):
            if (yield from self._stint(step, _upper((self._left - end) / stints_left))):
                return True
        return False

    def _stint(self, step: Step, budget: int) -> Steps[SubspaceSearch, None, bool]:
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

    def _subspaces(self, step: Step) -> list[Subspace]:
        """Return the subspaces of a step that have more than one candidate."""
        self._chain.tune(step.passes)
        self._best = self._chain.deepen(self._best)
        decided = [self._chain.decisions(name, self._best) for name in step.passes]
        subspaces = per_node(decided) if self._compiler.separable.issuperset(step.passes) else merged(decided)
        return [subspace for subspace in subspaces if subspace.candidates > 1]


def _upper(share: float) -> int:
    return int(np.ceil(share - 1e-9))


@dataclass(frozen=True)
class Step:
    """Passes that are tuned together.

    Attributes:
      passes: in the order in which the compiler runs them.
      strategy: the id of the strategy that proposes their decisions.
    """

    passes: tuple[str, ...]
    strategy: str


def default_schedule(compiler: MultiPass) -> tuple[Step, ...]:
    """Return the schedule of XTAT-M: passes that change the graph jointly by annealing, then each separable pass."""
    joint = tuple(name for name in compiler.passes if name not in compiler.separable)
    steps = [Step(joint, "annealing")] if joint else []
    return (*steps, *(Step((name,), "exhaustive") for name in compiler.passes if name in compiler.separable))


def parse_schedule(text: str, compiler: MultiPass, strategies: Collection[str]) -> tuple[Step, ...]:
    """Return the steps of a text such as `layout+fusion: annealing; tile: exhaustive`.

    Args:
      text: steps separated by `;`. A step is its passes separated by `+`, a `:`, and the id of a strategy.
      compiler: knows the passes; a step may name them in any order, and a schedule may leave some out.
      strategies: the ids that a step may name.

    Raises:
      UserError: the text is not a schedule of these passes.
    """
    steps: list[Step] = []
    for number, part in enumerate(text.split(";"), start=1):
        place = f"step {number} of schedule {text!r}"
        step = _step(part, place, compiler.passes, strategies)
        for name in step.passes:
            if any(name in earlier.passes for earlier in steps):
                raise UserError(f"{place} tunes pass {name!r} again; name each pass once")
        steps.append(step)
    return tuple(steps)


def _step(part: str, place: str, passes: tuple[str, ...], strategies: Collection[str]) -> Step:
    if not part.strip():
        raise UserError(f"{place} is empty; write pass+pass: strategy, and no ';' at the end")
    before, _, after = part.partition(":")
    names, strategy = [name.strip() for name in before.split("+")], after.strip()
    for name in names:
        if name not in passes:
            raise UserError(
                f"{place} names pass {name!r}, but the compiler has no such pass.{did_you_mean(name, passes)}"
            )
        if names.count(name) > 1:
            raise UserError(f"{place} names pass {name!r} twice; name each pass once")
    if not strategy:
        raise UserError(f"{place} names no strategy; write {'+'.join(names)}: strategy, such as annealing")
    if strategy not in strategies and strategy.partition(":")[0] not in strategies:  # the registry knows its variants
        hint = " It cannot search for itself." if strategy == "joint" else ""
        raise UserError(f"{place} names no usable strategy: {strategy!r}.{hint}{did_you_mean(strategy, strategies)}")
    return Step(tuple(sorted(names, key=passes.index)), strategy)


_LEAST_SHARE = 1e-9


@dataclass(frozen=True, eq=False)
class Subspace:
    """A small space of k parameters, and the m columns of the flat space that take its values.

    Attributes:
      sizes: `(k,)` number of values of each parameter.
      targets: `(m,)` columns of the flat space that it decides; the first k belong to one parameter each.
      origins: `(m,)` the parameter from which each of them takes its value.
      share: the share of the run time that it decides about.
    """

    sizes: NDArray[np.int64]
    targets: NDArray[np.int64]
    origins: NDArray[np.int64]
    share: float = 1.0

    @property
    def candidates(self) -> float:
        """Number of candidates without regard to constraints; inf beyond the range of a float."""
        with np.errstate(over="ignore"):
            return float(np.prod(self.sizes.astype(float)))

    def space(self, flat: Space) -> Space:
        """Return the small space; it keeps constraints and sequences only if it is the whole flat space."""
        if np.array_equal(self.targets, np.arange(len(flat))) and np.array_equal(self.sizes, flat.sizes):
            return flat
        kinds = flat.kinds[self.targets[: len(self.sizes)]]
        return Space(self.sizes, np.where(kinds == Kind.SLOT, Kind.CHOICE, kinds))


def merged(decided: Sequence[Decisions]) -> list[Subspace]:
    """Return the decisions of several passes as one subspace."""
    targets = np.concatenate([d.columns for d in decided])
    return [Subspace(np.concatenate([d.sizes for d in decided]), targets, np.arange(len(targets)))]


def per_node(decided: Sequence[Decisions]) -> list[Subspace]:
    """Return a subspace for each node of separable passes, largest share first; nodes with equal keys share one."""
    columns, sizes, keys = (np.concatenate([getattr(d, f) for d in decided]) for f in ("columns", "sizes", "keys"))
    nodes, shares = (np.concatenate([getattr(d, f) for d in decided]) for f in ("nodes", "share"))
    passes = np.repeat(np.arange(len(decided)), [len(d.columns) for d in decided])
    order = np.argsort(nodes, kind="stable")
    groups: dict[bytes, list[NDArray[np.int64]]] = {}
    for places in np.split(order, np.flatnonzero(np.diff(nodes[order])) + 1):
        groups.setdefault(passes[places].tobytes() + keys[places].tobytes(), []).append(places)
    parts = []
    for members in groups.values():
        origins = np.tile(np.arange(len(members[0])), len(members))
        share = sum(float(shares[places].max(initial=_LEAST_SHARE)) for places in members)
        parts.append(Subspace(sizes[members[0]], columns[np.concatenate(members)], origins, share))
    return sorted(parts, key=lambda part: -part.share)


def divide(total: float, shares: NDArray[np.float64], caps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide `total` in proportion to `(k,)` shares; an amount above the cap of one share goes to the others."""
    full = np.zeros(len(shares), bool)
    while not full.all():
        level = max(0.0, total - caps[full].sum()) / shares[~full].sum()
        over = ~full & (level * shares >= caps)
        if not over.any():
            return np.where(full, caps, level * shares)
        full |= over
    return caps


class SubspaceSearch:
    """Lets a strategy that knows nothing about passes search a small space.

    The strategy starts from the base. When it first proposes the base itself, it is told the known cost, and no
    evaluation is spent; further repeats are evaluated.

    Args:
      task: the whole task.
      subspace: the small space.
      base: gives all other decisions.
      strategy: proposes candidates, with its default options.
      budget: evaluations that it may spend.
      rng: the generator of the strategy.

    Attributes:
      base: as given.
      left: evaluations that it may still spend.
      covered: true if the strategy has nothing left to propose.
    """

    def __init__(
        self, task: Task, subspace: Subspace, base: Candidate, strategy: type[Strategy], budget: int, rng: Generator
    ) -> None:
        self._subspace, self.base, self.left, self.covered = subspace, base, budget, False
        self._space = subspace.space(task.space)
        start = np.minimum(base.row[subspace.targets[: len(subspace.sizes)]], subspace.sizes - 1)
        self._start = start.astype(self._space.dtype)
        structure = task.structure if self._space is task.space else None
        own_task = Task(task.problem, self._space, self._start, task.unit, structure, task.strategies)
        self._strategy = strategy(own_task, budget + 1, rng, strategy.Options())
        self._base_proposed = False
        self._configs = np.empty((0, len(subspace.sizes)), self._space.dtype)
        self._evaluated = np.empty(0, bool)

    def ask(self, n: int) -> NDArray:
        """Return at most `n` rows of the flat space, `(m, d)`; no rows when nothing is left."""
        self._propose(min(n, self.left))
        if len(self._configs) and not self._evaluated.any():
            self.tell(np.empty(0))
            self._propose(min(n, self.left))
        configs = self._configs[self._evaluated]
        self.left -= len(configs)
        self.covered = not len(configs)
        rows = np.repeat(self.base.row[None], len(configs), axis=0)
        one_each = len(self._subspace.targets) == configs.shape[1]
        rows[:, self._subspace.targets] = configs if one_each else configs[:, self._subspace.origins]
        return rows

    def _propose(self, n: int) -> None:
        self._configs = self._space.check(self._strategy.ask(n))
        is_base = (self._configs == self._start).all(axis=1)
        self._evaluated = np.ones(len(self._configs), bool)
        if is_base.any() and not self._base_proposed:
            self._evaluated[is_base.argmax()] = False
            self._base_proposed = True

    def tell(self, values: NDArray[np.float64]) -> None:
        """Tell the strategy the `(m,)` costs of what was just asked for, unless its budget is spent."""
        if self.left:
            costs = np.full(len(self._configs), self.base.cost)
            costs[self._evaluated] = values
            self._strategy.receive(Told(self._configs, costs))
