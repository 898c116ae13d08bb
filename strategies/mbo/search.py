"""Model-based optimization: models propose candidates of each batch, and changes of a moving state fill it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Moves, Task, option

from .. import regressors
from ..annealing import LIKELY, Annealing, AnnealingOptions, RandomNeighbours
from ..archive import Archive
from ..changes import OperatorCredit, probability_matching, proportions
from .models import Ensemble, Failures, Features
from .whole import Whole, expected_improvement, is_narrow

_NEAR = 50  # parameters; an observed candidate that differs in more says nothing about changes of the state
_CELLS = 20_000_000  # of a population: above 100,000 parameters it is made smaller, so that it fits into memory
_WORST = 10.0  # cost differences are clipped at this many medians
_LEAST, _LEAST_LATER = 0.1, 0.3  # the smallest share of a source of candidates
_DECAY = 0.98
_PRIOR_TRIALS = 20.0  # trials with the mean gain that every arm is assumed to have made before the first batch
_PRIOR_HITS, _FEWEST = 0.5, 20
NAMES = ("mean", "ucb", "ei", "thompson")
_PARENTS = 5
_BATCH, _ROUNDS = 4, 50


@dataclass(frozen=True)
class ModelOptions(AnnealingOptions):
    """Options of `mbo`: those of `annealing`, and how the models are selected and searched."""

    threshold: float = option(-1.0, "lowest cross-validated R^2 with which a regressor joins the ensemble", -1.0, 1.0)
    folds: int = option(3, "folds of the cross-validation", 2, 20)
    acquisition: Literal["mean", "ucb", "ei", "thompson"] = option("mean", "acquisition function that is maximised")
    exploration: float = option(1.0, "weight of the standard deviation in ucb", -10.0, 10.0)
    generations: int = option(2, "generations of the search on the models", 0, 1000)
    population: int = option(200, "candidates in a generation of that search", 4, 10_000)
    models: bool = option(True, "use the models; false: annealing without repeated candidates")


class ModelBasedOptimization(Annealing):
    """Models propose what they expect to gain, and random changes of an annealed state fill the batch.

    Models learn from all that was measured, an evolutionary search maximises an acquisition function on them, and the
    share of a batch that they propose follows what their candidates gain; the rest is `annealing`. Where at most 20
    parameters vary, all of them choices or scales, the model is a Gaussian process of whole candidates, and the
    search starts from the five best (`Whole`). Elsewhere it is an ensemble that predicts what changes
    of the state gain: of ridge, random forest, gradient boosting and a neural network, those with a cross-validated
    R^2 of at least `threshold` are averaged, or the single best one is taken if none reaches it.

    The ensemble follows Phothilimthana et al. 2021 (XTAT), who follow Angermueller et al. 2020 (DyNA PPO); candidates
    are never proposed twice. The hyperparameters are ours: the authors published none.

    Differences from the publication, each of which measurements justified:
      - Models choose only a share of each batch (`Arms`).
      - In few parameters a Gaussian process with expected improvement takes the ensemble's place: it knows more after
        50 measurements, and it may leave the state far behind.
      - In many, models predict the cost difference between a candidate and the state that it changes, from features of
        the change (`Features`), instead of the cost from the decisions. So they are useful after fifty evaluations, for
        any number of parameters.
      - A separate model learns which neighbours in a sequence fail (`Failures`). Candidates that are more likely to
        fail than to run are not proposed, changes that are not nearly sure to run are not merged, and the other models
        skip these failures.
      - Models are fitted to a bounded number of evaluations and at growing intervals, so the time per candidate does
        not grow with the number of evaluations.
      - There, below 1,000 evaluations, batches are smaller, of 4 or more candidates, so that there are 50 of them.

    A declared structure is not used: products of features of interacting parameters did not help.
    """

    Options: ClassVar[type] = ModelOptions
    options: ModelOptions

    def __init__(self, task: Task, budget: int, rng: Generator, options: ModelOptions) -> None:
        self._changes = ModelNeighbours(task, options, rng)
        super().__init__(task, budget, rng, options, self._changes)

    def ask(self, n: int) -> NDArray:
        """Return at most 20 candidates, and in few parameters fewer where the budget is small, for many batches."""
        return super().ask(min(n, max(_BATCH, self.budget // _ROUNDS)) if self._changes.whole else n)

    def tell(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Let the models learn and the state move."""
        self._changes.meet(configs, values)
        super().tell(configs, values)
        self._changes.arms.progress = self.told / self.budget

    def observe(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Learn from another strategy's candidates near the state; continue from one that is better."""
        self._changes.meet(configs, values)
        distances = (configs != self.state).sum(axis=1)
        near = (distances > 0) & (distances <= _NEAR)
        self._changes.study(self.state, self.cost, configs[near], values[near])
        super().observe(configs, values)

    def diagnostics(self) -> dict[str, float]:
        """Return the models' cross-validated scores, and how much more often their choices improve than random ones."""
        scores = {f"score/{name}": score for name, score in self._changes.ensemble.scores.items()}
        hits = self._changes.hits.ratio
        return scores if hits is None else {**scores, "hits/models": hits}


class ModelNeighbours(RandomNeighbours):
    """Changes of a state: those that the models expect to gain most, and random ones.

    Attributes:
      whole: the model of whole candidates; None where parameters are many.
      ensemble: the models of changes.
      arms: the shares of both kinds of changes.
      hits: how often changes of both kinds improved the state.
    """

    def __init__(self, task: Task, options: ModelOptions, rng: Generator) -> None:
        self._proposed = Archive(task.space, rng)
        super().__init__(task, self._proposed, rng)
        self._space, self._options = task.space, options
        self._population = min(options.population, max(20, _CELLS // len(task.space)))
        self._failures, self._features = Failures(task.space), Features(task)
        self.ensemble = Ensemble(options.threshold, options.folds, rng)
        narrow = options.models and is_narrow(task.space)
        self.whole = Whole(task.space, Moves(task.space), rng) if narrow else None
        self.arms = Arms(("model", "changes") if options.models else ("changes",), rng)
        self._makers: list[str] = []
        self.hits = Hits()

    def draw(self, state: NDArray, n: int) -> NDArray:
        """Return up to `n` changes of a state, those of the models first."""
        ready = self.whole.ready if self.whole else bool(self.ensemble.members)
        counts = self.arms.draw(n, () if ready else ("model",))
        chosen = self._chosen(state, counts.get("model", 0))
        others = super().draw(state, n - len(chosen))
        self._makers = ["model"] * len(chosen) + ["changes"] * len(others)
        return np.concatenate([chosen, others])

    def meet(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Let the model of whole candidates learn the costs of some."""
        if self.whole:
            self.whole.learn(configs, values)

    def _chosen(self, state: NDArray, n: int) -> NDArray:
        """Return the `n` changes with the highest acquisition."""
        if not n:
            return state[None][:0]
        if self.whole:
            with regressors.one_thread("scipy.linalg"):
                rows = self.whole.propose(n, self._fresh)
            return rows[self.claim_rows(rows, n)]

        def score(children: NDArray) -> NDArray[np.float64]:
            predictions = self.ensemble.predict(self._features.of(state, children))
            name, weight = self._options.acquisition, self._options.exploration
            noise, no_gain = self.ensemble.noise(), self.ensemble.no_gain
            return acquisition(name, predictions, noise, no_gain, weight, self._rng)

        visited = maximise(score, state, self._mutate, self._population, self._options.generations, self._rng)
        visited = visited[self._space.allowed(visited)]
        visited = visited[disjoint(visited != state)]
        visited = visited[self.chances(state, visited) > LIKELY]
        return visited[self.claim_rows(visited, n)]

    def _fresh(self, configs: NDArray) -> NDArray:
        """Return those of `(n, d)` candidates that were never proposed."""
        return configs[self._proposed.fresh(self._proposed.digests(configs))]

    def _mutate(self, configs: NDArray) -> NDArray:
        """Change each of `(n, d)` candidates anywhere, in place."""
        movable, n = self._movable, len(configs)
        if len(movable):
            self.changes.mutation.change(configs, np.arange(n), movable[self._rng.integers(0, len(movable), n)])
        return configs

    def learn(self, state: NDArray, cost: float, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Learn what the changes that were drawn last are worth, and which arm makes good ones."""
        chosen = len(values) - self.drawn
        super().learn(state, cost, configs[chosen:], values[chosen:])
        self.arms.credit(self._makers, np.maximum(-self._clipped(cost, values), 0.0))
        if np.isfinite(cost):
            self.hits.learn(values < cost, chosen)
        fits = self.ensemble.fits
        self.study(state, cost, configs, values)
        if self.ensemble.fits > fits:
            self.hits.close()

    def study(self, state: NDArray, cost: float, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Let the models learn the `(k,)` costs of changes of a state; nothing is learned if the state failed."""
        if not self._options.models or not len(configs) or not np.isfinite(cost):
            return
        if not self.scale:  # before the first own change; else these labels would have another unit than later ones
            self.compare(cost, values)
        if self.whole:
            return
        worked = ~self._failures.learn(state, configs, np.isinf(values))
        if worked.any():
            differences = self._clipped(cost, values[worked])
            self.ensemble.learn(self._features.of(state, configs[worked]), differences)
            self._features.learn(state, configs[worked], differences)

    def _clipped(self, cost: float, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return by how many median differences `(k,)` costs exceed that of a state; failures get the largest value."""
        if not np.isfinite(cost):
            return np.zeros(len(values))
        with np.errstate(over="ignore"):
            return np.clip(self.differences(cost, values) / (self.scale or 1.0), -_WORST, _WORST)

    def chances(self, state: NDArray, configs: NDArray) -> NDArray[np.float64]:
        """Return the probabilities that changes of a state run, as learned from what failed."""
        return self._failures.chances(state, configs)


def disjoint(changed: NDArray[np.bool_]) -> list[int]:
    """Return which of `(n, d)` changes touch no parameter of an earlier one, so that all can be merged."""
    touched, chosen = np.zeros(changed.shape[1], bool), []
    for i, columns in enumerate(changed):
        if not (columns & touched).any():
            touched |= columns
            chosen.append(i)
    return chosen


class Arms:
    """Adaptive credit (as in P3BO, Angermueller et al. 2020): an arm's share follows what its candidates gain.

    It follows the sum of the gains, not their number: models find many small gains that lead nowhere.

    Args:
      names: of the arms.
      rng: draws how many candidates of a batch each arm makes.

    Attributes:
      progress: the share of the budget that is spent.
    """

    def __init__(self, names: Sequence[str], rng: Generator) -> None:
        self._names, self._rng = tuple(names), rng
        self._credit = OperatorCredit(len(names))
        self.progress = 0.0

    @property
    def shares(self) -> dict[str, float]:
        """The share of each arm; what happened 50 of its own batches ago counts little.

        No share falls below `_LEAST`, which grows to `_LEAST_LATER` in the first half of the budget: by then the early
        gains of the models are used up, and a search that followed them alone would stop exploring.
        """
        least = _LEAST + (_LEAST_LATER - _LEAST) * min(1.0, 2 * self.progress)
        gains, trials = self._credit.gains, self._credit.trials
        mean = gains.sum() / max(1.0, trials.sum())
        rates = proportions((gains + _PRIOR_TRIALS * mean) / (trials + _PRIOR_TRIALS))
        return dict(zip(self._names, probability_matching(rates, least).tolist(), strict=True))

    def draw(self, n: int, without: Sequence[str] = ()) -> dict[str, int]:
        """Return how many of `n` candidates each arm makes."""
        chances = np.array([0.0 if name in without else share for name, share in self.shares.items()])
        counts = self._rng.multinomial(n, chances / chances.sum())
        return {name: int(k) for name, k in zip(self._names, counts, strict=True) if k}

    def credit(self, makers: Sequence[str], gains: NDArray[np.float64]) -> None:
        """Learn how much less each of `(n,)` candidates cost than its parent; `makers` names the arm that made it."""
        for i, name in enumerate(self._names):
            mask = np.array([maker == name for maker in makers], bool)
            if mask.any():
                self._credit.learn(i, gains[mask].sum(), mask.sum(), _DECAY)


class Hits:
    """Counts improving changes, chosen by models and random, since models were fitted last.

    A high R^2 says little: losses are predictable, rare gains much less. What a search needs is that more of the
    chosen changes improve than of random ones.

    Attributes:
      ratio: the improving share of the chosen changes over that of the random ones, between the last two fits; 1 if
        the models know nothing, None until it is known. Half an improvement is added to both counts.
    """

    def __init__(self) -> None:
        self._improved, self._tried = np.zeros((2, 2))
        self.ratio: float | None = None

    def learn(self, improved: NDArray[np.bool_], chosen: int) -> None:
        """Add `(k,)` changes, of which the first were chosen by models; true if they cost less than the state."""
        parts = improved[:chosen], improved[chosen:]
        self._improved += [part.sum() for part in parts]
        self._tried += [len(part) for part in parts]

    def close(self) -> None:
        """Set the ratio, if there were enough changes of both kinds, and begin to count anew."""
        if self._tried.min() >= _FEWEST:
            chosen, random = (self._improved + _PRIOR_HITS) / (self._tried + 2 * _PRIOR_HITS)
            self.ratio = float(chosen / random)
            self._improved, self._tried = np.zeros((2, 2))


def acquisition(
    name: str, predictions: NDArray[np.float64], noise: float, no_gain: float, exploration: float, rng: Generator
) -> NDArray[np.float64]:
    """Return the `(n,)` acquisition values of candidates; the largest is the best.

    Args:
      name: `mean` (of the predicted gains: an expected improvement that assumes no distribution), `ucb` (Srinivas et
        al. 2010), `ei` (Mockus 1975: expected improvement of a normal distribution) or `thompson` (1933: one draw for
        each candidate).
      predictions: `(members, n)` predicted targets, small is good.
      noise: standard deviation that no member explains.
      no_gain: the target of a change that gains nothing.
      exploration: weight of the standard deviation in `ucb`.
      rng: draws for `thompson`.
    """
    mean = predictions.mean(axis=0)
    spread = np.sqrt(predictions.var(axis=0) + noise**2)
    if name == "ucb":
        return exploration * spread - mean
    if name == "ei":
        return expected_improvement(no_gain - mean, spread)
    return -(rng.normal(mean, spread) if name == "thompson" else mean)


def maximise(
    acquisition: Callable[[NDArray], NDArray[np.float64]],
    base: NDArray,
    change: Callable[[NDArray], NDArray],
    population: int,
    generations: int,
    rng: Generator,
) -> NDArray:
    """Return the `(n, d)` changes of a base that an evolutionary search visits, best first, without the base itself.

    It starts from changes of the base. Each generation consists of children of the best fifth of all visited so far:
    half of them join the changes of two parents, half change one parent further.

    Args:
      acquisition: returns the `(n,)` values of `(n, d)` candidates; the largest is the best.
      base: `(d,)`.
      change: returns `(n, d)` candidates, each changed.
      population: children in a generation.
      generations: number of generations.
      rng: draws parents.
    """
    visited = _different(change(np.repeat(base[None], population, axis=0)), base)
    values = acquisition(visited) if len(visited) else np.zeros(0)
    for _ in range(generations if len(visited) else 0):
        best = visited[np.argsort(-values, kind="stable")[: max(2, population // _PARENTS)]]
        children = _different(_children(base, best, change, population, rng), base)
        if len(children):
            visited, values = np.concatenate([visited, children]), np.append(values, acquisition(children))
    return visited[np.argsort(-values, kind="stable")]


def _children(base: NDArray, parents: NDArray, change: Callable[[NDArray], NDArray], n: int, rng: Generator) -> NDArray:
    first, second = parents[rng.integers(0, len(parents), (2, n))]
    joined = np.where(first != base, first, second)
    return np.concatenate([joined[: n // 2], change(first[n // 2 :])])


def _different(children: NDArray, base: NDArray) -> NDArray:
    return children[(children != base).any(axis=1)]
