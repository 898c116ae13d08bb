"""The display of a study's progress. The command line and the Python API provide it, so `runs` depends on neither."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .study_plan import PlannedRun


class Display:
    """Shows nothing; a subclass shows something."""

    @contextmanager
    def preparing(self, problems: Sequence[str]) -> Iterator[None]:
        """Show, until the block ends, that these problems are loaded and their defaults evaluated."""
        yield

    @contextmanager
    def running(self, plan: Sequence[PlannedRun]) -> Iterator[Callable[[Path], None]]:
        """Show the progress of the runs until the block ends.

        Yields a function to be called with the folder of each run that has finished: files do not show that a run
        failed.
        """
        yield lambda path: None
