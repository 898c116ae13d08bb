"""How runs are ended: by Ctrl-C and SIGTERM, and by a strategy or native code that ends its process.

The first signal stops all runs after their current evaluations, the second ends the program at once. A process watches
the one that makes the runs: if something ends that, one run has failed, or the command if it made none. Commands that
run strategies are watched, and only on Linux, where a process can be made to end with its parent.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, NoReturn, Self

from ..store.folders import note_death

_MESSAGE = b"finishing the current evaluations; press Ctrl-C again to end at once\n"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_Handler = Callable[[int, FrameType | None], Any] | int | None


class StopFile:
    """A context manager whose file `path` appears at Ctrl-C or SIGTERM; runs in any process check for it.

    Args:
      near: for a file that other machines must see: it is made in a folder beside this path, whose name begins with
        this name. Such folders of killed processes are removed, so only one process at a time may use a path.
    """

    def __init__(self, near: Path | None = None) -> None:
        self._near = near

    def __enter__(self) -> Self:
        from ..supervised.temporary import TemporaryFolder  # not needed by `--help`

        self._resources = contextlib.ExitStack()
        folder = self._resources.enter_context(TemporaryFolder() if self._near is None else _shared_folder(self._near))
        self.path = folder / "stop"
        self._resources.enter_context(_handling(self._first))
        return self

    def _first(self, number: int, frame: FrameType | None) -> None:
        for each in _SIGNALS:
            signal.signal(each, _second)
        self.path.touch()
        # not print: the signal may arrive while standard error is being written, which is not reentrant
        with contextlib.suppress(OSError):
            os.write(2, _MESSAGE)

    @property
    def stopped(self) -> bool:
        """True once the user has pressed Ctrl-C, or SIGTERM has come."""
        return self.path.exists()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._resources.close()


def _second(number: int, frame: FrameType | None) -> None:
    """End at once; a third signal would interrupt how processes are ended."""
    for each in _SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


@contextlib.contextmanager
def _shared_folder(near: Path) -> Iterator[Path]:
    for left in near.parent.glob(f"{near.name}=*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"{near.name}=", dir=near.parent) as folder:
        yield Path(folder).absolute()


@contextlib.contextmanager
def _handling(handler: _Handler) -> Iterator[None]:
    """Handle both signals inside the block; only the main thread can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = [signal.signal(number, handler) for number in _SIGNALS]
    try:
        yield
    finally:
        for number, old in zip(_SIGNALS, before, strict=True):
            signal.signal(number, old or signal.SIG_DFL)


def ignored() -> contextlib.AbstractContextManager[None]:
    """Ignore both signals while processes start: they inherit this, so that the signals never reach them."""
    return _handling(signal.SIG_IGN)


_END_WITH_PARENT = 1  # an option of prctl
_LONGEST = 1 << 16
_ENDED = b"\0"
"""What is noted in place of a run once the command has ended by itself."""
_STOPPED = (130, *(-number for number in _SIGNALS))
"""The outcomes of a command that was stopped before it could note anything."""
CAUSES = "out of memory, a crash in native code, or a plugin that ends the process"
_died: dict[Path, str] = {}
"""How the process ended in earlier attempts at this command, by the folder of the run that it was making."""
_note: int | None = None
"""The file in which a watched process says which run it makes."""


def watched(command: Callable[[], None]) -> None:
    """Call a command in a child process, and exit as it does; if it dies during a run, call it again for the others."""
    global _note
    if sys.platform != "linux":
        command()
        return
    with tempfile.TemporaryFile() as file:
        _note = file.fileno()
        while True:
            code, noted = _attempt(command), os.pread(_note, _LONGEST, 0)
            run = Path(os.fsdecode(noted))
            if noted == _ENDED or run in _died or (not noted and code in _STOPPED):
                _exit(code)
            if not noted:
                print(f"error: before the command was done, {_sentence(code)}", file=sys.stderr)
                _exit(code or 1)
            _died[run] = _sentence(code)
            note_death(run, _died[run])


def _sentence(code: int) -> str:
    how = f"with exit code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"
    return f"its process ended {how}: {CAUSES}"


@contextlib.contextmanager
def making(run: Path) -> Iterator[str]:
    """Note, until the block ends, that a run is being made.

    Yields how it ended its process in an earlier attempt; "" if it did not.
    """
    run = run.absolute()
    if _note is not None and run not in _died:
        os.pwrite(_note, os.fsencode(run), 0)
    try:
        yield _died.get(run, "")
    finally:
        if _note is not None:
            os.ftruncate(_note, 0)


def _attempt(command: Callable[[], None]) -> int:
    """Call a command in a child process; return its exit code, or the negative number of the signal that ended it."""
    assert _note is not None
    os.ftruncate(_note, 0)
    sys.stdout.flush()
    sys.stderr.flush()
    before, parent = {number: signal.getsignal(number) for number in _SIGNALS}, os.getpid()
    child = os.fork()
    if not child:
        _end_with(parent)
        try:
            command()
        finally:
            os.pwrite(_note, _ENDED, 0)
        sys.exit(0)
    with contextlib.suppress(OSError):
        os.setpgid(child, child)  # so that each signal reaches it once: from the terminal, or from here
    code = _outcome(child)
    for number, handler in before.items():
        signal.signal(number, handler)
    return code


def _end_with(parent: int) -> None:
    ctypes.CDLL(None).prctl(_END_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)


def _outcome(child: int) -> int:
    """Wait for a child process, which has the terminal meanwhile; it stops and goes on together with this one."""

    def forward(number: int, frame: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)

    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, forward)
    _pass_terminal(os.getpgrp(), child)
    while os.WIFSTOPPED(status := os.waitpid(child, os.WUNTRACED)[1]):
        os.kill(os.getpid(), signal.SIGSTOP)
        _pass_terminal(os.getpgrp(), child)
        os.killpg(child, signal.SIGCONT)
    _pass_terminal(child, os.getpgrp())
    return os.waitstatus_to_exitcode(status)


def _pass_terminal(owner: int, other: int) -> None:
    """Make a group of processes the one that reads the terminal and gets its Ctrl-C, if another one is that now."""
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    with contextlib.suppress(OSError):  # there is no terminal
        if os.tcgetpgrp(0) == owner:
            os.tcsetpgrp(0, other)
    signal.signal(signal.SIGTTOU, before)


def _exit(code: int) -> NoReturn:
    """End as the child did."""
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)
