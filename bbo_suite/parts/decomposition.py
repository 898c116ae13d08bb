"""What a problem declares about parts: which ones a candidate has, without any cost and without an evaluation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .parts import Parts

if TYPE_CHECKING:
    from .cursor import Cursor


@dataclass(frozen=True)
class Description:
    """The parts of n candidates, m in all, without their costs.

    Attributes:
      starts, keys, counts: as in `Parts`.
      features: `(m, f)` float64, a row for each part.
    """

    starts: NDArray[np.int64]
    keys: NDArray[np.uint64]
    counts: NDArray[np.float64]
    features: NDArray[np.float64]

    def merged(self) -> Parts:
        """Return the same parts as `Parts.merged` orders them, with costs of 0."""
        return Parts(self.starts, self.keys, self.counts, np.zeros(len(self.keys))).merged()


class Decomposition(ABC):
    """Says which parts any candidate has.

    Attributes:
      feature_names: `f` names, the columns of the features.
      estimate: the column with the compiler's own estimate of a part's cost, if there is one.
      exact: whether parts with equal keys have equal costs. Otherwise they are *nearly* exact: a few differ, because a
        part depends on more than its key says. Then an evaluation tells what each part cost in its candidate, and the
        candidate's own cost is the truth.
    """

    feature_names: tuple[str, ...]
    estimate: int | None = None
    exact: bool = True

    @abstractmethod
    def describe(self, configs: NDArray) -> Description:
        """Return the parts of `(n, d)` allowed candidates. It costs no evaluation and must not tell a cost."""

    def estimated(self, configs: NDArray) -> NDArray[np.float64]:
        """Return the `(n,)` sums of the compiler's own estimates of the parts of candidates, if there are such."""
        assert self.estimate is not None
        found = self.describe(configs)
        owners = np.repeat(np.arange(len(configs)), np.diff(found.starts))
        estimates = found.counts * found.features[:, self.estimate]
        return np.bincount(owners, estimates, len(configs)).astype(np.float64)

    def cursor(self, config: NDArray) -> Cursor | None:
        """Return a cursor at a `(d,)` candidate, to follow its parts from compiled code; None if there is none.

        A decomposition has at most one valid cursor: a new one, or a call of `describe`, invalidates the last.
        """
        return None
