"""Atomic and durable writes, and errors of a disk as one sentence."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from ..errors import UserError


class disk_errors:
    """A context that turns an `OSError` into a `UserError` of one sentence."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if isinstance(error, OSError):
            remedy = "fix this, then run the same command again: stored rows are kept"
            raise UserError(f"cannot write {self._path}: {error.strerror or error}; {remedy}") from None


def write_json(file: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON object to disk; a reader sees the old file or the new one, never a part, even after a power loss."""
    with replacing(file) as unfinished:
        unfinished.write_text(as_json(content), encoding="utf-8")
        _sync(unfinished)  # before it takes its name: else the name may survive a power loss and the content not
    with suppress(OSError):  # not every file system can do this to a folder
        _sync(file.parent)


def as_json(content: Mapping[str, Any]) -> str:
    """Return the text of a file with a JSON object."""
    return json.dumps(content, indent=1)


def _sync(path: Path) -> None:
    """Return when the content of a file, or the names in a folder, are on disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces the file when the block succeeds; if it fails, the old file stays."""
    if file.exists() and not file.is_file():  # a device or a pipe, such as /dev/null, cannot be replaced
        yield file
        return
    real = file.resolve()  # a link stays a link
    unfinished = real.with_name(f".{real.name}.{os.getpid()}")
    try:
        yield unfinished
        unfinished.replace(real)
    finally:
        unfinished.unlink(missing_ok=True)
