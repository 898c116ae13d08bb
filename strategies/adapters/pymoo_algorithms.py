"""The single-objective algorithms of pymoo (Blank and Deb 2020)."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import NoOptions, Strategy, option
from bbo_suite.core.libraries import require

from .adapter import Adapter, one_of

if TYPE_CHECKING:
    from pymoo.core.mutation import Mutation
    from pymoo.core.problem import Problem
    from pymoo.core.sampling import Sampling


@dataclass(frozen=True)
class PopulationOptions:
    """Options of an algorithm with a population."""

    population: int = option(100, "candidates of a generation", low=4, high=100_000)


@dataclass(frozen=True)
class GeneticOptions(PopulationOptions):
    """Options of a genetic algorithm."""

    crossover: float = option(0.9, "share of children with two parents", low=0, high=1)
    mutation: float = option(1.0, "parameters of a child that are drawn anew, on average", low=0, high=1000)


class Algorithm(NamedTuple):
    """The module of an algorithm in pymoo, its options and arguments, and whether it has a population."""

    module: str
    options: type = NoOptions
    arguments: Callable[[Any, int], dict[str, Any]] = lambda o, width: {}
    populates: bool = True


def _population(o: PopulationOptions, width: int) -> dict[str, Any]:
    return {"pop_size": o.population}


def _genetic(o: GeneticOptions, width: int) -> dict[str, Any]:
    from pymoo.operators.crossover.ux import UniformCrossover

    sampling, mutation = _integer_operators(min(1.0, o.mutation / width))
    crossing = UniformCrossover(prob=o.crossover)
    return {"pop_size": o.population, "sampling": sampling, "crossover": crossing, "mutation": mutation}


def _integer_operators(rate: float) -> tuple[Sampling, Mutation]:
    """Return operators on indices without an order: uniform draws, and mutation that draws each anew by chance."""
    from pymoo.core.mutation import Mutation
    from pymoo.core.sampling import Sampling

    def draw(problem: Problem, n: int, rng: Generator) -> NDArray[np.float64]:
        return np.floor(rng.random((n, problem.n_var)) * (problem.xu + 0.5))

    class Uniform(Sampling):
        def _do(
            self, problem: Problem, n_samples: int, *args: object, random_state: Generator, **kwargs: object
        ) -> NDArray[np.float64]:
            return draw(problem, n_samples, random_state)

    class Redraw(Mutation):
        def _do(
            self, problem: Problem, X: NDArray[np.float64], *args: object, random_state: Generator, **kwargs: object
        ) -> NDArray[np.float64]:
            changed = random_state.random(X.shape) < self.get_prob_var(problem, size=(len(X), 1))
            return np.where(changed, draw(problem, len(X), random_state), X)

    return Uniform(), Redraw(prob_var=rate)


ALGORITHMS: Mapping[str, Algorithm] = {
    "BIPOPCMAES": Algorithm("cmaes", NoOptions, lambda o, width: {"sigma": 0.25}, populates=False),
    "BRKGA": Algorithm("brkga"),
    "CMAES": Algorithm("cmaes", NoOptions, lambda o, width: {"sigma": 0.25}, populates=False),
    "DE": Algorithm("de", PopulationOptions, _population),
    "DIRECT": Algorithm("direct", populates=False),
    "EPPSO": Algorithm("pso_ep", PopulationOptions, _population),
    "ES": Algorithm("es", PopulationOptions, lambda o, width: {"n_offsprings": o.population}),
    "G3PCX": Algorithm("g3pcx", PopulationOptions, _population),
    "GA": Algorithm("ga", GeneticOptions, _genetic),
    "ISRES": Algorithm("isres", PopulationOptions, lambda o, width: {"n_offsprings": o.population}),
    "NRBO": Algorithm("nrbo", PopulationOptions, _population),
    "NelderMead": Algorithm("nelder", populates=False),
    "NicheGA": Algorithm("ga_niching", GeneticOptions, _genetic),
    "PSO": Algorithm("pso", PopulationOptions, _population),
    "PatternSearch": Algorithm("pattern", populates=False),
    "RandomSearch": Algorithm("random_search"),
    "SRES": Algorithm("sres", PopulationOptions, lambda o, width: {"n_offsprings": o.population}),
}


class Pymoo(Adapter):
    """Optimizers of another library; `show pymoo` names the single-objective algorithms of pymoo.

    A parameter of k values is a real number in `[-0.5, k - 0.5]`, rounded. GA and NicheGA work on the integers
    themselves, with uniform crossover and by redrawing parameters, because simulated binary crossover and polynomial
    mutation assume an order. The default replaces the first candidate of the first generation; local searches start
    from it. NelderMead's first steps, 5 % of a range, reach another value only in parameters of ten or more values.
    A generation larger than the batch is proposed in parts. An algorithm that ends by itself ends the run.
    """

    @classmethod
    def variants(cls) -> tuple[str, ...]:
        """Return the names of the single-objective algorithms, without the wrapper of Optuna and variants of CMAES."""
        return tuple(ALGORITHMS)

    @classmethod
    @functools.cache
    def variant(cls, name: str) -> type[Strategy]:
        """Return the strategy that is one algorithm."""
        require("pymoo", f"strategy pymoo:{name}", "bbo_suite[pymoo]")
        return one_of(cls, "pymoo", name, Options=ALGORITHMS[name].options)

    def start(self, batch: int) -> None:
        """Make the algorithm and take its first generation."""
        from pymoo.core.problem import Problem
        from pymoo.core.termination import NoTermination

        kind, width = ALGORITHMS[self.name], len(self.coding.sizes)
        start = {} if kind.populates else {"x0": self.coding.default.astype(float)}
        module = importlib.import_module(f"pymoo.algorithms.soo.nonconvex.{kind.module}")
        self._algorithm = getattr(module, self.name)(**kind.arguments(self.options, width), **start)
        problem = Problem(n_var=width, n_obj=1, xl=np.full(width, -0.5), xu=self.coding.sizes - 0.5)
        self._algorithm.setup(problem, termination=NoTermination(), seed=self.seed)
        self._done = self._given = 0
        self._rows, self._costs = self._next_generation()
        if kind.populates:
            self._rows[0] = self._generation[0].X = self.coding.default.astype(float)
        else:  # the default comes before the algorithm's first candidate
            self._rows = np.concatenate([self.coding.default[None].astype(float), self._rows])
            self._costs = np.zeros(len(self._rows))

    def _next_generation(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Ask for a generation and return its `(n, w)` rows and an array for their costs."""
        from pymoo.core.individual import Individual
        from pymoo.core.population import Population

        self._infills = self._algorithm.ask() if self._algorithm.has_next() else None
        infills = [] if self._infills is None else self._infills
        self._generation = Population.create(*([infills] if isinstance(infills, Individual) else infills))
        rows = np.array([one.X for one in self._generation], float).reshape(-1, len(self.coding.sizes))
        self._done = 0
        return rows, np.zeros(len(rows))

    def propose(self, n: int) -> NDArray:
        """Return the next part of the generation."""
        self._given = min(n, len(self._rows) - self._done)
        return np.floor(0.5 + self._rows[self._done : self._done + self._given]).astype(np.int64)

    def learn(self, costs: list[float]) -> None:
        """Store the costs, and begin the next generation when all of this one are known."""
        self._costs[self._done : self._done + self._given] = costs
        self._done += self._given
        if self._done == len(self._rows):
            self._generation.set("F", self._costs[len(self._costs) - len(self._generation) :, None])
            self._algorithm.tell(infills=self._infills)
            self._rows, self._costs = self._next_generation()
