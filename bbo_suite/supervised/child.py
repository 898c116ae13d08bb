"""The child's side: a process that answers requests one by one, and that its parent may lose at any of them.

Started as a script with the standard library alone, so that a compiler's process starts fast. What it talks through is
a socket that it inherits: whatever a compiler prints goes to a file, whose end explains a death.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import resource
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

Enter = Callable[[str, float], None]
Handler = Callable[[Any, Enter], Any]

_SPARE_SECONDS = 5.0
_PR_SET_PDEATHSIG = 1
_FILE = 64 << 20
"""Bytes of a file that a child may write: what it prints must not fill the disk."""


def main() -> None:
    """Read what to serve, make its handler, say `ready`, then answer until the parent is gone."""
    connection = Connection(int(sys.argv[1]))
    os.set_inheritable(connection.fileno(), False)
    _die_with(int(sys.argv[2]))
    try:
        _serve(connection)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        os._exit(0)  # the parent has closed its end; nothing here is worth a clean-up


def _die_with(parent: int) -> None:
    """Have the kernel end this process with its parent, where it can; a closed socket ends it everywhere."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def _serve(connection: Connection) -> None:
    target, arguments, memory, path = connection.recv()
    sys.path[:] = path

    def enter(stage: str, seconds: float) -> None:
        """Tell the parent what is done from now on and for how long; the alarm is for when the parent is gone."""
        connection.send(("stage", stage, seconds))
        signal.setitimer(signal.ITIMER_REAL, seconds + _SPARE_SECONDS)

    _limit(memory)  # first: what a target reads is somebody's program, and may eat memory too
    try:
        module, _, name = target.partition(":")
        handler: Handler = getattr(importlib.import_module(module), name)(*arguments)
    except Exception as error:
        connection.send(("unfit", _words(error)))
        return
    connection.send(("ready",))
    while True:
        request = connection.recv()
        os.lseek(1, 0, os.SEEK_SET)
        os.ftruncate(1, 0)  # what earlier candidates printed explains nothing about this one
        connection.send(_answer(handler, request, enter))
        signal.setitimer(signal.ITIMER_REAL, 0)


def _answer(handler: Handler, request: Any, enter: Enter) -> tuple[str, Any]:  # noqa: ANN401 - the target's own
    try:
        return "done", handler(request, enter)
    except Exception as error:
        return "raised", _words(error)


def _words(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "out of memory"
    text = " ".join(str(error).split())
    return text if isinstance(error, ValueError | RuntimeError) and text else f"{type(error).__name__}: {text}"


def _limit(memory: int) -> None:
    for kind, most in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, _FILE)):
        with contextlib.suppress(ValueError, OSError):  # a stricter limit is in force already
            resource.setrlimit(kind, (most, most))


if __name__ == "__main__":
    main()
