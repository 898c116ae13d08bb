"""Results of compilers on disk: what one run has compiled, no other run compiles again."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..files import cache_folder

_BYTES = 1 << 30


class Cache:
    """Outcomes by content, shared by all processes. Beyond one gigabyte the oldest are dropped.

    The cache only saves time, so if it cannot be read or written, for example because the disk is full, it prints one
    warning and is not used any more.

    Args:
      compiler: name and version; each compiler has its own folder.
      content: digest of the program and of what is measured.
      folder: of all caches (default: `files.cache_folder()`).
    """

    def __init__(self, compiler: str, content: str, folder: Path | None = None) -> None:
        self._folder = (folder or cache_folder()) / compiler
        self._content = content
        self._store: Any = None
        self._broken = False

    def get(self, requests: Sequence[Any]) -> list[Any]:
        """Return the outcome of each request, None where it is not known."""
        found: list[Any] = [None] * len(requests)
        try:
            store = self._opened()
            for i, request in enumerate(requests):
                found[i] = store.get(self._key(request)) if store is not None else None
        except Exception as error:
            self._give_up(error)
        return found

    def put(self, requests: Sequence[Any], outcomes: Sequence[Any]) -> None:
        """Store the outcomes of requests."""
        try:
            store = self._opened() if requests else None
            if store is not None:
                with store.transact():  # one write to the disk for the batch
                    for request, outcome in zip(requests, outcomes, strict=True):
                        store.set(self._key(request), outcome)
        except Exception as error:
            self._give_up(error)

    def _opened(self) -> Any:  # noqa: ANN401 - diskcache has no types
        if self._store is None and not self._broken:
            from diskcache import Cache as Store  # slow to import, and not every problem has a cache

            self._store = Store(str(self._folder), size_limit=_BYTES, timeout=10)
        return None if self._broken else self._store

    def _key(self, request: Any) -> bytes:  # noqa: ANN401 - whatever a problem asks its children
        return hashlib.blake2b(f"{self._content}|{request!r}".encode(), digest_size=16).digest()

    def _give_up(self, error: Exception) -> None:
        self._broken = True
        print(f"warning: continuing without the cache in {self._folder}: {error}", file=sys.stderr)
