"""Numbers that a strategy reports about itself while it runs: `diagnostics.csv`, one line per number that changes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UserError, unfit_name
from ..files.log import CheckedLog
from .folders import DIAGNOSTICS, each_readable, study_path
from .frames import printable
from .identity import read_head

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = ("evaluation", "name", "value")


class Diagnostics:
    """The writer of one run's `diagnostics.csv`; numbers that a resumed run reports again are not written twice.

    Args:
      folder: of the run, whose lock is held.
      owner: the strategy, for errors.

    Raises:
      UserError: the file cannot be read or written, or is damaged.
    """

    def __init__(self, folder: Path, owner: str = "the strategy") -> None:
        self._log, self._owner = _log(folder), owner
        self._known = {(evaluation, name) for evaluation, name, _ in self._log}
        self._last = dict[str, float]()

    def take(self, evaluation: int, numbers: Mapping[str, float]) -> None:
        """Append the numbers known after so many evaluations, unless they are the same as before.

        Raises:
          UserError: the file cannot be written, or these are not numbers by names that fit on a line.
        """
        if (known := self._checked(numbers)) == self._last:
            return
        self._last = known
        new = [name for name in known if (evaluation, name) not in self._known]
        self._log.append(f"{evaluation},{name},{known[name]!r}\n" for name in new)

    def _checked(self, numbers: object) -> dict[str, float]:
        contract = f"{self._owner} broke its contract in diagnostics: it must return a dict of numbers by name, not"
        if not isinstance(numbers, Mapping) or not all(isinstance(name, str) for name in numbers):
            raise UserError(f"{contract} {repr(numbers)[:60]}")
        for name in numbers:
            if why := unfit_name(name):
                raise UserError(f"{self._owner} broke its contract in diagnostics: the name {name!r} {why}; rename it")
        try:
            return {name: float(value) for name, value in numbers.items()}
        except (TypeError, ValueError, OverflowError):
            raise UserError(f"{contract} {repr(numbers)[:60]}") from None


def _log(folder: Path) -> CheckedLog[tuple[int, str, float]]:
    return CheckedLog(folder / DIAGNOSTICS, f"{','.join(_COLUMNS)}\n", _parsed, checksums=False)


def _parsed(line: str) -> tuple[int, str, float]:
    """Return evaluation, name and value; older files have names with commas."""
    try:
        evaluation, rest = line.split(",", 1)
        name, value = rest.rsplit(",", 1)
        return int(evaluation), name, float(value)
    except ValueError:
        raise ValueError("it has other fields than evaluation, name and value") from None


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

    columns = dict(zip(_COLUMNS, zip(*_log(path), strict=True), strict=False))
    head = read_head(path)
    names = {"problem": printable(head["problem"]), "strategy": printable(head["strategy"]), "seed": head["seed"]}
    return pd.DataFrame(columns, columns=_COLUMNS).assign(**names)[[*names, *_COLUMNS]]
