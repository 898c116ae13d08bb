"""What the family needs to know of one instance: a file of the contest, or a network of ours."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Evaluations, Parts, Space, Status, Structure
from bbo_suite.core.task import interacting
from bbo_suite.parts.decomposition import Decomposition, Description

WriteGroups = Callable[[NDArray, NDArray, NDArray, NDArray, NDArray], None]
"""Writes the groups of `(n, d)` candidates: where those of each start, and their keys, costs and features."""


class Model(ABC):
    """The space, the costs and the parts of an instance.

    Attributes:
      space, default, unit, bound, published_in: as in `Problem`.
      content: a text that changes when costs change.
      groups: the parts of candidates.
    """

    space: Space
    default: NDArray
    unit: str
    content: str
    groups: Groups
    bound: float | None = None
    published_in: str = ""

    def evaluate(self, configs: NDArray, with_parts: bool) -> Evaluations:
        """Return the costs of `(n, d)` candidates, and if wanted those of their groups."""
        if with_parts:
            description, costs = self.groups.evaluated(configs)
            parts = Parts(description.starts, description.keys, description.counts, costs)
            return Evaluations(parts.sums(), np.full(len(configs), Status.OK, np.int8), parts=parts)
        values = np.empty(len(configs))
        self.write_costs(configs.astype(np.int64), values)
        return Evaluations.of(values)

    @abstractmethod
    def write_costs(self, configs: NDArray[np.int64], values: NDArray[np.float64]) -> None:
        """Write the `(n,)` costs of `(n, d)` candidates."""

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


class Groups(Decomposition):
    """Says which operations run together in a candidate, and what each group looks like.

    Args:
      feature_names: of the numbers that describe a group.
      most: groups of a candidate.
      write: computes them; it must not keep what it is given.
    """

    def __init__(self, feature_names: tuple[str, ...], most: int, write: WriteGroups) -> None:
        self.feature_names, self._most, self._write = feature_names, most, write

    def describe(self, configs: NDArray) -> Description:
        """Return the groups of `(n, d)` candidates."""
        return self.evaluated(configs)[0]

    def evaluated(self, configs: NDArray) -> tuple[Description, NDArray[np.float64]]:
        """Return the groups of `(n, d)` candidates and the cost of each."""
        most = len(configs) * self._most
        starts, keys, costs = np.zeros(len(configs) + 1, np.int64), np.empty(most, np.uint64), np.empty(most)
        features = np.empty((most, len(self.feature_names)))
        self._write(configs.astype(np.int64), starts, keys, costs, features)
        count = starts[-1]
        return Description(starts, keys[:count], np.ones(count), features[:count]), costs[:count]


def interactions(members: Sequence[set[int]], d: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return which of d parameters interact, as compressed rows: those that are together in one of the sets."""
    pairs = [pair for columns in members for pair in combinations(columns, 2)]
    return interacting(np.array(pairs, np.int64).reshape(-1, 2), d)
