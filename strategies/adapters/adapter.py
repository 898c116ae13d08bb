"""The base class of all adapters: the optimizer of another library behind ask and tell."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Strategy, Task

from .coding import Coding
from .sandbox import Sandbox

_BATCH = 20  # as in our own strategies: an optimizer that is told 100 candidates at once learns late


class Adapter(Strategy):
    """An optimizer of another library.

    The default is its first candidate. The library is told costs as multiples of the default's, so that none of its
    tolerances depends on the unit. A failed candidate counts as twice the worst cost so far: a library that is told no
    cost, or an infinite one, learns nothing from it or breaks.

    Attributes:
      name: name of the optimizer in its library.
    """

    has_variants: ClassVar[bool] = True
    name: ClassVar[str]

    def __init__(self, task: Task, budget: int, rng: Generator, options: Any) -> None:  # noqa: ANN401 - its own Options
        super().__init__(task, budget, rng, options)
        self.coding = Coding(task.space, task.default)
        self.seed = int(rng.integers(2**31))
        self._sandbox = Sandbox(int(rng.integers(2**31)))
        self._unit, self._worst = 0.0, 0.5
        self._started = False

    def ask(self, n: int) -> NDArray:
        """Return at most `n` and at most 20 candidates that the optimizer proposes, the default before all others."""
        n = min(n, _BATCH)
        if not len(self.coding.sizes):
            return np.repeat(self.task.default[None], n, axis=0)
        with self._sandbox.entered():
            if not self._started:
                self.start(n)
                self._started = True
            return self.coding.decode(self.propose(n))

    def tell(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Tell the optimizer the costs of the batch."""
        if len(self.coding.sizes):
            with self._sandbox.entered():
                self.learn(self._relative(values))

    def _relative(self, values: NDArray[np.float64]) -> list[float]:
        good = np.isfinite(values)
        if not self._unit and good.any():
            self._unit = values[good][0] or 1.0
        costs = values / (self._unit or 1.0)
        self._worst = max(self._worst, costs[good].max(initial=0.0))
        return np.where(good, costs, 2 * self._worst).tolist()

    @abstractmethod
    def start(self, batch: int) -> None:
        """Make the optimizer, which will be asked for `batch` candidates at a time."""

    @abstractmethod
    def propose(self, n: int) -> NDArray:
        """Return `(k, w)` free indices with k <= n; the first of the first batch are the default's."""

    @abstractmethod
    def learn(self, costs: list[float]) -> None:
        """Tell the optimizer the costs of what it proposed last."""


def one_of(adapter: type[Adapter], library: str, name: str, **attributes: Any) -> type[Strategy]:  # noqa: ANN401
    """Return the subclass of an adapter for one named optimizer."""
    doc = f"{library}'s {name}.\n\n" + (adapter.__doc__ or "").partition("\n\n")[2]
    return type(name, (adapter,), {"name": name, "has_variants": False, "__doc__": doc, **attributes})
