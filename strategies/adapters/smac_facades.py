"""The facades of SMAC3 (Lindauer et al. 2022)."""

from __future__ import annotations

import functools
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Kind, Strategy, option
from bbo_suite.core.libraries import require
from bbo_suite.supervised.temporary import TemporaryFolder

from .adapter import Adapter, Coding, one_of

if TYPE_CHECKING:
    from ConfigSpace import ConfigurationSpace
    from smac.runhistory.dataclasses import TrialInfo


@dataclass(frozen=True)
class SmacOptions:
    """Options of the facades of SMAC."""

    startup: int = option(0, "candidates of the initial design; 0: SMAC's own choice", low=0, high=100_000)


class Smac(Adapter):
    """Optimizers of another library; `show smac` names the facade of SMAC that models costs by random forests.

    Scales are integers and everything else is categorical. SMAC is told the default before it is asked for anything.
    It keeps its files in a temporary folder. When it has nothing left to propose, the run ends.
    """

    @classmethod
    def variants(cls) -> tuple[str, ...]:
        """Return the names: only the facade with random forests, as that with Gaussian processes is far slower."""
        return ("HyperparameterOptimizationFacade",)

    @classmethod
    @functools.cache
    def variant(cls, name: str) -> type[Strategy]:
        """Return the strategy that is one facade."""
        require("smac", f"strategy smac:{name}", "bbo_suite[peers]")
        return one_of(cls, "SMAC", name, Options=SmacOptions)

    def start(self, batch: int) -> None:
        """Make the facade; its folder is deleted together with the strategy."""
        import smac
        from ConfigSpace import Configuration
        from smac.runhistory.dataclasses import TrialInfo

        logging.getLogger("smac").setLevel(logging.ERROR)  # it warns of spaces that are nearly used up
        self._folder, space = TemporaryFolder(), _config_space(self.coding, self.seed)
        files = {"output_directory": str(self._folder.path), "deterministic": True}
        scenario = smac.Scenario(space, n_trials=self.budget + 1, seed=self.seed, **files)
        facade: Any = getattr(smac, self.name)
        design = facade.get_initial_design(scenario, n_configs=self.options.startup or None)
        self._facade = facade(scenario, _never, initial_design=design, logging_level=False, overwrite=True)
        default = dict(zip(self.coding.names, self.coding.default.tolist(), strict=True))
        self._told = False
        self._asked: list[TrialInfo] = [TrialInfo(Configuration(space, values=default), seed=0)]

    def propose(self, n: int) -> NDArray:
        """Return the default alone, then what SMAC proposes."""
        from smac.main.exceptions import ConfigurationSpaceExhaustedException

        while len(self._asked) < n and self._told:
            try:
                self._asked.append(self._facade.ask())
            except (StopIteration, ConfigurationSpaceExhaustedException):  # it has tried everything
                break
        names = self.coding.names
        rows = [[trial.config[name] for name in names] for trial in self._asked]
        return np.array(rows, np.int64).reshape(-1, len(names))

    def learn(self, costs: list[float]) -> None:
        """Tell each cost."""
        from smac.runhistory.dataclasses import TrialValue

        for trial, cost in zip(self._asked, costs, strict=True):
            self._facade.tell(trial, TrialValue(cost), save=False)
        self._asked, self._told = [], True


def _never(config: Any, seed: int = 0) -> float:  # noqa: ANN401 - SMAC wants a function, though it is only asked and told
    raise AssertionError


def _config_space(coding: Coding, seed: int) -> ConfigurationSpace:
    from ConfigSpace import CategoricalHyperparameter, ConfigurationSpace, UniformIntegerHyperparameter

    space = ConfigurationSpace(seed=seed)
    for name, size, kind in zip(coding.names, coding.sizes.tolist(), coding.kinds.tolist(), strict=True):
        scale = kind == Kind.SCALE
        space.add(
            UniformIntegerHyperparameter(name, 0, size - 1) if scale else CategoricalHyperparameter(name, range(size))
        )
    return space
