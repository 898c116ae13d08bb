"""Discrete GOMEA with a linkage tree (Thierens and Bosman 2011; Bouter and Bosman 2023)."""

from __future__ import annotations

import functools
import queue
import threading
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Strategy, UserError
from bbo_suite.core.libraries import require

from .adapter import Adapter, one_of

LINKAGES = ("LinkageTree", "Univariate")
_LARGEST = 127
"""The largest index that the library passes on, plus one."""


class Gomea(Adapter):
    """Optimizers of another library; `show gomea` names its gene-pool optimal mixing algorithms.

    `gomea:LinkageTree` is LT-GOMEA: it learns from its population which parameters belong together, and mixes them as
    blocks. `gomea:Univariate` mixes each parameter alone, which shows what the linkage is worth. Its populations grow
    without a setting. All parameters of the library have the same number of values; a parameter with fewer takes the
    value at the same share of its range. It measures one candidate at a time; the default comes before its first.
    """

    @classmethod
    def variants(cls) -> tuple[str, ...]:
        """Return the names of the linkage models."""
        return LINKAGES

    @classmethod
    @functools.cache
    def variant(cls, name: str) -> type[Strategy]:
        """Return the strategy with one linkage model."""
        require("gomea", f"strategy gomea:{name}", "bbo_suite[gomea]")
        return one_of(cls, "gomea", name)

    def start(self, batch: int) -> None:
        """Prepare to run the library beside this thread; it runs only while this thread waits for it."""
        self._most, d = int(self.coding.sizes.max()), len(self.coding.sizes)
        if self._most > _LARGEST or d < 2:  # it never returns from a search of one parameter
            found = f"{self.task.problem} has {d} that can change, with up to {self._most}"
            raise UserError(f"gomea takes two or more parameters of at most {_LARGEST} values; {found}")
        self._wanted: queue.Queue[NDArray | Exception | None] = queue.Queue()
        self._costs: queue.Queue[float | None] = queue.Queue()
        weakref.finalize(self, self._costs.put, None)  # ends the library when the strategy is dropped
        self._next: NDArray | None = self.coding.default
        self._begun = False

    def propose(self, n: int) -> NDArray:
        """Return the candidate that the library waits for; none when it has ended."""
        return np.empty((0, len(self.coding.sizes)), np.int64) if self._next is None else self._next[None]

    def learn(self, costs: list[float]) -> None:
        """Tell the library the cost, and wait for its next candidate."""
        if self._begun:
            self._costs.put(-costs[0])
        else:
            self._begun = True
            settings = self.name, self._most, len(self.coding.sizes), self.budget, self.seed
            arguments = (self._wanted, self._costs, *settings)
            threading.Thread(target=_run, args=arguments, daemon=True).start()
        values = self._wanted.get()
        if isinstance(values, Exception):
            raise values
        self._next = None if values is None else values.astype(np.int64) * self.coding.sizes // self._most


def _run(wanted: queue.Queue[Any], costs: queue.Queue[Any], *settings: Any) -> None:  # noqa: ANN401 - see `start`
    """Run the library to its end; it puts candidates on one queue and takes what they are worth from the other."""
    import gomea

    linkage, most, width, budget, seed = settings

    class Waiting(gomea.fitness.BBOFitnessFunctionDiscrete):
        def objective_function(self, objective_index: int, variables: NDArray) -> float:
            """Return what a candidate is worth, when it is known."""
            wanted.put(np.array(variables))
            if (worth := costs.get()) is None:
                raise RuntimeError("the strategy is gone")
            return float(worth)

    fitness, model = Waiting(width, alphabet_size=most, value_to_reach=1e308), getattr(gomea.linkage, linkage)()
    limits = {"max_number_of_evaluations": budget, "random_seed": seed}
    try:
        gomea.DiscreteGOMEA(fitness=fitness, linkage_model=model, **limits).run()
        wanted.put(None)
    except Exception as error:
        wanted.put(error)
