"""Search on the costs of parts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Decomposition, Level, Strategy, Structure, Task, Told, UserError

from ..annealing import Annealing, AnnealingOptions
from .options import GrayBoxOptions

if TYPE_CHECKING:  # Numba takes half a second to import: only a run pays for it
    from bbo_suite.pretraining import Lesson, Progress

    from ..pair_graph import PairSearch
    from .credit_search import CreditSearch
    from .effect_search import EffectSearch
    from .part_search import PartSearch


class GrayBox(Strategy):
    """Learns what each part of a program costs, and searches on that (Kaufman et al. 2021).

    The task says which parts a candidate has without an evaluation. What an evaluation tells of each part is
    remembered, and a regressor, chosen by cross-validated score, predicts the log cost of the others from their
    features. Each candidate is the end of a simulated annealing of thousands of steps on these costs, from the best
    candidate so far, under predictions that are drawn anew (Thompson sampling, Russo et al. 2018). A step changes one
    parameter, or sets those that decide one node, those with equal features, or a range of them, to one value. Where
    layouts are decided, most of a batch are short searches that start between the ends of long ones.

    Where each part depends on one parameter or on two (`PairDecomposition`), the search is another: see `PairSearch`.

    Between a measured part and another at an alike place, a Gaussian process on what the regressor leaves unexplained
    tells how much is known. The first candidate of a batch avoids what is unsure; a share prefers it, three times as
    large where no parameter decides two parts, since all of them can try something new at once.

    A task that tells costs of parts but does not declare them is searched by `CreditSearch`; one that tells no costs of
    parts, by `annealing`.

    `pretrain` measures parts of other programs, and option `pretrained` names their file. The regressors then learn
    from those parts, too, and predict from the first batch on.

    Memory: a row of features for each part that was measured, and a table of up to a million predictions.
    """

    Options: ClassVar[type] = GrayBoxOptions
    options: GrayBoxOptions
    level: ClassVar[Level] = Level.PARTS

    def __init__(self, task: Task, budget: int, rng: Generator, options: GrayBoxOptions) -> None:
        super().__init__(task, budget, rng, options)
        declared = task.structure
        described = options.describe and declared and declared.parts and _is_followed(declared.parts, task)
        self._search: PartSearch | PairSearch | EffectSearch | CreditSearch | Annealing
        self._search = self._described(declared) if described and declared else self._undescribed()
        if options.pretrained:
            self._learn_before(options.pretrained)

    def _described(self, declared: Structure) -> PartSearch | PairSearch | EffectSearch:
        """Return the search for a task that says which parts a candidate has."""
        from bbo_suite.parts.table import PairDecomposition

        from ..pair_graph import PairSearch
        from .part_search import PartSearch

        space, default = self.task.space, self.task.default
        if isinstance(declared.parts, PairDecomposition):
            return PairSearch(space, default, declared, self.budget, self.rng)
        if declared.parts is not None and not declared.parts.exact:
            from .effect_search import EffectSearch

            return EffectSearch(space, default, declared, self.rng)
        return PartSearch(space, default, declared, self.options, self.rng)

    def _undescribed(self) -> CreditSearch:
        from .credit_search import CreditSearch

        return CreditSearch(self.task, self.rng)

    def _learn_before(self, file: str) -> None:
        """Learn from the parts of other programs.

        Raises:
          UserError: the file does not fit the task, or no model is used for it.
        """
        from .part_search import PartSearch
        from .pretraining import load

        declared = self.task.structure and self.task.structure.parts
        if not declared or not isinstance(self._search, PartSearch):
            raise UserError(f"graybox has no model of the parts of {self.task.problem}; run it without pretrained")
        self._search.learn_before(load(file, declared, self.task.problem))

    @classmethod
    def pretrain(
        cls,
        lessons: Sequence[Lesson],
        budget: int,
        rng: Generator,
        options: GrayBoxOptions,
        out: Path,
        progress: Progress,
    ) -> None:
        """Search on each lesson, and write the parts that were measured to `out`."""
        from .pretraining import collect, save

        save(collect(lessons, budget, lambda task, n: cls(task, n, rng, options), rng, progress), out)

    def measured(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the `(m, f)` features and `(m,)` log costs of the parts that were measured; none without a model."""
        from .part_search import PartSearch

        return self._search.measured() if isinstance(self._search, PartSearch) else (np.empty((0, 0)), np.empty(0))

    def ask(self, n: int) -> NDArray:
        """Return at most 20 candidates: first the default, then the ends of virtual searches."""
        return self._search.ask(n)

    def receive(self, told: Told) -> None:
        """Learn the costs of candidates and of their parts."""
        if not told.own:
            return
        if told.parts is None and not isinstance(self._search, Annealing):
            self._search = Annealing(self.task, self.budget, self.rng, AnnealingOptions())
            self._search.ask(1)  # the default, as ours was
        if isinstance(self._search, Annealing):
            self._search.tell(told.configs, told.values)
        elif told.parts is not None:
            self._search.tell(told.configs, told.values, told.parts)

    def diagnostics(self) -> dict[str, float]:
        """Return the scores of the regressors and the number of parts that were measured."""
        return self._search.diagnostics()


def _is_followed(parts: Decomposition, task: Task) -> bool:
    """Return whether compiled code can follow the parts of any row; not where constraints forbid some."""
    free = not task.space.components and not task.space.free_permutations
    return free and parts.cursor(task.default) is not None
