"""Compiler tuning tasks of bbo_suite as Optuna's: a package of OptunaHub's registry, `benchmarks/compiler_tuning`."""

from __future__ import annotations

from typing import Any

import numpy as np
import optuna
import optunahub
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution

import bbo_suite
from bbo_strategies.adapters.adapter import Coding
from bbo_suite import Kind


class Problem(optunahub.benchmarks.BaseProblem):
    """A compiler's decisions about one program. The cost is a multiple of the cost of the compiler's own choice.

    Attributes:
      default: the parameters that the compiler chooses itself, for `study.enqueue_trial`; it costs 1.

    Args:
      problem: its id, as `python -m bbo_suite list` prints them, such as `fusion/resnet50` or `llvm:file.ll`.
    """

    def __init__(self, problem: str = "fusion/resnet50") -> None:
        self._problem = bbo_suite.problem(problem)
        space, row = self._problem.space, self._problem.default_row()
        self._coding = Coding(space, row)
        columns = [i for i in range(len(space)) if space.sizes[i] > 1]
        names = [space.name(i) for i in columns]
        unique = len(set(names)) == len(names)
        self._names = names if unique else [f"{name} ({i})" for name, i in zip(names, columns, strict=True)]
        permuted = [space.groups[i] in space.permutations for i in columns]
        self._space = {
            name: _distribution(space.values(i), space.kinds[i] == Kind.SCALE or sort_key)
            for name, i, sort_key in zip(self._names, columns, permuted, strict=True)
        }
        self.default = {
            name: distribution.to_external_repr(int(index))
            for (name, distribution), index in zip(self._space.items(), self._coding.default, strict=True)
        }
        self._unit = float(self._problem.evaluate(row[None]).values[0])

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
        places = [int(self._space[name].to_internal_repr(params[name])) for name in self._names]
        row = self._coding.decode(np.array([places]))
        return float(self._problem.evaluate(row).values[0]) / self._unit


def _distribution(values: Any, ordered: bool) -> BaseDistribution:  # noqa: ANN401 - the values of a parameter
    if ordered:
        return IntDistribution(0, len(values) - 1)
    return CategoricalDistribution([v if isinstance(v, (bool, int, str)) else str(v) for v in values])
