"""Operators for pymoo's genetic algorithms on indices without an order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from pymoo.core.mutation import Mutation
from pymoo.core.problem import Problem
from pymoo.core.sampling import Sampling


def _draw(problem: Problem, n: int, rng: Generator) -> NDArray[np.float64]:
    return np.floor(rng.random((n, problem.n_var)) * (problem.xu + 0.5))


class Uniform(Sampling):
    """Draws uniform indices."""

    def _do(
        self,
        problem: Problem,
        n_samples: int,
        *args: Any,  # noqa: ANN401 - pymoo's signature
        random_state: Generator,
        **kwargs: Any,  # noqa: ANN401
    ) -> NDArray[np.float64]:
        return _draw(problem, n_samples, random_state)


class Redraw(Mutation):
    """Draws each parameter anew with a small probability."""

    def _do(
        self,
        problem: Problem,
        X: NDArray[np.float64],
        *args: Any,  # noqa: ANN401
        random_state: Generator,
        **kwargs: Any,  # noqa: ANN401
    ) -> NDArray[np.float64]:
        changed = random_state.random(X.shape) < self.get_prob_var(problem, size=(len(X), 1))
        return np.where(changed, _draw(problem, len(X), random_state), X)
