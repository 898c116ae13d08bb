"""Results of compilers on disk: what was compiled once is not compiled again, by any run."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..files import cache_folder

_BYTES = 1 << 30


class Cache:
    """Outcomes by content, shared by all processes, the least recently stored dropped beyond a gigabyte.

    A cache that cannot be read or written, say because the disk is full, is left alone with one warning: it only saves
    time.

    Args:
      compiler: name and version; every compiler has a folder of its own.
      content: digest of the program and of what is measured.
      folder: the place of all caches; `~/.cache/bbo_suite` when left out.
    """

    def __init__(self, compiler: str, content: str, folder: Path | None = None) -> None:
        self._folder = (folder or cache_folder()) / compiler
        self._content = content
        self._store: Any = None
        self._broken = False

    def get(self, requests: Sequence[Any]) -> list[Any]:
        """Return what is known of each request, None where nothing is."""
        found: list[Any] = [None] * len(requests)
        try:
            store = self._opened()
            for i, request in enumerate(requests):
                found[i] = store.get(self._key(request)) if store is not None else None
        except Exception as error:
            self._give_up(error)
        return found

    def put(self, requests: Sequence[Any], outcomes: Sequence[Any]) -> None:
        """Keep the outcomes of requests."""
        try:
            store = self._opened() if requests else None
            if store is not None:
                with store.transact():  # one write to disk for the batch
                    for request, outcome in zip(requests, outcomes, strict=True):
                        store.set(self._key(request), outcome)
        except Exception as error:
            self._give_up(error)

    def _opened(self) -> Any:  # noqa: ANN401 - diskcache has no types
        if self._store is None and not self._broken:
            from diskcache import Cache as Store  # its import takes a while, and not every problem has a cache

            self._store = Store(str(self._folder), size_limit=_BYTES, timeout=10)
        return None if self._broken else self._store

    def _key(self, request: Any) -> bytes:  # noqa: ANN401 - whatever a problem asks its children
        return hashlib.blake2b(f"{self._content}|{request!r}".encode(), digest_size=16).digest()

    def _give_up(self, error: Exception) -> None:
        self._broken = True
        print(f"going on without the cache in {self._folder}: {error}", file=sys.stderr)
