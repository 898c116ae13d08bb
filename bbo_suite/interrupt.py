"""Ctrl-C: the first asks all runs to stop after their batch, the second ends the program at once."""

from __future__ import annotations

import signal
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self


class StopFile:
    """A context manager whose `path` appears when the user presses Ctrl-C; runs in any process can look at it."""

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="bbo_suite_")
        self.path = Path(self._folder.name) / "stop"
        self._catching = threading.current_thread() is threading.main_thread()
        if self._catching:
            self._before = signal.signal(signal.SIGINT, self._first)
        return self

    def _first(self, number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self.path.touch()
        print("finishing the current batch; press Ctrl-C again to end at once", file=sys.stderr, flush=True)

    @property
    def stopped(self) -> bool:
        """Has the user asked to stop?"""
        return self.path.exists()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._catching:
            signal.signal(signal.SIGINT, self._before)
        self._folder.cleanup()
