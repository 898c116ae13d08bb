"""Annealing on a surrogate that knows how uncertain it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bbo_suite import option

from .annealing_on_model import AutoTvm, AutoTvmOptions
from .planned import fitness
from .surrogate import ForestSurrogate, Surrogate


@dataclass(frozen=True)
class AdaTuneOptions(AutoTvmOptions):
    """Options of `published:adatune`."""

    plan: int = option(32, "candidates that are measured before the surrogate is fitted (its code)", low=1, high=10_000)
    random: float = option(0.05, "share of random candidates, unless it adapts (its code)", low=0, high=1)
    chains: int = option(64, "annealing chains on the surrogate (its code: twice the plan)", low=1, high=10_000)
    adaptive: bool = option(True, "set that share to the forest's mean uncertainty, relative to the best (its code)")


class AdaTune(AutoTvm):
    """Annealing on a surrogate that knows its uncertainty, in the style of AdaTune (Li et al. 2020).

    Reproduced, from its public code: a random forest; the expected improvement over the best as the score; AutoTVM's
    chains; a share of random candidates that follows the mean disagreement of the trees on 20 random candidates.

    Different here: trees see the indices of parameters, not features of loops; the default comes first.

    Not reproduced: its main contribution, which ends repeated measurements when their mean is settled. That belongs to
    the measuring, which no strategy here controls; `halide/blur@settled` and the other pipelines of Halide offer it.
    """

    Options: ClassVar[type] = AdaTuneOptions
    options: AdaTuneOptions
    surrogate: ForestSurrogate
    _PROBES = 20

    def new_surrogate(self) -> Surrogate:
        """Return the surrogate before it is told anything."""
        return ForestSurrogate(self.task.space, fitness, self.rng, self.options.model)

    def share(self) -> float:
        """Return the mean standard deviation of the trees; the best candidate has a fitness of 1."""
        if not self.options.adaptive:
            return self.options.random
        probes = self.task.space.sample(self._PROBES, self.rng)
        return min(1.0, float(self.surrogate.moments(probes)[1].mean()))
