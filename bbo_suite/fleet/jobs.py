"""Jobs: kernels that are tuned by one method. What a job finds depends on nothing but the job."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


class Method(IntEnum):
    """How a kernel is tuned."""

    EXHAUSTIVE = 0  # all settings of each stage, the kernel alone
    MODEL = 1  # what the learned model ranks first
    NEAR = 2  # what is best for the closest kernels in the store
    REVALIDATE = 3  # what was best with the compiler before
    SHARED = 4  # all settings; the kernels of a program are measured together, by the costs of its parts
    SHARED_MODEL = 5  # what the learned model ranks first; the kernels of a program are measured together
    KNOWN = 6  # the true best, which only an oracle knows
    SEARCH = 7  # what a search strategy of the suite finds with a budget of evaluations

    @property
    def word(self) -> str:
        """The method as text for files and tables."""
        return self.name.lower()


LISTED = (Method.NEAR, Method.REVALIDATE, Method.KNOWN)
"""Methods whose candidates are given with the job."""
TOGETHER = (Method.SHARED, Method.SHARED_MODEL)
"""Methods that measure the kernels of a program together."""
RANKED = (Method.MODEL, Method.SHARED_MODEL)
"""Methods that try what the learned model ranks first."""


@dataclass(frozen=True)
class Job:
    """Some kernels to tune.

    Attributes:
      number: of the job in its run.
      version: of the compiler.
      method: how.
      kernels: `(n,)`.
      candidates: `(n, m, w)` settings to try, for the methods that take them.
      seed: of the noise.
    """

    number: int
    version: int
    method: Method
    kernels: NDArray[np.int64]
    candidates: NDArray[np.float64] | None
    seed: int

    def of(self, places: NDArray[np.int64]) -> Job:
        """Return the job for some of its kernels."""
        candidates = None if self.candidates is None else self.candidates[places]
        return Job(self.number, self.version, self.method, self.kernels[places], candidates, self.seed)


@dataclass(frozen=True)
class Tuned:
    """What a job found for each of its n kernels.

    Attributes:
      settings: `(n, w)` the best; the compiler's own where nothing was measured to be better.
      gain: `(n,)` the share of the default's time that they save, as measured; 0 for the default.
      compiled: `(n,)` configurations compiled.
      measured: `(n,)` configurations measured, those that were measured again twice.
      digest: `(n,)` of the settings.
    """

    settings: NDArray[np.float64]
    gain: NDArray[np.float64]
    compiled: NDArray[np.int64]
    measured: NDArray[np.int64]
    digest: NDArray[np.uint64]

    def __len__(self) -> int:
        """Return the number of kernels."""
        return len(self.gain)
