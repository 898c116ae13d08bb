"""Changes of a state, of which models choose a share."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Moves, Task

from ..archive import Archive
from ..neighbours import Neighbours, RandomNeighbours, logarithms
from .acquisition import acquisition, maximise
from .arms import Arms
from .ensemble import Ensemble
from .failures import Failures
from .features import Features
from .hits import Hits
from .options import ModelOptions

_CELLS = 20_000_000  # of a population: above 100,000 parameters it is made smaller, so that it fits into memory
_WORST = 10.0  # cost differences are clipped at this many medians
_LIKELY = 0.5


class ModelNeighbours(Neighbours):
    """Changes of a state: those that the models expect to gain most, and random ones."""

    def __init__(self, task: Task, options: ModelOptions, rng: Generator) -> None:
        self._space, self._options, self._rng = task.space, options, rng
        self._movable = Moves(task.space).movable
        self._population = min(options.population, max(20, _CELLS // len(task.space)))
        self._failures = Failures(task.space)
        self._random = RandomNeighbours(task, Archive(task.space, rng), rng, self._failures.chances)
        self._features, self._ensemble = Features(task), Ensemble(options.threshold, options.folds, rng)
        self._arms = Arms(("model", "changes") if options.models else ("changes",), rng)
        self._makers: list[str] = []
        self._hits = Hits()

    @property
    def scale(self) -> float:
        """The median cost difference of a random change."""
        return self._random.scale

    @property
    def logarithmic(self) -> bool:
        """True if a random change has multiplied the cost by a million."""
        return self._random.logarithmic

    @property
    def sparse(self) -> bool:
        """True if at least half of the random single changes cost nothing, and until the cost of one is known."""
        return self._random.sparse

    @property
    def scores(self) -> dict[str, float]:
        """The cross-validated score of each regressor."""
        return self._ensemble.scores

    @property
    def hit_rate(self) -> float | None:
        """How much more often chosen changes improve the state than random ones; None until it is known."""
        return self._hits.ratio

    def set_progress(self, progress: float) -> None:
        """Set the share of the budget that is spent."""
        self._arms.progress = progress

    def draw(self, state: NDArray, n: int) -> NDArray:
        """Return up to `n` changes of a state, those of the models first."""
        counts = self._arms.draw(n, () if self._ensemble.members else ("model",))
        chosen = self._chosen(state, counts.get("model", 0))
        others = self._random.draw(state, n - len(chosen))
        self._makers = ["model"] * len(chosen) + ["changes"] * len(others)
        return np.concatenate([chosen, others])

    def _chosen(self, state: NDArray, n: int) -> NDArray:
        """Return the `n` changes with the highest acquisition."""
        if not n:
            return state[None][:0]

        def score(children: NDArray) -> NDArray[np.float64]:
            predictions = self._ensemble.predict(self._features.of(state, children))
            name, weight = self._options.acquisition, self._options.exploration
            noise, no_gain = self._ensemble.noise(), self._ensemble.no_gain
            return acquisition(name, predictions, noise, no_gain, weight, self._rng)

        visited = maximise(score, state, self._mutate, self._population, self._options.generations, self._rng)
        visited = visited[self._space.allowed(visited)]
        visited = visited[_disjoint(visited != state)]
        visited = visited[self.chances(state, visited) > _LIKELY]
        return visited[self._random.claim_rows(visited, n)]

    def _mutate(self, configs: NDArray) -> NDArray:
        """Change each of `(n, d)` candidates anywhere, in place."""
        movable, n = self._movable, len(configs)
        if len(movable):
            self._random.mutation.change(configs, np.arange(n), movable[self._rng.integers(0, len(movable), n)])
        return configs

    def learn(self, state: NDArray, cost: float, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Learn what the changes that were drawn last are worth, and which arm makes good ones."""
        chosen = len(values) - self._random.drawn
        self._random.learn(state, cost, configs[chosen:], values[chosen:])
        self._arms.credit(self._makers, np.maximum(-self._differences(cost, values), 0.0))
        if np.isfinite(cost):
            self._hits.learn(values < cost, chosen)
        fits = self._ensemble.fits
        self.study(state, cost, configs, values)
        if self._ensemble.fits > fits:
            self._hits.close()

    def study(self, state: NDArray, cost: float, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Let the models learn the `(k,)` costs of changes of a state; nothing is learned if the state failed."""
        if not self._options.models or not len(configs) or not np.isfinite(cost):
            return
        if not self.scale:  # before the first own change; else these labels would have another unit than later ones
            self._random.compare(cost, values)
        worked = ~self._failures.learn(state, configs, np.isinf(values))
        if worked.any():
            differences = self._differences(cost, values[worked])
            self._ensemble.learn(self._features.of(state, configs[worked]), differences)
            self._features.learn(state, configs[worked], differences)

    def _differences(self, cost: float, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return by how many median differences `(k,)` costs exceed that of a state; failures get the largest value."""
        if not np.isfinite(cost):
            return np.zeros(len(values))
        with np.errstate(over="ignore"):
            differences = logarithms(values) - logarithms(cost) if self.logarithmic else values - cost
            return np.clip(differences / (self.scale or 1.0), -_WORST, _WORST)

    def claim(self, config: NDArray) -> bool:
        """Return whether a candidate was never proposed; if so it counts as proposed."""
        return self._random.claim(config)

    def exclude(self, configs: NDArray) -> None:
        """Count candidates as proposed."""
        self._random.exclude(configs)

    def others(self, n: int) -> NDArray | None:
        """Return candidates that were never proposed, on a walk over the whole space."""
        return self._random.others(n)

    def chances(self, state: NDArray, configs: NDArray) -> NDArray[np.float64]:
        """Return the probabilities that changes of a state run, as learned from what failed."""
        return self._failures.chances(state, configs)


def _disjoint(changed: NDArray[np.bool_]) -> list[int]:
    """Return which of `(n, d)` changes touch no parameter of an earlier one, so that all can be merged."""
    touched, chosen = np.zeros(changed.shape[1], bool), []
    for i, columns in enumerate(changed):
        if not (columns & touched).any():
            touched |= columns
            chosen.append(i)
    return chosen
