"""The child's side: a process that answers requests one by one, and may die at any of them.

The keeper (`keeper.py`) starts it. It imports the standard library alone, so that it starts fast. It talks to the suite
through a socket that it inherits. What a compiler prints goes to a file, whose last lines explain a crash.
"""

from __future__ import annotations

import contextlib
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
_FILE = 64 << 20
"""Largest file in bytes that a child may write: its output must not fill the disk."""


def main() -> None:
    """Receive what to serve, make the handler, send `ready`, then answer requests until the parent is gone."""
    connection = Connection(int(sys.argv[1]))
    os.set_inheritable(connection.fileno(), False)
    try:
        _serve(connection)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        os._exit(0)  # the parent has closed the socket; there is nothing to clean up


def _serve(connection: Connection) -> None:
    target, arguments, memory, path = connection.recv()
    sys.path[:] = path

    def enter(stage: str, seconds: float) -> None:
        """Tell the parent which stage begins and its time limit; the alarm ends this process if the parent is gone."""
        connection.send(("stage", stage, seconds))
        signal.setitimer(signal.ITIMER_REAL, seconds + _SPARE_SECONDS)

    _limit(memory)  # before the target starts, because it may read a user's program
    try:
        module, _, name = target.partition(":")
        handler: Handler = getattr(importlib.import_module(module), name)(*arguments)
    except Exception as error:
        connection.send(("unfit", _message(error)))
        return
    connection.send(("ready",))
    while True:
        request = connection.recv()
        os.lseek(1, 0, os.SEEK_SET)
        os.ftruncate(1, 0)  # drop what earlier candidates printed
        connection.send(_answer(handler, request, enter))
        signal.setitimer(signal.ITIMER_REAL, 0)


def _answer(handler: Handler, request: Any, enter: Enter) -> tuple[str, Any]:  # noqa: ANN401 - the target's own
    try:
        return "done", handler(request, enter)
    except Exception as error:
        return "raised", _message(error)


def _message(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "out of memory"
    text = " ".join(str(error).split())
    return text if isinstance(error, ValueError | RuntimeError) and text else f"{type(error).__name__}: {text}"


def _limit(memory: int) -> None:
    for kind, most in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_FSIZE, _FILE)):
        with contextlib.suppress(ValueError, OSError):  # a stricter limit is in force already
            resource.setrlimit(kind, (most, most))


if __name__ == "__main__":
    main()
