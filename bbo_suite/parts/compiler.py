"""Numba's decorators with our settings, and a cache of compiled code that is renewed when any source changes."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba
from numba import cfunc, njit

from ..files.cache import cache_folder

_CONFIG: Any = numba.config
_KEPT = 8
"""Folders of compiled code that stay: those of the sources in use, and of a few others, such as other versions."""


def sources_hash(*packages: Path) -> str:
    """Return a hash of all Python sources of some packages, subfolders included.

    Numba checks only the file in which a function is defined, and would miss a change of what the function calls.
    """
    paths = [path for package in packages for path in sorted(package.rglob("*.py"))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:12]


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


class Compiler:
    """Compiles functions of one package and keeps the code in the user's cache folder, or in $NUMBA_CACHE_DIR.

    Args:
      package: the folder whose sources the compiled code depends on.
    """

    def __init__(self, package: Path) -> None:
        parent = Path(_CONFIG.CACHE_DIR or cache_folder())
        self._folder = prepare_folder(parent, sources_hash(package, Path(__file__).parent))

    def function(self, runtime: bool = True, inline: bool = True) -> Callable[[Callable[..., Any]], Any]:
        """Return a decorator for functions that Python and compiled code call.

        Args:
          runtime: False for code that allocates nothing. References to arrays are then not counted, which took a third
            of the time of the hot loops, and the code is inlined, since passing the arrays of a graph took another
            fifth.
          inline: False for large functions that take handles, not arrays; each is then compiled once only.
        """
        settings: dict[str, Any] = {"nogil": True, "_nrt": runtime, "forceinline": inline and not runtime}
        return lambda function: self._compiled(njit, settings, function)

    def callback(self, signature: Any) -> Callable[[Callable[..., Any]], Any]:  # noqa: ANN401 - numba has no types
        """Return a decorator for functions that compiled code calls by their address; they must not allocate."""
        return lambda function: self._compiled(lambda **settings: cfunc(signature, **settings), {}, function)

    def _compiled(self, decorator: Any, settings: dict[str, Any], function: Callable[..., Any]) -> Any:  # noqa: ANN401
        with self._cache():
            return decorator(cache=self._folder is not None, error_model="numpy", **settings)(function)

    @contextmanager
    def _cache(self) -> Iterator[None]:
        before = _CONFIG.CACHE_DIR
        _CONFIG.CACHE_DIR = str(self._folder or before)
        try:
            yield
        finally:
            _CONFIG.CACHE_DIR = before
