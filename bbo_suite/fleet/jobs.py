"""Jobs: kernels that are tuned by one method. What a job finds depends on nothing but the job.

Noise of measurements depends only on what is measured: not on the order, and not on the process.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

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


_STEP, _FIRST, _SECOND = (np.uint64(each) for each in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def mixed(*columns: NDArray[np.uint64] | int) -> NDArray[np.uint64]:
    """Return digests of rows whose columns are given, by the finaliser of SplitMix64 (Steele et al. 2014)."""
    with np.errstate(over="ignore"):
        found: Any = np.uint64(0)
        for column in columns:
            found = (found ^ np.asarray(column, np.uint64)) + _STEP
            found = (found ^ (found >> np.uint64(30))) * _FIRST
            found = (found ^ (found >> np.uint64(27))) * _SECOND
            found = found ^ (found >> np.uint64(31))
    return np.asarray(found)


def digests(settings: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Return the `(n,)` digests of `(n, w)` settings."""
    return mixed(*np.ascontiguousarray(settings.T, np.float64).view(np.uint64))


def normal(keys: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Return a standard normal number for each key (Box and Muller 1958)."""
    first, second = ((mixed(keys, turn) >> np.uint64(11)).astype(np.float64) / 2.0**53 for turn in (1, 2))
    return np.sqrt(-2 * np.log(1 - first)) * np.cos(2 * np.pi * second)
