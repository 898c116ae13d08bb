"""Numba's decorator with our settings, and a cache of compiled code that is renewed when any source changes."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba import njit

from bbo_suite.files.cache import cache_folder

_CONFIG: Any = numba.config
_KEPT = 8
"""Folders of compiled code that stay: those of the sources in use, and of a few others, such as other versions."""


def sources_hash(package: Path) -> str:
    """Return a hash of all Python sources of a package, subfolders included.

    Numba checks only the file in which a function is defined, and would miss a change of what the function calls.
    """
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(package.rglob("*.py")))).hexdigest()[:12]


def prepare_folder(parent: Path, name: str) -> Path | None:
    """Return the folder `compiled-<name>` after making it, or None if it cannot be made.

    Of such folders in `parent` only those that were used last are kept.
    """
    folder = parent / f"compiled-{name}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        by_use = sorted(parent.glob("compiled-*"), key=lambda path: path.stat().st_mtime)
    except OSError:  # it is not writable, or another process removes a folder just now
        return folder if os.access(folder, os.W_OK) else None
    for old in by_use[:-_KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    return folder


# $NUMBA_CACHE_DIR, if set, replaces the user's cache folder.
_FOLDER = prepare_folder(Path(_CONFIG.CACHE_DIR or cache_folder()), sources_hash(Path(__file__).parent))


def compiled(runtime: bool = True) -> Callable[[Callable[..., Any]], Any]:
    """Return numba's decorator with the settings of this package.

    Args:
      runtime: False for code that allocates nothing. References to arrays are then not counted, which took a third of
        the time of the hot loops, and the code is inlined, since passing the arrays of a graph took another fifth.
    """

    def decorate(function: Callable[..., Any]) -> Any:  # noqa: ANN401 - numba's dispatcher
        before = _CONFIG.CACHE_DIR
        _CONFIG.CACHE_DIR = str(_FOLDER or before)
        try:
            settings: dict[str, Any] = {
                "cache": _FOLDER is not None,
                "error_model": "numpy",
                "_nrt": runtime,
                "forceinline": not runtime,
            }
            return njit(nogil=True, **settings)(function)
        finally:
            _CONFIG.CACHE_DIR = before

    return decorate
