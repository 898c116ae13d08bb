"""Simulated annealing on small batches: several changes of one state at once, and the accepted ones merged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Moves, Strategy, Task, option

from .archive import Archive, is_small
from .neighbours import Neighbours, RandomNeighbours, logarithms

BATCH = 20
"""The largest batch: larger ones know less of earlier costs, smaller ones take more time per candidate."""
_SURE = 0.9  # least probability that a merged state runs: if it fails, its whole batch is lost
_SWEEPS = 10  # the full heat pays only if the budget allows this many turns of all parameters


@dataclass(frozen=True)
class AnnealingOptions:
    """Options of `annealing`."""

    heat: float = option(0.2, "initial temperature, in median cost differences of a change", low=0, high=100)
    cooling: float = option(300.0, "initial temperature / final temperature", low=1, high=1e9)


class Annealing(Strategy):
    """Simulated annealing (Kirkpatrick et al. 1983) on batches of at most 20.

    Every candidate of a batch is a change of the same state (`AdaptiveMutation`), over all parameters in shuffled
    turns, or several changes at random places (`Strength`). Each is accepted or not by the rule of Metropolis, and the
    accepted ones that touch different parameters are merged into the next state, whose cost is measured with the next
    batch. Where most changes cost nothing, changes without effect are not merged: one of them is taken if nothing else
    is accepted. If the merged state is refused, half as many changes are merged next time; if it is accepted, twice as
    many. With a batch of one this is plain annealing.

    The temperature falls geometrically over the budget, from a multiple of the median cost difference of the first
    changes, without those that have no effect. If the budget allows fewer than 10 turns of all parameters, there is no
    time to recover from bad changes: the temperature is multiplied by the square of the share of these turns that it
    allows.

    If an early change multiplies the cost by a million, logarithms of costs take the place of costs: such costs stand
    for failures, and a temperature in their unit would accept everything else.

    In a space of fewer candidates than 100 times the budget, no candidate is proposed twice. When all changes of the
    state have been proposed, other candidates follow.

    Memory: a batch and one shuffled list of the parameters; in such a small space also 16 characters per candidate.

    Args:
      neighbours: the source of the changes (default: random changes).

    Attributes:
      state: `(d,)` the candidate that is changed.
      cost: its cost; inf until it is measured, or if it failed.
      merged: `(d,)` the next state while its cost is not known: it is then the first row of the next batch.
        Otherwise None.
      told: number of candidates that were told or observed.
    """

    Options: ClassVar[type] = AnnealingOptions
    options: AnnealingOptions

    def __init__(
        self, task: Task, budget: int, rng: Generator, options: AnnealingOptions, neighbours: Neighbours | None = None
    ) -> None:
        super().__init__(task, budget, rng, options)
        archive = Archive(task.space, rng) if neighbours is None and is_small(task, budget) else None
        self._neighbours = neighbours or RandomNeighbours(task, archive, rng)
        self._parameters = len(Moves(task.space).movable)
        self.state: NDArray = task.default.astype(task.space.dtype)
        self.cost = np.inf
        self.merged: NDArray | None = self.state
        self.told, self._temperature = 0, 0.0
        self._most = 1 << 20

    def ask(self, n: int) -> NDArray:
        """Return at most 20 candidates: the state if its cost is not known yet, and changes of it.

        There are no rows only when the whole space has been proposed.
        """
        n = min(n, BATCH)
        if self.merged is not None and not self._neighbours.claim(self.merged):
            self.merged = None
        if self.merged is None:
            configs = self._neighbours.draw(self.state, n)
        else:
            configs = np.concatenate([self.merged[None], self._neighbours.draw(self.merged, n - 1)])
        others = None if len(configs) else self._neighbours.others(n)
        return configs if others is None else others

    def tell(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Accept or refuse the merged state, then each change of it, and merge what was accepted."""
        self.told += len(values)
        self._cool()
        base, cost = self.state, self.cost
        if self.merged is not None:
            base, cost = configs[0], float(values[0])
            worse = cost > self.cost and not self._accepts(np.array([cost]), self.cost)[0]
            self._most = max(1, self._most // 2) if worse else self._most * 2
            if not worse:
                self.state, self.cost = base.copy(), cost
            self.merged, configs, values = None, configs[1:], values[1:]
        self._neighbours.learn(base, cost, configs, values)
        reference = min(cost, self.cost) if np.isinf(cost) else cost
        self._merge(base, cost, configs, values, self._accepts(values, reference) if np.isfinite(reference) else None)

    def observe(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Advance the schedule; continue from another strategy's candidate if it is better than the state."""
        self.told += len(values)
        self._neighbours.exclude(configs)
        best = int(np.argmin(values))
        if values[best] < self.cost:
            self.state, self.cost, self.merged = configs[best].copy(), float(values[best]), None

    def _merge(
        self, base: NDArray, cost: float, configs: NDArray, values: NDArray, accepted: NDArray[np.bool_] | None
    ) -> None:
        """Set the next state: changes of `base`, cheapest first, each unless it touches a parameter of an earlier one.

        Args:
          accepted: `(k,)`; None if neither `base` nor the state runs.
        """
        chosen = np.flatnonzero(np.isfinite(values) if accepted is None else accepted)
        chosen = chosen[np.argsort(values[chosen], kind="stable")]
        if self._neighbours.sparse:  # many changes without effect would pile up in the state
            effective = chosen[values[chosen] != cost]
            chosen = effective if len(effective) else chosen[:1]
        if not len(chosen) and np.isinf(self.cost) and len(configs):
            self.state = configs[self.rng.integers(len(configs))].copy()  # all have failed so far: take a random step
        if accepted is None or cost > self.cost:  # from a base that was refused, only the best change can be taken
            chosen = chosen[:1]
            if len(chosen) and not self._accepts(values[chosen], self.cost)[0]:
                return
        if len(chosen):
            self.state, self.cost = configs[chosen[0]].copy(), float(values[chosen[0]])
        merged, touched, taken = self.state.copy(), self.state != base, 1
        for i in chosen[1 : self._most]:
            changed = configs[i] != base
            joined = np.where(changed, configs[i], merged)
            if not (changed & touched).any() and self._neighbours.chances(merged, joined[None])[0] > _SURE:
                merged, touched, taken = joined, touched | changed, taken + 1
        if taken > 1 and bool(self.task.space.allowed(merged[None])[0]):
            self.merged = merged

    def _accepts(self, values: NDArray[np.float64], cost: float) -> NDArray[np.bool_]:
        """Apply the rule of Metropolis to steps from a cost to `(k,)` others; between failures all are accepted."""
        with np.errstate(invalid="ignore"):
            differences = logarithms(values) - logarithms(cost) if self._neighbours.logarithmic else values - cost
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            chance = np.exp(-differences / self._temperature) if self._temperature > 0 else differences <= 0
        return np.isnan(differences) | (differences <= 0) | (self.rng.random(len(differences)) < chance)

    def _cool(self) -> None:
        turns = self.budget / max(1, self._parameters)
        start = self.options.heat * min(1.0, turns / _SWEEPS) ** 2 * self._neighbours.scale
        self._temperature = start * self.options.cooling ** -(self.told / self.budget)
