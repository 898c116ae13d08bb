"""Ctrl-C: the first stops all runs after their current batch, the second ends the program at once."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

_MESSAGE = b"finishing the current batch; press Ctrl-C again to end at once\n"


class StopFile:
    """A context manager whose file `path` appears when the user presses Ctrl-C; runs in any process check for it.

    Args:
      folder: where to make the file if other machines must see it; by default the folder for temporary files.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._where = folder

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix=".bbo_suite_", dir=self._where)
        self.path = Path(self._folder.name).absolute() / "stop"
        self._catching = threading.current_thread() is threading.main_thread()
        if self._catching:
            self._before = signal.signal(signal.SIGINT, self._first)
        return self

    def _first(self, number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self.path.touch()
        # not print: the signal may arrive while standard error is being written, which is not reentrant
        with contextlib.suppress(OSError):
            os.write(2, _MESSAGE)

    @property
    def stopped(self) -> bool:
        """True once the user has pressed Ctrl-C."""
        return self.path.exists()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._catching:
            signal.signal(signal.SIGINT, self._before or signal.SIG_DFL)
        self._folder.cleanup()


@contextlib.contextmanager
def ignored() -> Iterator[None]:
    """Ignore Ctrl-C while processes start: they inherit this, so that Ctrl-C never reaches them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)
