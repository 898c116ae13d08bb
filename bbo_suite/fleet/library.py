"""Libraries of kernels: what the programs of a fleet consist of, how settings are tuned, and the true best ones."""

from __future__ import annotations

import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..core.problem import Problem
from ..core.task import Strategies
from ..errors import UserError, did_you_mean, error_boundary
from ..files.cache import cache_folder
from ..files.writing import disk_errors, replacing
from ..registry import Registry

Progress = Callable[[str], None]
"""Called with a short sentence while something takes long."""
_KERNELS = 1024
"""Kernels whose settings are held at a time."""


@dataclass(frozen=True)
class Groups:
    """Groups of kernels, one after another; those of group i are `starts[i]:starts[i + 1]`.

    Attributes:
      starts: `(g + 1,)`.
      kernels: `(m,)` numbers of kernels in the library.
      runs: `(m,)` how often the program runs each; None if unknown.
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


def load_library(registry: Registry, library_id: str, shown: Progress = lambda text: None) -> KernelLibrary:
    """Return the kernels `library/instance` that fleets run.

    Raises:
      UserError: there is no such library, or it cannot be made.
    """
    libraries = registry.known("bbo_suite.kernel_libraries", KernelLibrary)
    name, _, instance = library_id.partition("/")
    known = [f"{each}/{place}" for each, load in libraries.items() for place in load().instances]
    if library_id not in known:
        raise UserError(f"there is no library of kernels {library_id!r}.{did_you_mean(library_id, known)}")
    with error_boundary(f"library {library_id}", "loading"):
        made: Any = libraries[name]()  # its constructor takes more than that of the contract
        library: KernelLibrary = made(instance, shown)
    library.strategies = registry
    return library


@dataclass(frozen=True)
class LibraryLoader:
    """Loads a library of kernels in any process."""

    registry: Registry
    library_id: str

    def __call__(self) -> KernelLibrary:
        """Return the library."""
        return load_library(self.registry, self.library_id)


@dataclass(frozen=True)
class Optimum:
    """The best that the stages can find without noise.

    Attributes:
      settings: `(k, w)`.
      gain: `(k,)` the share of the default's time that they save; 0 where nothing can be tuned.
    """

    settings: NDArray[np.float64]
    gain: NDArray[np.float64]


def optimum(library: KernelLibrary, version: int, shown: Progress) -> Optimum:
    """Return the best settings with a compiler; they are computed once and stay in the user's cache."""
    name = f"optimum-{library.fingerprint()}-{version}"
    return Optimum(**cached_arrays(name, lambda: asdict(_search(library, version, shown))))


def _search(library: KernelLibrary, version: int, shown: Progress) -> Optimum:
    usual, tunable = library.default_seconds(version), np.flatnonzero(library.tunable(version))
    best, gain = library.defaults(version, np.arange(len(usual))).copy(), np.zeros(len(usual))
    for start in range(0, len(tunable), _KERNELS):
        shown(f"finding the true best settings: {start:,} of {len(tunable):,} kernels")
        part = tunable[start : start + _KERNELS]
        chosen = best[part]
        for stage in range(library.counts.shape[1]):
            starts, settings = library.compiled(version, part, chosen, stage)
            owner = np.repeat(np.arange(len(part)), np.diff(starts))
            seconds = library.seconds(version, part[owner], settings)
            first = np.lexsort((seconds, owner))[starts[:-1]]
            chosen = settings[first]
        better = seconds[first] < usual[part]
        best[part[better]], gain[part[better]] = chosen[better], 1 - seconds[first][better] / usual[part[better]]
    return Optimum(best, gain)


def cached_arrays(name: str, make: Callable[[], Mapping[str, NDArray]]) -> dict[str, NDArray]:
    """Return arrays from the user's cache; they are made if they are not there or damaged.

    Args:
      name: changes with everything that the arrays depend on.

    Raises:
      UserError: the cache cannot be written.
    """
    path = cache_folder("fleet") / f"{name}.npz"
    try:
        with np.load(path, allow_pickle=False) as content:
            return dict(content)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):  # also if it does not exist
        made = dict(make())
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as unfinished, unfinished.open("wb") as file:
            np.savez(file, **made)  # type: ignore[arg-type]
    return made
