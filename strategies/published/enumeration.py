"""Searches that enumerate the single changes of candidates: best first, by beam, by blocks, ranked by a model."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Decomposition, Graph, Level, Parts, Task, option

from ..changes import SingleChanges
from ..graphs import components
from .model_search import BestFound
from .planned import Planned, lacking

_PLAN = 100  # changes of TASO's plan
_FINER = 8
"""Each pass of Halide decides an eighth of the parameters together that the pass before did."""
_CHUNK = 256  # changes that DeepCuts ranks at a time


@dataclass(frozen=True)
class TasoOptions:
    """Options of `published:taso`."""

    alpha: float = option(1.0, "a child is queued if it costs less than this times the best (its examples)", 0, 100)
    queue: int = option(1000, "longest queue (ours, for memory)", low=1, high=1_000_000)


class Taso(Planned):
    """Best-first search with pruning by alpha, in the style of TASO (Jia et al. 2019).

    Reproduced, from its public code: a queue of candidates by cost; the cheapest is taken, every change at every place
    is tried, and children that cost less than alpha times the best one taken so far enter the queue. When it is empty,
    the search ends. The examples in its repository use an alpha of 1.

    Different here: a change is another value of one parameter, or two slots of a permutation exchanged; changes are
    tried in a random order; every child is measured and counts.

    Not reproduced: its substitutions of graphs, their generation and verification, and its sum of measured operators.
    """

    Options: ClassVar[type] = TasoOptions
    options: TasoOptions

    def __init__(self, task: Task, budget: int, rng: Generator, options: TasoOptions) -> None:
        super().__init__(task, budget, rng, options)
        self._changes = SingleChanges(task.space)
        self._queue: list[tuple[float, int, NDArray]] = []
        self._best, self._pushed = np.inf, 0
        self._row: NDArray | None = None
        self._order, self._tried = np.empty(0, np.int64), 0

    def plan(self) -> NDArray:
        """Return the next children of the candidate that is expanded."""
        while True:
            while self._row is not None and self._tried < len(self._order):
                places = self._order[self._tried : self._tried + _PLAN]
                self._tried += len(places)
                children = self.new(self._changes.rows(self._row, places))
                if len(children):
                    return children
            if not self._queue:
                return self.none
            cost, _, self._row = heapq.heappop(self._queue)
            self._best = min(self._best, cost)
            self._order, self._tried = self.rng.permutation(len(self._changes)), 0

    def remember(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Queue candidates that cost less than alpha times the best."""
        limit = self._best + (self.options.alpha - 1) * abs(self._best) if np.isfinite(self._best) else np.inf
        for place in np.flatnonzero((values < limit) | (self._pushed == 0)):
            self._pushed += 1
            heapq.heappush(self._queue, (float(values[place]), self._pushed, configs[place].copy()))
        if len(self._queue) > self.options.queue:
            self._queue = heapq.nsmallest(self.options.queue, self._queue)


@dataclass(frozen=True)
class HalideOptions:
    """Options of `published:halide`."""

    beam: int = option(32, "candidates that survive a decision (its code), fewer if the budget is short", 1, 10_000)
    passes: int = option(5, "passes from coarse to fine (its code)", low=1, high=100)


class Halide(Planned):
    """Beam search over ordered decisions, coarse to fine, in the style of Halide's autoscheduler (Adams et al. 2019).

    Reproduced, from its public code: decisions are taken one after another, from the outputs of the program to its
    inputs; of all that follow from the beam, the cheapest 32 survive; five passes, of which each refines what the ones
    before found.

    Different here: a candidate in which some decisions are open is measured with these as the pass before left them, at
    first as in the default, where Halide asks a learned cost model. The first pass decides eight parts of the program
    at a time, one value for all parameters of a part; each further pass has parts an eighth as large, down to single
    parameters. Halide penalises candidates whose coarse form did not survive the pass before; here the beam goes on
    from what survived. If the budget is too short, the beam is narrower, so that all passes can end.

    Not reproduced: its space of schedules, its cost model and its features.
    """

    Options: ClassVar[type] = HalideOptions
    level: ClassVar[Level] = Level.STRUCTURE
    options: HalideOptions

    def __init__(self, task: Task, budget: int, rng: Generator, options: HalideOptions) -> None:
        _, nodes = _graph_of(task, "published:halide")
        super().__init__(task, budget, rng, options)
        self._changes = SingleChanges(task.space)
        self._order = _from_outputs(nodes, self.moves.movable)
        self._beam = self.none
        self._costs = np.empty(0)
        self._parts: list[NDArray[np.int64]] = []
        self._pass, self._width = 0, options.beam

    def plan(self) -> NDArray:
        """Return what follows from the beam by the next decision; none after the last pass."""
        while self._pass < self.options.passes or self._parts:
            if not self._parts:
                self._pass += 1
                self._parts = self._divided()
                self._width = self._affordable()
                self._survive()
            if self._parts:
                part = self._parts.pop(0)
                children = self.new(np.concatenate([self._children(row, part) for row in self._beam]))
                if len(children):
                    return children
        return self._beam[:0]

    def _divided(self) -> list[NDArray[np.int64]]:
        """Return the parameters that this pass decides together, in order."""
        count = min(len(self._order), _FINER**self._pass)
        return np.array_split(self._order, count) if count else []

    def _affordable(self) -> int:
        """Return the width of the beam with which the passes that are left fit into the budget, each with a share."""
        sizes = self.task.space.sizes
        decisions = sum(int(sizes[part].max()) - 1 for part in self._parts)
        share = self.budget / self.options.passes
        return int(np.clip(share // max(1, decisions), 1, self.options.beam))

    def _children(self, row: NDArray, part: NDArray[np.int64]) -> NDArray:
        """Return a row with each other decision of a part: one value for all its parameters."""
        if len(part) == 1:
            return self._changes.of(row, part)
        sizes = self.task.space.sizes[part]
        rows = np.repeat(row[None], sizes.max(), axis=0)
        rows[:, part] = np.minimum(np.arange(len(rows))[:, None], sizes - 1)
        return rows[self.task.space.allowed(rows)]

    def learn(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Let the cheapest survive."""
        self._beam = np.concatenate([self._beam, configs])
        self._costs = np.concatenate([self._costs, values])
        self._survive()

    def _survive(self) -> None:
        order = np.argsort(self._costs, kind="stable")[: self._width]
        self._beam, self._costs = self._beam[order], self._costs[order]


def _from_outputs(nodes: NDArray[np.int64], movable: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the movable parameters in the order of decisions, from the last node of the program to the first."""
    return movable[np.argsort(-nodes[movable], kind="stable")]


@dataclass(frozen=True)
class PetOptions:
    """Options of `published:pet`."""

    threshold: int = option(3, "inputs and outputs from which on a node is a cut (its code)", low=1, high=1000)
    size: int = option(5, "largest number of nodes of a block (its code)", low=1, high=10_000)
    depth: int = option(5, "largest number of changes, one after another, in a block (its code)", low=1, high=1000)
    width: int = option(5, "candidates of each depth that are changed further (its code)", low=1, high=10_000)


class Pet(Planned):
    """Search of blocks between cuts of the graph, in the style of PET (Wang et al. 2021).

    Reproduced, from its public code: the graph is cut at nodes with three or more inputs and outputs, into blocks of at
    most five nodes; in each block, changes of changes are tried up to a depth of five, five of each depth go on, and
    the best is taken.

    Different here: a change is another value of one of the block's parameters; each candidate is measured as a whole,
    with the other blocks as they are; blocks are searched in turn until none improves, and then the search ends.

    Not reproduced: what the system is known for, programs that are equal only in part and are then corrected. That
    belongs to the space, not to the search, so this is the search by blocks alone.
    """

    Options: ClassVar[type] = PetOptions
    level: ClassVar[Level] = Level.STRUCTURE
    options: PetOptions

    def __init__(self, task: Task, budget: int, rng: Generator, options: PetOptions) -> None:
        graph, nodes = _graph_of(task, "published:pet")
        super().__init__(task, budget, rng, options)
        self._changes = SingleChanges(task.space)
        self._blocks = blocks(graph, nodes, self.moves.movable, options)
        self._best: NDArray = task.default.astype(task.space.dtype)
        self._cost = np.inf
        self._block, self._unchanged, self._depth = -1, 0, options.depth
        self._front: list[NDArray] = []

    def plan(self) -> NDArray:
        """Return the changes of the next depth of a block; none when no block has improved since it was searched."""
        while self._unchanged <= len(self._blocks) and self._blocks:
            if not self._front or self._depth == self.options.depth:
                self._block = (self._block + 1) % len(self._blocks)
                self._unchanged, self._depth, self._front = self._unchanged + 1, 0, [self._best]
            self._depth += 1
            columns = self._blocks[self._block]
            children = self.new(np.concatenate([self._changes.of(row, columns) for row in self._front]))
            if len(children):
                return children
            self._front = []
        return self._best[None][:0]

    def learn(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Keep the best, and let some of this depth be changed further."""
        order = np.argsort(values, kind="stable")[: self.options.width]
        order = order[np.isfinite(values[order])]
        self._front = [configs[place].copy() for place in order]
        if len(order) and values[order[0]] < self._cost:
            self._best, self._cost, self._unchanged = self._front[0], float(values[order[0]]), 0


def blocks(
    graph: Graph, nodes: NDArray[np.int64], movable: NDArray[np.int64], options: PetOptions
) -> list[NDArray[np.int64]]:
    """Return the parameters of each block; a cut is a block of its own, and so are those that decide no node."""
    n = len(graph.node_features)
    cut = np.bincount(graph.edges.ravel(), minlength=n) >= options.threshold
    inner = graph.edges[~cut[graph.edges].any(axis=1)]
    of = components(n, inner[:, 0], inner[:, 1])
    order = np.lexsort((np.arange(n), of))
    firsts = np.flatnonzero(np.diff(of[order], prepend=-1))
    places = np.arange(n) - np.repeat(firsts, np.diff(np.append(firsts, n)))  # of each node in its component
    block = np.empty(n, np.int64)
    block[order] = of[order] * n + places // options.size
    keys = np.where(nodes[movable] < 0, -1, block[nodes[movable]])
    order = np.argsort(nodes[movable], kind="stable")
    found: dict[int, list[int]] = {}
    for column, key in zip(movable[order].tolist(), keys[order].tolist(), strict=True):
        found.setdefault(key, []).append(column)
    return [np.array(columns) for columns in found.values()]


@dataclass(frozen=True)
class DeepCutsOptions:
    """Options of `published:deepcuts`."""

    enumerated: int = option(1000, "candidates that are ranked for a plan (ours)", low=1, high=1_000_000)
    top: int = option(20, "candidates of a plan, the best by the model (ours)", low=1, high=10_000)


class DeepCuts(Planned):
    """Enumeration ranked by a declared model, the top k measured, in the style of DeepCuts (Jung et al. 2021).

    Reproduced, from the publication's description: candidates are enumerated and ranked by a model of their cost that
    needs no measurement, and only the best are measured. Its settings are not published; these are ours.

    Different here: the model is the sum of what the task's compiler estimates for the parts of a candidate, so this
    strategy is counted among those that see parts, though it ignores their costs. Our spaces are too large to be
    enumerated as a whole: a plan ranks single changes of the best measured candidate, and random candidates follow when
    none of these is left.

    Not reproduced: its model of GPU kernels, which is its contribution, and its space of implementations.
    """

    Options: ClassVar[type] = DeepCutsOptions
    level: ClassVar[Level] = Level.PARTS
    options: DeepCutsOptions

    def __init__(self, task: Task, budget: int, rng: Generator, options: DeepCutsOptions) -> None:
        self._model = _model_of(task, "published:deepcuts")
        super().__init__(task, budget, rng, options)
        self._changes = SingleChanges(task.space)
        self._best: NDArray = task.default.astype(task.space.dtype)
        self._cost = np.inf

    def plan(self) -> NDArray:
        """Return the best new candidates by the model; random ones where no single change is new."""
        best = BestFound(self.task.space, self.archive, self.options.top)
        places = self.rng.permutation(len(self._changes))[: self.options.enumerated]
        for first in range(0, len(places), _CHUNK):
            rows = self._changes.rows(self._best, places[first : first + _CHUNK])
            if len(rows):
                best.add(rows, -self.estimates(rows))
        return self.new(best.rows) if len(best.rows) else self.random(self.options.top)

    def estimates(self, configs: NDArray) -> NDArray[np.float64]:
        """Return the `(n,)` estimated costs of allowed candidates."""
        known = self._model.describe(configs)
        assert self._model.estimate is not None
        return Parts(known.starts, known.keys, known.counts, known.features[:, self._model.estimate]).sums()

    def learn(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Go on from the best measured."""
        place = int(np.argmin(values))
        if values[place] < self._cost:
            self._best, self._cost = configs[place].copy(), float(values[place])


def _graph_of(task: Task, owner: str) -> tuple[Graph, NDArray[np.int64]]:
    """Return the task's graph, and the `(d,)` node that each parameter decides, or whose output it decides; -1: none.

    Raises:
      UserError: it declares no graph.
    """
    structure = task.structure
    if structure is None or structure.graph is None or (structure.nodes is None and structure.edges is None):
        raise lacking(task, f"{owner} needs the computation graph that parameters decide on", "a computation graph")
    nodes = np.full(len(task.space), -1) if structure.nodes is None else structure.nodes.astype(np.int64)
    if structure.edges is not None:
        decides = (nodes < 0) & (structure.edges >= 0)
        nodes[decides] = structure.graph.edges[structure.edges[decides], 0]
    return structure.graph, nodes


def _model_of(task: Task, owner: str) -> Decomposition:
    """Return the decomposition whose parts have an estimate.

    Raises:
      UserError: the task declares none.
    """
    parts = task.structure.parts if task.structure else None
    if parts is None or parts.estimate is None:
        need = f"{owner} ranks candidates by a compiler's own estimate of their parts"
        raise lacking(task, need, "estimates of parts")
    return parts
