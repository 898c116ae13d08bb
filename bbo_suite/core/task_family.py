"""A distribution of problems: what a strategy is trained on before it meets problems of the same kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from numpy.random import Generator

from .problem import Problem


class TaskFamily(ABC):
    """Problems with the same parameters that differ in what they tune, such as the shape of a kernel.

    A subclass sets `instances`, the names of its distributions. Its constructor takes one of them.
    """

    instances: ClassVar[Sequence[str]] = ()

    def __init__(self, instance: str) -> None:
        self.instance = instance

    @abstractmethod
    def sample(self, rng: Generator) -> Problem:
        """Return a problem drawn at random. All of a family declare structures with the same features."""
