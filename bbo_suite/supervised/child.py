"""The child's side: a supervisor and, forked from it, a worker that answers requests one by one and may die at any.

It is started as a script and imports the standard library alone, so that it starts fast. Its arguments are the child's
socket, the process id of the suite, and `confined` or nothing. The supervisor starts the worker. When the worker or the
suite ends, it ends every process that is left of the worker. On Linux, processes that leave their group and session are
found too: those whose parent has ended become children of the supervisor, or they are in a namespace of their own,
which the kernel ends as a whole. Where the kernel offers neither, the worker alone is ended.

The worker talks to the suite through the socket. What a compiler prints goes to a file, whose last lines explain a
crash.
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
from pathlib import Path
from types import FrameType
from typing import Any

Enter = Callable[[str, float], None]
Handler = Callable[[Any, Enter], Any]

_SPARE_SECONDS = 5.0
_FILE = 64 << 20
"""Largest file in bytes that a worker may write: its output must not fill the disk."""
_SHARE = 4
"""A worker that has this part of the memory it may use ends after an answer: compilers leak."""
_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36
_NEW_PROCESSES, _NEW_USER = 0x20000000, 0x10000000
_LIBC = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Start the worker, wait for it, end what it has left, and end as it did."""
    socket, suite, confined = int(sys.argv[1]), int(sys.argv[2]), "confined" in sys.argv[3:]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    alive = _enter_namespace(socket) if confined else None
    _control(_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGTERM, _end)
    _control(_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != suite:
        _end()
    if (worker := os.fork()) == 0:
        _start_worker(alive)
        _work(Connection(socket))
        return
    os.close(socket)
    ended, status = os.wait()
    while ended != worker:
        ended, status = os.wait()
    _end_rest()
    _end_like(status)


def _control(option: int, value: int) -> None:
    with contextlib.suppress(AttributeError):  # not Linux: the worker ends when the suite closes its socket
        _LIBC.prctl(option, value)


def _enter_namespace(socket: int) -> int | None:
    """Put the processes that are started from now on in a namespace that ends with this process.

    Its first process only waits for the end of this one. A user who may make no namespace of processes makes it inside
    one of users, where the environments of all other processes cannot be read either.

    Returns:
      A descriptor that no other process may hold; None if the kernel refuses.
    """
    user, group = os.geteuid(), os.getegid()
    with contextlib.suppress(OSError, AttributeError):
        if _LIBC.unshare(_NEW_PROCESSES):
            if _LIBC.unshare(_NEW_USER | _NEW_PROCESSES):
                return None
            for name, text in (
                ("setgroups", "deny"),
                ("uid_map", f"{user} {user} 1"),
                ("gid_map", f"{group} {group} 1"),
            ):
                Path("/proc/self", name).write_text(text)
        ending, alive = os.pipe()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # then orphans that end here leave nothing
            os.close(socket)
            os.close(alive)
            os.read(ending, 1)
            os._exit(0)
        os.close(ending)
        return alive
    return None


def _start_worker(alive: int | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _control(_SET_PDEATHSIG, signal.SIGKILL)
    if alive is not None:
        os.close(alive)


def _end(number: int = 0, frame: FrameType | None = None) -> None:
    """End as SIGTERM would, because the suite asks for it or has ended, or because somebody stops all processes."""
    _end_rest()
    _end_like(signal.SIGTERM)


def _end_rest() -> None:
    while True:
        for process in _children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        try:
            os.wait()
        except ChildProcessError:
            return


def _children() -> list[int]:
    """Return the children of this process; those of a process that ends become such."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(file.read_text().rpartition(")")[2].split()[1]) == os.getpid():
                found.append(int(file.parent.name))
    return found


def _end_like(status: int) -> None:
    if os.WIFSIGNALED(status):
        with contextlib.suppress(OSError):  # SIGKILL has no handler
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.waitstatus_to_exitcode(status))


def _work(connection: Connection) -> None:
    """Receive what to serve, make the handler, send `ready`, then answer requests until the suite is gone."""
    os.set_inheritable(connection.fileno(), False)
    try:
        _serve(connection)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        os._exit(0)  # the suite has closed the socket; there is nothing to clean up


def _serve(connection: Connection) -> None:
    target, arguments, memory, path = connection.recv()
    sys.path[:] = path

    def enter(stage: str, seconds: float) -> None:
        """Tell the suite which stage begins and its time limit; the alarm ends this process if the suite is gone."""
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
    most = max(memory // _SHARE, 2 * _resident())
    while _resident() <= most:
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


def _resident() -> int:
    """Return the bytes of memory that this process has now; 0 where the system does not say it."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return 0


def _limit(memory: int) -> None:
    for kind, most in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_FSIZE, _FILE)):
        with contextlib.suppress(ValueError, OSError):  # a stricter limit is in force already
            resource.setrlimit(kind, (most, most))


if __name__ == "__main__":
    main()
