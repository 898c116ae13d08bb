"""What is known of each kernel: its latest result with this compiler and with the one before; results of close ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .jobs import Job, Method, Tuned
from .library import KernelLibrary


class Results:
    """The results of k kernels. Each result has a number; a use of a kernel refers to the one that it runs with.

    Attributes:
      latest: `(k,)` the number of the best result with this compiler; -1: none.
      gain: `(k,)` the share that it saves, as measured; 0 without one.
      settings: `(k, w)` its settings.
      old_gain, old_settings: the same for the compiler before; NaN without a result.
      tried: `(k, methods)` which methods were used with this compiler.
    """

    def __init__(self, library: KernelLibrary, width: int) -> None:
        self._library, k = library, len(library.content)
        self.latest, self.gain, self.settings = np.full(k, -1), np.zeros(k), np.full((k, width), np.nan)
        self.old_gain, self.old_settings = np.full(k, np.nan), np.full((k, width), np.nan)
        self.tried = np.zeros((k, len(Method)), bool)
        self._true: list[NDArray[np.float64]] = [np.zeros(1)]
        self._methods: list[NDArray[np.int64]] = [np.zeros(1, np.int64)]
        self._number = 0

    def add(self, job: Job, tuned: Tuned) -> None:
        """Take a job's results; one replaces an older one only if it was measured to save more."""
        self.tried[job.kernels, job.method] = True
        better = tuned.gain > self.gain[job.kernels]
        kernels, settings = job.kernels[better], tuned.settings[better]
        usual = self._library.default_seconds(job.version)[kernels]
        self._true.append(1 - self._library.seconds(job.version, kernels, settings) / usual)
        self._methods.append(np.full(len(kernels), job.method))
        self.latest[kernels] = np.arange(self._number, self._number + len(kernels))
        self._number += len(kernels)
        self.gain[kernels], self.settings[kernels] = tuned.gain[better], settings

    def release(self) -> None:
        """Let all results become old: another compiler's fingerprints differ from those in the store."""
        known = self.latest >= 0
        self.old_gain[known], self.old_settings[known] = self.gain[known], self.settings[known]
        self.latest[:], self.gain[:], self.tried[:] = -1, 0.0, False

    def true_gains(self) -> NDArray[np.float64]:
        """Return the true gain of each result by its number, and 0 behind the last, for uses without a result."""
        return np.concatenate([*self._true[1:], self._true[0]])

    def methods(self) -> NDArray[np.int64]:
        """Return the method of each result by its number, and 0 behind the last."""
        return np.concatenate([*self._methods[1:], self._methods[0]])


def can_transfer(library: KernelLibrary, results: Results, count: int) -> NDArray[np.bool_]:
    """Return `(k,)` True for kernels of families with enough results that save something."""
    saving = results.gain > 0
    counts = np.bincount(library.family[saving], minlength=int(library.family.max()) + 1)
    return counts[library.family] > count  # one may be the kernel's own


def closest_settings(
    library: KernelLibrary, results: Results, kernels: NDArray[np.int64], count: int
) -> NDArray[np.float64]:
    """Return the `(n, count, w)` settings of the closest kernels with a result, cut to what is legal for each."""
    from scipy.spatial import cKDTree

    found = np.empty((len(kernels), count, results.settings.shape[1]))
    saving = np.flatnonzero(results.gain > 0)
    for family in np.unique(library.family[kernels]).tolist():
        places = np.flatnonzero(library.family[kernels] == family)
        known = saving[library.family[saving] == family]
        _, closest = cKDTree(library.features[known]).query(library.features[kernels[places]], count)
        found[places] = results.settings[known[closest.reshape(len(places), count)]]
    n, m, w = found.shape
    return library.adapted(np.repeat(kernels, m), found.reshape(-1, w)).reshape(n, m, w)
