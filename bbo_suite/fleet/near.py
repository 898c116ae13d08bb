"""Results of the closest kernels in the store, to be tried on other kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .library import KernelLibrary
from .results import Results


def can_transfer(library: KernelLibrary, results: Results, near: int) -> NDArray[np.bool_]:
    """Return `(k,)` True for kernels of families with enough results that save something."""
    saving = results.gain > 0
    counts = np.bincount(library.family[saving], minlength=int(library.family.max()) + 1)
    return counts[library.family] > near  # one may be the kernel's own


def near_settings(
    library: KernelLibrary, results: Results, kernels: NDArray[np.int64], near: int
) -> NDArray[np.float64]:
    """Return the `(n, near, w)` settings of the closest kernels with a result, cut to what is legal for each."""
    from scipy.spatial import cKDTree

    found = np.empty((len(kernels), near, results.settings.shape[1]))
    saving = np.flatnonzero(results.gain > 0)
    for family in np.unique(library.family[kernels]).tolist():
        places = np.flatnonzero(library.family[kernels] == family)
        known = saving[library.family[saving] == family]
        _, closest = cKDTree(library.features[known]).query(library.features[kernels[places]], near)
        found[places] = results.settings[known[closest.reshape(len(places), near)]]
    n, m, w = found.shape
    return library.adapted(np.repeat(kernels, m), found.reshape(-1, w)).reshape(n, m, w)
