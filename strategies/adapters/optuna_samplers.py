"""The samplers of Optuna (Akiba et al. 2019)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Kind, NoOptions, Strategy, UserError, option
from bbo_suite.core.libraries import quiet_optuna, require

from .adapter import Adapter, Coding, one_of

if TYPE_CHECKING:
    from optuna import Trial
    from optuna.samplers import BaseSampler

LARGEST_GRID = 100_000


@dataclass(frozen=True)
class TPEOptions:
    """Options of `optuna:TPESampler`."""

    startup: int = option(10, "random candidates before the model is used", low=1, high=100_000)
    candidates: int = option(24, "draws of which the most promising is proposed", low=1, high=1000)
    multivariate: bool = option(True, "one model of all parameters together instead of one of each")


@dataclass(frozen=True)
class GeneticOptions:
    """Options of the genetic samplers."""

    population: int = option(50, "parents of a generation", low=2, high=10_000)
    crossover: float = option(0.9, "share of children with two parents", low=0, high=1)
    mutation: float = option(1.0, "parameters of a child that are drawn anew, on average", low=0, high=1000)


@dataclass(frozen=True)
class CmaEsOptions:
    """Options of `optuna:CmaEsSampler`."""

    sigma: float = option(0.0, "the first step in shares of the narrowest range; 0: a sixth", low=0, high=1)
    population: int = option(0, "candidates of a generation; 0: by the number of parameters", low=0, high=10_000)
    separable: bool = option(False, "a diagonal covariance: linear instead of quadratic in the number of parameters")


@dataclass(frozen=True)
class QMCOptions:
    """Options of `optuna:QMCSampler`."""

    sequence: Literal["sobol", "halton"] = option("sobol", "the low-discrepancy sequence")
    scramble: bool = option(False, "scramble the sequence, by the seed")


@dataclass(frozen=True)
class GPOptions:
    """Options of `optuna:GPSampler`."""

    startup: int = option(10, "random candidates before the model is used", low=1, high=100_000)


def _genetic(o: GeneticOptions, coding: Coding) -> dict[str, Any]:
    rate = min(1.0, o.mutation / len(coding.sizes))
    return {"population_size": o.population, "crossover_prob": o.crossover, "mutation_prob": rate}


def _cma_es(o: CmaEsOptions, coding: Coding) -> dict[str, Any]:
    sigma = o.sigma * int(coding.sizes.min() - 1) or None
    start = dict(zip(coding.names, map(float, coding.default), strict=True))
    return {"x0": start, "sigma0": sigma, "popsize": o.population or None, "use_separable_cma": o.separable}


def _tpe(o: TPEOptions, coding: Coding) -> dict[str, Any]:
    return {"n_startup_trials": o.startup, "n_ei_candidates": o.candidates, "multivariate": o.multivariate}


def _grid(o: NoOptions, coding: Coding) -> dict[str, Any]:
    count = float(np.prod(coding.sizes.astype(float)))
    if count > LARGEST_GRID:
        advice = f"it supports at most {LARGEST_GRID:,}; use the strategy exhaustive"
        raise UserError(f"strategy optuna:GridSampler lists all candidates first, here {count:.3g}: {advice}")
    return {"search_space": {name: range(size) for name, size in zip(coding.names, coding.sizes.tolist(), strict=True)}}


class Sampler(NamedTuple):
    """How a sampler is made: its options, its arguments, and what it imports.

    Attributes:
      numeric: true if it takes numbers only.
      told_default: true if it is told the default; GridSampler breaks on a trial outside its grid.
    """

    options: type
    arguments: Callable[[Any, Coding], dict[str, Any]] = lambda o, coding: {}
    modules: tuple[str, ...] = ()
    numeric: bool = False
    told_default: bool = True


SAMPLERS: Mapping[str, Sampler] = {
    "BruteForceSampler": Sampler(NoOptions),
    "CmaEsSampler": Sampler(CmaEsOptions, _cma_es, ("cmaes",), numeric=True),
    "GPSampler": Sampler(GPOptions, lambda o, coding: {"n_startup_trials": o.startup}, ("torch",)),
    "GridSampler": Sampler(NoOptions, _grid, told_default=False),
    "NSGAIIISampler": Sampler(GeneticOptions, _genetic),
    "NSGAIISampler": Sampler(GeneticOptions, _genetic),
    "QMCSampler": Sampler(QMCOptions, lambda o, coding: {"qmc_type": o.sequence, "scramble": o.scramble}, numeric=True),
    "RandomSampler": Sampler(NoOptions),
    "TPESampler": Sampler(TPEOptions, _tpe),
}


class Optuna(Adapter):
    """Optimizers of another library; `show optuna` names the samplers of Optuna.

    Scales are integers and everything else is categorical, except for samplers that support numbers only (CmaEs and
    QMC draw categories independently of all else): there all parameters are integers, and a category gets an order that
    has no meaning. A sampler that stops the study because it has tried everything ends the run.
    """

    @classmethod
    def variants(cls) -> tuple[str, ...]:
        """Return the names of the samplers; `PartialFixedSampler` is left out because it only wraps another."""
        return tuple(SAMPLERS)

    @classmethod
    @functools.cache
    def variant(cls, name: str) -> type[Strategy]:
        """Return the strategy that is one sampler."""
        for module in SAMPLERS[name].modules:
            require(module, f"strategy optuna:{name}", module)
        return one_of(cls, "Optuna", name, Options=SAMPLERS[name].options)

    def start(self, batch: int) -> None:
        """Make the study, in memory, and put the default in its queue."""
        import optuna

        kind = SAMPLERS[self.name]
        seed = {"seed": self.seed, **kind.arguments(self.options, self.coding)}
        with quiet_optuna():
            sampler: BaseSampler = getattr(optuna.samplers, self.name)(**seed)
            self._storage = optuna.storages.InMemoryStorage()
            self._study = optuna.create_study(sampler=sampler, storage=self._storage)
        self._study.stop = self._stop  # type: ignore[method-assign]  # Optuna's works inside `optimize` only
        self._stopped = False
        self._distributions = _distributions(self.coding, kind.numeric)
        self._study.enqueue_trial(dict(zip(self._distributions, self.coding.default.tolist(), strict=True)))

    def _stop(self) -> None:
        self._stopped = True

    def propose(self, n: int) -> NDArray:
        """Ask the sampler `n` times."""
        with quiet_optuna():
            self._trials: list[Trial] = []
            rows = [self._propose_one() for _ in range(0 if self._stopped else n)]
        return np.array(rows, np.int64).reshape(-1, len(self.coding.sizes))

    def _propose_one(self) -> list[int]:
        """Return a trial's indices.

        The calls are those of Optuna's `Trial`, but on the stored trial itself: Optuna copies it for each parameter.
        """
        trial = self._study.ask()
        self._trials.append(trial)
        frozen = self._storage.get_trial(trial._trial_id)
        known = {**trial.relative_params, **frozen.system_attrs.get("fixed_params", {})}
        frozen = self._storage.get_trial(trial._trial_id)  # the sampler may have stored attributes there
        sample = functools.partial(self._study.sampler.sample_independent, self._study, frozen)
        frozen.distributions = self._distributions
        for name, distribution in self._distributions.items():  # some samplers read the earlier parameters of the trial
            frozen.params[name] = known[name] if name in known else sample(name, distribution)
        return [int(frozen.params[name]) for name in self._distributions]

    def learn(self, costs: list[float]) -> None:
        """Complete the trials."""
        with quiet_optuna():
            for trial, cost in zip(self._trials, costs, strict=True):
                if trial.number or SAMPLERS[self.name].told_default:
                    self._study.tell(trial, cost)


def _distributions(coding: Coding, numeric: bool) -> dict[str, Any]:
    from optuna.distributions import CategoricalDistribution, IntDistribution

    number = functools.cache(lambda size: IntDistribution(0, size - 1))
    category = functools.cache(lambda size: CategoricalDistribution(range(size)))
    kinds = zip(coding.names, coding.sizes.tolist(), coding.kinds.tolist(), strict=True)
    return {name: number(size) if numeric or kind == Kind.SCALE else category(size) for name, size, kind in kinds}
