"""Compiler tuning tasks of bbo_suite as those of CARP-S, with spaces of ConfigSpace."""

from __future__ import annotations

import math
import time
from functools import cache
from typing import Any

from carps.objective_functions.objective_function import ObjectiveFunction
from carps.utils.trials import StatusType, TrialInfo, TrialValue
from ConfigSpace import CategoricalHyperparameter, ConfigurationSpace, UniformIntegerHyperparameter

import bbo_suite
from bbo_strategies.adapters.adapter import Benchmark

_benchmark = cache(lambda problem: Benchmark(bbo_suite.problem(problem)))


class CompilerTuning(ObjectiveFunction):
    """A compiler's decisions about one program. The cost is a multiple of the cost of the compiler's own choice.

    Args:
      problem: its id, as `python -m bbo_suite list` prints them, such as `fusion/resnet50` or `llvm:file.ll`.
    """

    def __init__(self, problem: str, loggers: list[Any] | None = None) -> None:
        super().__init__(loggers)
        self._benchmark, self._worst, self._space = _benchmark(problem), 1.0, configspace(problem)

    @property
    def configspace(self) -> ConfigurationSpace:
        """The parameters, with the compiler's own choice as the default configuration."""
        return self._space

    def _evaluate(self, trial_info: TrialInfo) -> TrialValue:
        started = time.time()
        chosen = dict(trial_info.config)
        cost = self._benchmark.cost({name: _place(self._space[name], value) for name, value in chosen.items()})
        failed = not math.isfinite(cost)
        self._worst = self._worst if failed else max(self._worst, cost)
        return TrialValue(
            cost=2 * self._worst if failed else cost,  # not every optimizer takes an infinite cost
            time=time.time() - started,
            status=StatusType.CRASHED if failed else StatusType.SUCCESS,
            starttime=started,
            endtime=time.time(),
        )


def configspace(problem: str) -> ConfigurationSpace:
    """Return the space of a problem: choices, and integers for the places of ordered values and of permutations."""
    benchmark = _benchmark(problem)
    space = ConfigurationSpace()
    for name, values in benchmark.parameters.items():
        place = benchmark.default[name]
        if name in benchmark.ordered:
            space.add(UniformIntegerHyperparameter(name, 0, len(values) - 1, default_value=place))
        else:
            space.add(CategoricalHyperparameter(name, values, default_value=values[place]))
    return space


def _place(parameter: Any, value: Any) -> int:  # noqa: ANN401 - any parameter and value of ConfigSpace
    if isinstance(parameter, CategoricalHyperparameter):
        return list(parameter.choices).index(value)
    return int(value)
