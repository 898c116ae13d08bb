"""Beam search over decisions in order, in passes from coarse to fine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Level, Task, option

from .needs import graph_of
from .planned import Planned
from .single_changes import SingleChanges

_FINER = 8
"""Each pass decides an eighth of the parameters together that the pass before did."""


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
        _, nodes = graph_of(task, "published:halide")
        super().__init__(task, budget, rng, options)
        self._changes = SingleChanges(task.space)
        self._order = _from_outputs(nodes, self.moves.movable)
        self._beam: NDArray = task.default[None][:0].astype(task.space.dtype)
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
