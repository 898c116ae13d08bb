"""Search on the costs of parts."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Decomposition, Parts, Strategy, Task
from bbo_suite.parts.pairs import PairDecomposition

from ..annealing import Annealing, AnnealingOptions
from ..pair_graph import PairSearch
from .credit_search import CreditSearch
from .options import GrayBoxOptions
from .part_search import PartSearch


class GrayBox(Strategy):
    """Learns what each part of a program costs, and searches on that (Kaufman et al. 2021; Russo et al. 2018).

    The task says which parts a candidate has without an evaluation. What an evaluation tells of each part is
    remembered, and a regressor, chosen by cross-validated score, predicts the log cost of the others from their
    features. Each candidate is the end of a simulated annealing of thousands of steps on these costs, from the best
    candidate so far, under predictions that are drawn anew (Thompson sampling). A step changes one parameter, or sets
    those that decide one node, those with equal features, or a stretch of them, to one value.

    Where each part depends on one parameter or on two (`PairDecomposition`), the search is another: see `PairSearch`.

    Between a measured part and another at an alike place, a Gaussian process on what the regressor leaves unexplained
    tells how much is known. The first candidate of a batch avoids what is unsure; a share prefers it.

    A task that tells costs of parts but does not declare them is searched by `CreditSearch`; one that tells no costs of
    parts, by `annealing`.

    Memory: a row of features for each part that was measured, and a table of up to a million predictions.
    """

    Options: ClassVar[type] = GrayBoxOptions
    options: GrayBoxOptions
    uses_structure: ClassVar[bool] = True
    uses_parts: ClassVar[bool] = True

    def __init__(self, task: Task, budget: int, rng: Generator, options: GrayBoxOptions) -> None:
        super().__init__(task, budget, rng, options)
        declared = task.structure
        self._search: PartSearch | PairSearch | CreditSearch | Annealing = CreditSearch(task, rng)
        parts = None if declared is None or not options.describe else declared.parts
        if declared is not None and isinstance(parts, PairDecomposition) and _is_followed(parts, task):
            self._search = PairSearch(task.space, task.default, declared, budget, rng)
        elif declared is not None and parts is not None and _is_followed(parts, task):
            self._search = PartSearch(task.space, task.default, declared, options, rng)

    def ask(self, n: int) -> NDArray:
        """Return at most 20 candidates: first the default, then the ends of virtual searches."""
        return self._search.ask(n)

    def tell(self, configs: NDArray, values: NDArray[np.float64], parts: Parts | None = None) -> None:
        """Learn the costs of candidates and of their parts."""
        if parts is None and not isinstance(self._search, Annealing):
            self._search = Annealing(self.task, self.budget, self.rng, AnnealingOptions())
            self._search.ask(1)  # the default, as ours was
        if isinstance(self._search, Annealing):
            self._search.tell(configs, values)
        elif parts is not None:
            self._search.tell(configs, values, parts)

    def diagnostics(self) -> dict[str, float]:
        """Return the scores of the regressors and the number of parts that were measured."""
        return self._search.diagnostics()


def _is_followed(parts: Decomposition, task: Task) -> bool:
    """Return whether compiled code can follow the parts of any row; not where constraints forbid some."""
    free = not task.space.components and not task.space.free_permutations
    return free and parts.cursor(task.default) is not None
