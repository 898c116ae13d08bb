"""Starts a child's worker, and when the worker or the suite ends, ends every process that is left of it.

It is started as a script, so that a fork costs little, and imports the standard library alone. Its arguments are the
child's socket, the process id of the suite, and `confined` or nothing. On Linux, processes that leave their group and
session are found too: those whose parent has ended become children of this process, or they are in a namespace of their
own, which the kernel ends as a whole. Where the kernel offers neither, the worker alone is ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import runpy
import signal
import sys
from pathlib import Path
from types import FrameType

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
        _work(alive)
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


def _work(alive: int | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _control(_SET_PDEATHSIG, signal.SIGKILL)
    if alive is not None:
        os.close(alive)
    runpy.run_path(str(Path(__file__).with_name("child.py")), run_name="__main__")


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


if __name__ == "__main__":
    main()
