"""Locks that end with the process that holds them."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UserError

if TYPE_CHECKING:
    from filelock import AcquireReturnProxy


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
