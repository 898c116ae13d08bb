"""Compiled code that stays on disk between runs, and is renewed when any source of this package changes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba import njit

_PACKAGE = Path(__file__).parent
_CONFIG: Any = numba.config


def _cache_folder() -> Path | None:
    """Return a folder named by the package's sources, None if nothing can be written.

    Numba compares only the file that a function stands in, so a change of what it calls elsewhere would go unseen.
    """
    sources = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(_PACKAGE.rglob("*.py"))))
    beside, at_home = _PACKAGE / "__pycache__", Path.home() / ".cache" / "bbo_suite"
    folder = (beside if os.access(_PACKAGE, os.W_OK) else at_home) / f"compiled-{sources.hexdigest()[:12]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder


_FOLDER = _cache_folder()


def compiled(runtime: bool = True) -> Callable[[Callable[..., Any]], Any]:
    """Return numba's decorator with the settings of this package.

    Args:
      runtime: False for code that allocates nothing: then no references to arrays are counted, which took a third of
        the time of the hot loops, and it is inlined, since passing the arrays of a graph took another fifth.
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
