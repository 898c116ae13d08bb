"""What the family needs to know of one instance: a file of the contest, or a network of ours."""

from __future__ import annotations

from abc import ABC, abstractmethod

from numpy.typing import NDArray

from bbo_suite import Evaluations, Space, Structure


class Model(ABC):
    """The space, the costs and the parts of an instance.

    Attributes:
      space, default, unit, bound, published_in: as in `Problem`.
      content: a text that changes when costs change.
    """

    space: Space
    default: NDArray
    unit: str
    content: str
    bound: float | None = None
    published_in: str = ""

    @abstractmethod
    def evaluate(self, configs: NDArray, with_parts: bool) -> Evaluations:
        """Return the costs of `(n, d)` candidates."""

    @abstractmethod
    def structure(self) -> Structure:
        """Return what is declared about the parameters."""

    @abstractmethod
    def paste(self, config: NDArray) -> str:
        """Return a candidate as a schedule to read or to submit."""

    @abstractmethod
    def usage(self) -> str:
        """Return what to do with what `paste` returns."""

    @abstractmethod
    def facts(self) -> dict[str, str]:
        """Return what `show` prints."""

    @abstractmethod
    def baselines(self) -> dict[str, float]:
        """Return costs to compare with."""
