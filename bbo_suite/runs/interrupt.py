"""Ctrl-C and SIGTERM: the first stops all runs after their current batch, the second ends the program at once."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

_MESSAGE = b"finishing the current batch; press Ctrl-C again to end at once\n"
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
            signal.signal(each, signal.default_int_handler)
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
