"""Compiler tuning tasks of bbo_suite as Optuna's: a package of OptunaHub's registry, `benchmarks/compiler_tuning`."""

from __future__ import annotations

from typing import Any

import optuna
import optunahub
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution

import bbo_suite
from bbo_strategies.adapters.adapter import Benchmark


class Problem(optunahub.benchmarks.BaseProblem):
    """A compiler's decisions about one program. The cost is a multiple of the cost of the compiler's own choice.

    Attributes:
      default: the parameters that the compiler chooses itself, for `study.enqueue_trial`; it costs 1.

    Args:
      problem: its id, as `python -m bbo_suite list` prints them, such as `fusion/resnet50` or `llvm:file.ll`.
    """

    def __init__(self, problem: str = "fusion/resnet50") -> None:
        self._benchmark = Benchmark(bbo_suite.problem(problem))
        self._space: dict[str, BaseDistribution] = {
            name: IntDistribution(0, len(values) - 1)
            if name in self._benchmark.ordered
            else CategoricalDistribution(values)
            for name, values in self._benchmark.parameters.items()
        }
        self.default = {
            name: self._space[name].to_external_repr(place) for name, place in self._benchmark.default.items()
        }

    @property
    def search_space(self) -> dict[str, BaseDistribution]:
        """The parameters: choices by name, values of a scale by their place, and sort keys for a permutation."""
        return self._space

    @property
    def directions(self) -> list[optuna.study.StudyDirection]:
        """The cost is minimised."""
        return [optuna.study.StudyDirection.MINIMIZE]

    def evaluate(self, params: dict[str, Any]) -> float:
        """Return the cost over the default's; inf for a candidate that fails.

        What a constraint forbids is replaced by the nearest candidate that it allows.
        """
        return self._benchmark.cost(
            {name: int(kind.to_internal_repr(params[name])) for name, kind in self._space.items()}
        )
