"""The contract of a library of kernels: what the programs of a fleet consist of, and how their settings are tuned."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..core.problem import Problem
from ..core.task import Strategies

Progress = Callable[[str], None]
"""Called with a short sentence while something takes long."""


@dataclass(frozen=True)
class Groups:
    """Groups of kernels, one after another; those of group i are `starts[i]:starts[i + 1]`.

    Attributes:
      starts: `(g + 1,)`.
      kernels: `(m,)` numbers of kernels in the library.
      runs: `(m,)` how often the program runs each; None where that is not known.
    """

    starts: NDArray[np.int64]
    kernels: NDArray[np.int64]
    runs: NDArray[np.float64] | None = None


class KernelLibrary(ABC):
    """Kernels that a fleet may run. A kernel is a number; settings are rows of `w` numbers.

    A kernel is tuned in stages, such as first its tile, then its flags: each stage changes some of the settings and
    keeps what the stages before it have chosen. Version 0 is the compiler of today; a release raises the version, and
    with it all times and defaults may change.

    A subclass sets `instances`; its constructor takes the name of one, and a function that shows progress.

    Attributes:
      machine: the name of what the kernels run on.
      content: `(k,)` digests of what each kernel computes, without machine and version.
      family: `(k,)` kernels that are likely to gain alike have one number.
      features: `(k, f)` what is close here is likely to want the same settings.
      programs: the programs of the catalogue with the kernels that they run.
      variants: for each of these programs the kernels that other versions of it have.
      counts: `(k, stages)` settings of each stage, whether they compile or not.
      predicted: `(k,)` the share of its time that a learned model expects tuning to save.
      trained_on: configurations that were measured to train that model.
      strategies: finds search strategies by id.
    """

    instances: ClassVar[Sequence[str]] = ()
    machine: str
    content: NDArray[np.uint64]
    family: NDArray[np.int64]
    features: NDArray[np.float32]
    programs: Groups
    variants: Groups
    counts: NDArray[np.int64]
    predicted: NDArray[np.float64]
    trained_on: int
    strategies: Strategies

    @abstractmethod
    def fingerprint(self) -> str:
        """Return a text that changes with the kernels and with any of their times."""

    @abstractmethod
    def defaults(self, version: int, kernels: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the `(n, w)` settings that the compiler chooses."""

    @abstractmethod
    def seconds(self, version: int, kernels: NDArray[np.int64], settings: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the `(n,)` true seconds of one run of kernels with `(n, w)` settings; inf: it does not compile."""

    @abstractmethod
    def default_seconds(self, version: int) -> NDArray[np.float64]:
        """Return the `(k,)` true seconds of one run of each kernel with the compiler's settings."""

    @abstractmethod
    def tunable(self, version: int) -> NDArray[np.bool_]:
        """Return `(k,)` True for kernels that can be tuned."""

    @abstractmethod
    def compiled(
        self, version: int, kernels: NDArray[np.int64], given: NDArray[np.float64], stage: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return all settings of a stage that compile, as `(n + 1,)` starts and `(s, w)` settings.

        Args:
          given: `(n, w)` settings, of which a stage changes its own.
        """

    @abstractmethod
    def problem(self, version: int, kernel: int) -> Problem:
        """Return the task to tune all settings of a kernel at once."""

    @abstractmethod
    def settings_of(self, version: int, kernel: int, configs: NDArray) -> NDArray[np.float64]:
        """Return the `(n, w)` settings that `(n, d)` candidates of that task stand for."""

    @abstractmethod
    def picks(self, kernels: NDArray[np.int64], given: NDArray[np.float64], stage: int) -> NDArray[np.float64]:
        """Return the `(n, m, w)` settings of a stage that a learned model ranks first, the best first."""

    @abstractmethod
    def adapted(self, kernels: NDArray[np.int64], settings: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the legal `(n, w)` settings of kernels that are closest to `(n, w)` settings of other kernels."""
