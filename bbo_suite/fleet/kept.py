"""Arrays that take long to compute, kept in the user's cache."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from ..files.cache import cache_folder
from ..files.writing import disk_errors, replacing


def kept_arrays(name: str, make: Callable[[], Mapping[str, NDArray]]) -> dict[str, NDArray]:
    """Return arrays from the cache; they are made if they are not there or damaged.

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
