"""Numbers that a strategy reports about itself while it runs: `diagnostics.csv`, one line per number that changes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UserError
from ..files.writing import disk_errors
from .folders import DIAGNOSTICS, each_readable, study_path
from .frames import printable
from .identity import read_head
from .rows import damaged

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = ("evaluation", "name", "value")
_HEADER = f"{','.join(_COLUMNS)}\n"


class Diagnostics:
    """The writer of one run's `diagnostics.csv`; numbers that a resumed run reports again are not written twice.

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
        os.truncate(self._file, len(whole))  # a crash may have cut the last line
        for number, line in enumerate(whole.decode(errors="replace").splitlines()[1:], start=2):
            try:
                evaluation, name, _ = line.split(",")
                self._known.add((int(evaluation), name))
            except ValueError:
                raise damaged(self._file, number, "it has other fields than evaluation, name and value") from None

    def take(self, evaluation: int, numbers: Mapping[str, float]) -> None:
        """Append the numbers known after so many evaluations, unless they are the same as before."""
        if numbers == self._last:
            return
        self._last = dict(numbers)
        new = [name for name in numbers if (evaluation, name) not in self._known]
        lines = "".join(f"{evaluation},{name},{float(numbers[name])!r}\n" for name in new)
        with disk_errors(self._file.parent), self._file.open("a", encoding="utf-8", newline="") as file:
            file.write(lines if file.tell() else _HEADER + lines)


def load_diagnostics(study: str, results: Path | str = "results") -> pd.DataFrame:
    """Return the diagnostics of all runs of a study: problem, strategy, seed, evaluation, name, value.

    Those of damaged runs are left out, and the runs named on standard error.

    Raises:
      UserError: there is no such study, or all of its diagnostics are damaged.
    """
    import pandas as pd

    paths = sorted(file.parent for file in study_path(study, results).glob(f"*/{DIAGNOSTICS}"))
    empty = pd.DataFrame(columns=["problem", "strategy", "seed", *_COLUMNS])
    return pd.concat(each_readable(paths, _frame), ignore_index=True) if paths else empty


def _frame(path: Path) -> pd.DataFrame:
    import pandas as pd

    file = path / DIAGNOSTICS
    try:
        frame = pd.read_csv(file, dtype={"evaluation": int, "name": str, "value": float}, keep_default_na=False)
    except ValueError as error:
        raise UserError(f"{file} is damaged ({error}); restore it, or delete it") from None
    head = read_head(path)
    names = {"problem": printable(head["problem"]), "strategy": printable(head["strategy"]), "seed": head["seed"]}
    return frame.assign(**names)[[*names, *_COLUMNS]]
