"""Local search on the structure that a problem declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Level, Strategy, Task

from .descent import Costs
from .iterated_search import IteratedSearch
from .options import LocalOptions

if TYPE_CHECKING:
    from .tied_search import TiedSearch


class LocalSearch(Strategy):
    """Iterated local search (Lourenço, Martin and Stützle 2003) on the structure that a problem declares.

    A move sets a single parameter, or all parameters of one node, to one value. The search begins with a variable
    neighbourhood descent (Hansen and Mladenović 2001) of three steps:
      - `alike` makes a move on all alike parameters at once: programs repeat their layers, so what pays in one often
        pays in all.
      - `once` tries each move, the most promising first (see `Catalogue`). If the budget does not allow to try each
        alone, several are tried at once (`MutationRate`): if together they cost nothing, none of them is tried again.
      - `pairs` tries each pair of moves of interacting parameters (see `Pairs`), if the budget is enough for all.

    Then half of the turns are a few batches of hot `annealing` that does not adopt what the other operators find. It
    starts from a random candidate if the budget allows 30 turns of all parameters (small changes may not lead away from
    the default), else from the best found so far. The other half is shared by five operators according to
    their gains: `alike`, `once` and `pairs` as above; `near` and `place` change a few interacting parameters at random.
    The best of these kicks are repaired by single changes around them, and kept if the result is better, or hardly
    worse than the best (record-to-record travel, Dueck 1993, with a tolerance that falls to zero). A kick that paid is
    tried at other alike places. Improvements that do not interact are merged.

    Where each cost belongs to one parameter or to two, parameters that may not differ are moved together: see
    `TiedSearch`.

    Without a declared structure no parameters are alike, and kicks change any parameters. In small spaces no candidate
    is measured twice.
    """

    Options: ClassVar[type] = LocalOptions
    level: ClassVar[Level] = Level.STRUCTURE
    options: LocalOptions

    def __init__(self, task: Task, budget: int, rng: np.random.Generator, options: LocalOptions) -> None:
        super().__init__(task, budget, rng, options)
        is_paired = task.structure is not None and task.structure.is_paired
        self._search: TiedSearch | IteratedSearch
        if is_paired:
            from .tied_search import TiedSearch  # it needs scipy, which takes long to import

            self._search = TiedSearch(task, budget, rng, options)
        else:
            self._search = IteratedSearch(task, budget, rng, options)

    def ask(self, n: int) -> NDArray:
        """Return at most `n` candidates; no rows if nothing can change."""
        return self._search.ask(n)

    def tell(self, configs: NDArray, values: Costs) -> None:
        """Learn costs; the search continues at the next `ask`, when it also knows what other strategies found."""
        self._search.tell(configs, values)

    def observe(self, configs: NDArray, values: Costs) -> None:
        """Advance the schedule; the next turn continues from another strategy's candidate if it is better."""
        self._search.observe(configs, values)
