"""Temporary folders that are removed even if their process is killed: then the next start of the suite does it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import weakref
from functools import cache
from pathlib import Path
from types import TracebackType

_PREFIX = "bbo-suite-"


class TemporaryFolder:
    """A folder that is removed with this object, at the end of a `with` block, or by `remove`.

    It is locked while its process lives: process ids would not tell, as they are used again.

    Attributes:
      path: of the folder; only its owner may enter it.
    """

    def __init__(self) -> None:
        _remove_leftovers()
        self.path, lock = _locked_folder()
        self.remove = weakref.finalize(self, _remove, self.path, lock, os.getpid())

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.remove()


def _locked_folder() -> tuple[Path, int | None]:
    """Return a new folder and its lock, None if the disk has no locks: then a killed process leaves the folder."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        try:
            lock = _lock(folder)
        except (FileNotFoundError, BlockingIOError):  # another process takes it for a leftover
            continue
        except OSError:
            return folder, None
        if folder.exists():
            return folder, lock


def _lock(folder: Path) -> int:
    """Return a descriptor that holds the lock of a folder; an `OSError` says that another process does."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _remove(folder: Path, lock: int | None, owner: int) -> None:
    if os.getpid() != owner:  # a fork has a copy of the object
        return
    shutil.rmtree(folder, ignore_errors=True)
    if lock is not None:
        os.close(lock)


@cache
def _remove_leftovers() -> None:
    """Remove the folders of dead processes, once per process."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # it is in use, or another user's
            _remove(folder, _lock(folder), os.getpid())
