"""Each decision about a call flipped alone, and all flips that help together: the tuner of optimal inlining."""

from __future__ import annotations

from collections.abc import Generator as Search
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Level, Task, option

from .planned import Measured, Stepwise

FEATURE = "inlined by default"
"""The feature of a parameter that says whether the compiler inlines the call on its own."""
_CALL, _INLINE = 1, 2


@dataclass(frozen=True)
class InliningTunerOptions:
    """Options of `published:inlining-tuner`."""

    clean: bool = option(True, "start from a program in which nothing is inlined, too (ours; its paper does)")


class InliningTuner(Stepwise):
    """Flips each decision alone, keeps all that help, and repeats (Theodoridis, Grosser and Su, ASPLOS 2022).

    Reproduced, from the paper: in a round each call is flipped alone, one compilation a call; the flips that make the
    program smaller are made together, and the next round starts there; it starts from the compiler's own decisions and
    from a program in which nothing is inlined, and the better end counts.

    Different here: the two starts take rounds in turn; if all flips together are not smaller than the best one alone,
    that one is made; where the budget ends in a round, its last candidate has the flips that have helped so far. It
    ends when no flip helps, often before the budget is spent. On tasks that are not about calls a flip sets the third
    value, or the last if there are fewer, or turns back to the first.

    Not reproduced: the exhaustive search of pieces of the call graph that do not touch.
    """

    Options: ClassVar[type] = InliningTunerOptions
    level: ClassVar[Level] = Level.STRUCTURE
    options: InliningTunerOptions

    def __init__(self, task: Task, budget: int, rng: Generator, options: InliningTunerOptions) -> None:
        known = task.structure
        self._inlined = np.zeros(len(task.space), bool)
        self._of_calls = known is not None and FEATURE in known.feature_names
        if known and self._of_calls:
            self._inlined = known.features[:, known.feature_names.index(FEATURE)] > 0
        self._costs: dict[str, float] = {}
        super().__init__(task, budget, rng, options)

    def begin(self) -> NDArray:
        """Return the clean start."""
        calls = np.minimum(_CALL, self.task.space.sizes - 1).astype(self.task.space.dtype)[None]
        return calls[self.task.space.allowed(calls)][: int(self.options.clean)]

    def remember(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Keep the costs by candidate."""
        self._costs |= zip(self.archive.digests(configs), values.tolist(), strict=True)

    def steps(self, rows: NDArray, costs: NDArray[np.float64]) -> Search[NDArray, Measured, None]:
        """Take a round from each start in turn, until no flip helps."""
        starts: list[NDArray | None] = [*rows[np.isfinite(costs)]]
        while any(start is not None for start in starts):
            for place, start in enumerate(starts):
                if start is not None:
                    starts[place] = yield from self._round(start)

    def _round(self, row: NDArray) -> Search[NDArray, Measured, NDArray | None]:
        """Return where the next round starts; None if no flip helps."""
        flips = self._flips(row)
        flips = flips[: self._affordable(flips)]
        yield from self._try(flips)
        cost, found = self._cost(row), np.array([self._cost(flip) for flip in flips])
        helpful = np.flatnonzero(found < cost)
        if not len(helpful):
            return None
        together, best = row.copy(), flips[helpful[np.argmin(found[helpful])]]
        for flip in flips[helpful]:
            changed = flip != row
            together[changed] = flip[changed]
        yield from self._try(together[None])
        return together if self._cost(together) <= self._cost(best) else best

    def _flips(self, row: NDArray) -> NDArray:
        """Return the candidates with one decision turned round, for all that can be."""
        inlined = np.where(row == 0, self._inlined, row == _INLINE)
        flipped, sizes = np.where(inlined, _CALL, _INLINE), self.task.space.sizes
        if not self._of_calls:
            flipped = np.minimum(flipped, sizes - 1)
            flipped = np.where(flipped == row, 0, flipped)
        columns = np.flatnonzero((flipped != row) & (flipped < sizes))
        rows = np.repeat(row[None], len(columns), axis=0)
        rows[np.arange(len(columns)), columns] = flipped[columns]
        return rows[self.task.space.allowed(rows)]

    def _affordable(self, flips: NDArray) -> int:
        """Return how many flips the budget allows, with one candidate left for those that help."""
        known = [digest in self._costs for digest in self.archive.digests(flips)]
        return int(np.searchsorted(np.cumsum(~np.array(known, bool)), self.budget - len(self._costs), side="left"))

    def _try(self, rows: NDArray) -> Search[NDArray, Measured, None]:
        if len(new := self.new(rows)):
            yield new

    def _cost(self, row: NDArray) -> float:
        return self._costs.get(self.archive.digests(row[None])[0], np.inf)
