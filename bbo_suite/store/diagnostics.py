"""What a strategy says of itself while it runs, kept beside its rows: one line a number when they change."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ..files import disk_errors
from .rows import damaged

DIAGNOSTICS = "diagnostics.csv"
_HEADER = "evaluation,name,value\n"


class Diagnostics:
    """The writer of one run's `diagnostics.csv`; what a run that is resumed says again is not written twice.

    Args:
      folder: of the run, whose lock is held.

    Raises:
      UserError: the file cannot be read or written, or is damaged.
    """

    def __init__(self, folder: Path) -> None:
        self._file, self._last = folder / DIAGNOSTICS, dict[str, float]()
        self._known: set[tuple[int, str]] = set()
        with disk_errors(folder):
            if self._file.exists():
                self._read()

    def _read(self) -> None:
        data = self._file.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        os.truncate(self._file, len(whole))  # the torn end of a line that a crash cut
        for number, line in enumerate(whole.decode(errors="replace").splitlines()[1:], start=2):
            try:
                evaluation, name, _ = line.split(",")
                self._known.add((int(evaluation), name))
            except ValueError:
                raise damaged(self._file, number, "it is not a number by name") from None

    def take(self, evaluation: int, numbers: Mapping[str, float]) -> None:
        """Append the numbers, known after so many evaluations, unless they are the same as before."""
        if numbers == self._last:
            return
        self._last = dict(numbers)
        new = [name for name in numbers if (evaluation, name) not in self._known]
        lines = "".join(f"{evaluation},{name},{float(numbers[name])!r}\n" for name in new)
        with disk_errors(self._file.parent), self._file.open("a", encoding="utf-8", newline="") as file:
            file.write(lines if file.tell() else _HEADER + lines)
