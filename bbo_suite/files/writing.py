"""Atomic and durable writes, errors of a disk as one sentence, and locks that end with the process that holds them."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ..errors import UserError

if TYPE_CHECKING:
    from filelock import AcquireReturnProxy


class disk_errors:
    """A context that turns an `OSError` into a `UserError` of one sentence."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if isinstance(error, OSError):
            remedy = "fix this, then run the same command again: stored rows are kept"
            raise UserError(f"cannot write {self._path}: {error.strerror or error}; {remedy}") from None


def write_text(file: Path, text: str, errors: str = "strict") -> None:
    """Write a text file, and its folder if that does not exist; a reader sees the old file or the new one.

    Args:
      errors: what becomes of characters that UTF-8 cannot say, as `str.encode` takes it.

    Raises:
      UserError: the file cannot be written.
    """
    with disk_errors(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as unfinished:
            unfinished.write_text(text, encoding="utf-8", errors=errors)


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


def acquired(file: Path, content: str, seconds: float = 0) -> AcquireReturnProxy:
    """Acquire the lock of a file until the returned context ends, or the process.

    Args:
      content: what the lock protects, for the error.
      seconds: to wait for another process that holds it.

    Raises:
      UserError: another process holds it, or its file system has no locks.
      OSError: the file cannot be written.
    """
    from filelock import FileLock, SoftFileLock, Timeout

    lock = FileLock(file, timeout=seconds)
    try:
        return lock.acquire()
    except Timeout:
        advice = "wait for it or choose another --study"
        if isinstance(lock, SoftFileLock):  # a file system without locks: the file itself is the lock
            advice += f"; if that process has died, delete {file}"
        raise UserError(f"another process is writing {content}; {advice}") from None
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP):
            raise
        raise UserError(f"the file system of {file.parent} has no locks; choose --results on another one") from None
