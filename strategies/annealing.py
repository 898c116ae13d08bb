"""Simulated annealing on small batches: several changes of one state at once, and the accepted ones merged."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from bbo_suite import Moves, Strategy, Task, option

from .archive import Archive, is_small
from .changes import AdaptiveChanges
from .opening import Opening

BATCH = 20
"""The largest batch: larger ones know less of earlier costs, smaller ones take more time per candidate."""
LIKELY = 0.5
"""A change is drawn only if the probability that it runs is larger."""
_SURE = 0.9  # least probability that a merged state runs: if it fails, its whole batch is lost
_SWEEPS = 10  # the full heat pays only if the budget allows this many sweeps over all parameters
_ATTEMPTS = 5


@dataclass(frozen=True)
class AnnealingOptions:
    """Options of `annealing`."""

    heat: float = option(0.2, "initial temperature, in median cost differences of a change", low=0, high=100)
    cooling: float = option(300.0, "initial temperature / final temperature", low=1, high=1e9)


class Annealing(Strategy):
    """Simulated annealing in batches of at most 20 (Kirkpatrick et al. 1983).

    Every candidate of a batch changes the same state (`AdaptiveMutation`): at one parameter, in random sweeps over all,
    or at several random places (`MutationRate`). Each is accepted or not by the rule of Metropolis, and the accepted
    ones that touch different parameters are merged into the next state, whose cost is measured with the next batch.
    Where most changes have no effect, these are not merged: one of them is taken if nothing else is accepted. If the
    merged state is refused, half as many changes are merged next time; if it is accepted, twice as many. With a batch
    of one this is plain annealing.

    The temperature falls geometrically over the budget, from a multiple of the median cost difference of the first
    changes, without those that have no effect. If the budget allows fewer than 10 sweeps over all parameters, there is
    no time to recover from bad changes: the temperature is multiplied by the square of the allowed share of the ten.

    If an early change multiplies the cost by a million, logarithms of costs take the place of costs: such costs stand
    for failures, and a temperature in their unit would accept everything else.

    In a space of fewer candidates than 100 times the budget, no candidate is proposed twice. When all changes of the
    state have been proposed, other candidates follow. Where the default is a nearly empty sequence, random candidates
    come first (`Opening`).

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
        self._parameters, self._opening = len(Moves(task.space).movable), Opening(task, budget, rng)
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
        if len(first := self._opening.draw(n)):
            return first
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
        if self._opening.drawn:
            return Annealing.observe(self, configs, values)
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
            differences = self._neighbours.differences(cost, values)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            chance = np.exp(-differences / self._temperature) if self._temperature > 0 else differences <= 0
        return np.isnan(differences) | (differences <= 0) | (self.rng.random(len(differences)) < chance)

    def _cool(self) -> None:
        sweeps = self.budget / max(1, self._parameters)
        start = self.options.heat * min(1.0, sweeps / _SWEEPS) ** 2 * self._neighbours.scale
        self._temperature = start * self.options.cooling ** -(self.told / self.budget)


class Neighbours(ABC):
    """A source of changes of a state that learns from what they cost."""

    def __init__(self) -> None:
        self._known = CostDifferences()

    @property
    def scale(self) -> float:
        """The median cost difference of a change; 0 until one is known."""
        return self._known.median

    def differences(self, cost: float, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return by how much `(k,)` costs exceed another, in the unit of `scale`."""
        return logarithms(values) - logarithms(cost) if self._known.logarithmic else values - cost

    def compare(self, cost: float, values: NDArray[np.float64]) -> None:
        """Learn how much the `(k,)` costs of changes differ from that of the state."""
        self._known.learn(cost, values)

    @property
    def sparse(self) -> bool:
        """False if it is known that most changes have an effect."""
        return True

    @abstractmethod
    def draw(self, state: NDArray, n: int) -> NDArray:
        """Return up to `n` changes of a `(d,)` state, `(k, d)`; they count as proposed."""

    @abstractmethod
    def learn(self, state: NDArray, cost: float, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Learn from the `(k,)` costs of the changes that were drawn last, given the cost of the state they change."""

    def claim(self, config: NDArray) -> bool:
        """Return whether a `(d,)` candidate may be proposed; if so it counts as proposed."""
        return True

    def exclude(self, configs: NDArray) -> None:  # noqa: B027 - not every source remembers what was proposed
        """Count `(k, d)` candidates as proposed."""

    def others(self, n: int) -> NDArray | None:
        """Return up to `n` other candidates, `(k, d)`, for when no change is left; None if a change is always left."""
        return None

    def chances(self, state: NDArray, configs: NDArray) -> NDArray[np.float64]:
        """Return the `(n,)` probabilities that `(n, d)` changes of a state run."""
        return np.ones(len(configs))


class RandomNeighbours(Neighbours):
    """Random changes: single ones in random sweeps over all parameters, and several at once at random places.

    A change that is more likely to fail than to run (`chances`) is not drawn.

    Memory: one shuffled list of the parameters, and what the archive holds.

    Args:
      task: whose space is searched.
      archive: the candidates that may not be proposed again; None if repeats are allowed.
      rng: draws the changes.
    """

    def __init__(self, task: Task, archive: Archive | None, rng: Generator) -> None:
        super().__init__()
        self.changes = AdaptiveChanges(Moves(task.space), rng)
        self._movable, self._archive, self._rng = self.changes.movable, archive, rng
        self._sweep = np.empty(0, np.int64)
        self._drawn = np.zeros((2, 0), np.int64)  # operators and numbers of the last changes

    @property
    def sparse(self) -> bool:
        """True if at least half of the single changes have no effect, and until the cost of one is known."""
        return self.changes.rate.is_sparse

    @property
    def drawn(self) -> int:
        """How many changes were drawn last."""
        return self._drawn.shape[1]

    def draw(self, state: NDArray, n: int) -> NDArray:
        """Return up to `n` changes of a state; fewer where new ones are hard to find."""
        changes, drawn = [state[None][:0]], [np.zeros((2, 0), np.int64)]
        for _ in range(_ATTEMPTS if len(self._movable) else 0):
            missing = n - sum(map(len, changes))
            if not missing:
                break
            changed = np.repeat(state[None], missing, axis=0)
            how = self.changes.change(changed, self._columns)
            likely = np.flatnonzero(self.chances(state, changed) > LIKELY)
            new = likely[self.claim_rows(changed[likely], missing)]
            changes.append(changed[new])
            drawn.append(how[:, new])
        self._drawn = np.concatenate(drawn, axis=1)
        return np.concatenate(changes)

    def _columns(self, n: int) -> NDArray[np.int64]:
        """Return the next parameters of the sweep: each comes once before any is repeated."""
        while len(self._sweep) < n:
            self._sweep = np.concatenate([self._sweep, self._rng.permutation(self._movable)])
        columns, self._sweep = self._sweep[:n], self._sweep[n:]
        return columns

    def learn(self, state: NDArray, cost: float, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Learn which operators pay and how much changes differ in cost."""
        if len(self._movable) and self.drawn == len(values):  # else these candidates are not changes
            self.changes.learn(self._drawn, cost, values)
        self.compare(cost, values)

    def claim(self, config: NDArray) -> bool:
        """Return whether a candidate may be proposed; if so it counts as proposed."""
        return len(self.claim_rows(config[None], 1)) > 0

    def claim_rows(self, configs: NDArray, n: int) -> NDArray[np.int64]:
        """Return the places of the first `n` rows that may be proposed; these count as proposed."""
        return self._archive.claim(configs, n) if self._archive else np.arange(min(n, len(configs)))

    def exclude(self, configs: NDArray) -> None:
        """Count candidates as proposed."""
        if self._archive:
            self._archive.add(self._archive.digests(configs))

    def others(self, n: int) -> NDArray | None:
        """Return candidates that were never proposed, on a walk over the whole space."""
        return self._archive.others(n) if self._archive else None


class CostDifferences:
    """Cost differences between a state and its changes, without zeros; only the first 200 or more are kept.

    If one of these changes multiplies the cost by a million or more, differences are of logarithms from then on: some
    costs then stand for failures, and their differences say nothing about others.

    Attributes:
      logarithmic: true if they are.
    """

    _ENOUGH, _FAR = 200, 1e6

    def __init__(self) -> None:
        self._known: list[NDArray[np.float64]] = []
        self._logs: list[NDArray[np.float64]] = []
        self.logarithmic = False

    def learn(self, cost: float, values: NDArray[np.float64]) -> None:
        """Add the `(k,)` costs of changes of a state, given its own cost, until there are enough."""
        if sum(map(len, self._known)) < self._ENOUGH and np.isfinite(cost):
            differences = np.abs(values - cost)
            known = differences[np.isfinite(differences) & (differences > 0)]
            if len(known):  # empty entries would pile up on a plateau and slow each call down
                self._known.append(known)
                self._learn_logs(cost, values[np.isfinite(differences) & (differences > 0)])

    def _learn_logs(self, cost: float, values: NDArray[np.float64]) -> None:
        if cost > 0 and values.min() > 0:
            self.logarithmic |= bool(values.max() / cost >= self._FAR)
            self._logs.append(np.abs(logarithms(values) - logarithms(cost)))

    @property
    def median(self) -> float:
        """The median; 0 while there is none."""
        known = np.concatenate([np.empty(0), *(self._logs if self.logarithmic else self._known)])
        return float(np.median(known)) if len(known) else 0.0


def logarithms(costs: ArrayLike) -> NDArray[np.float64]:
    """Return the logarithms of costs; a cost of 0 counts as a tiny one."""
    return np.log(np.maximum(costs, np.finfo(np.float64).tiny))
