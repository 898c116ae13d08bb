"""Where studies and their runs are stored: the names of all files, and how to find runs.

A study is a folder `RESULTS/STUDY` with `study.json` (what all runs share) and `planned.jsonl` (the runs to be made);
each run is a folder in it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from ..errors import UserError, did_you_mean, leave_out

_Content = TypeVar("_Content")

STUDY, PLANNED = "study.json", "planned.jsonl"
RUN, ROWS, END, ERROR, DIAGNOSTICS = "run.json", "rows.csv", "end.json", "error.txt", "diagnostics.csv"
PARTS, REMEASURED = "parts.csv", "remeasured.csv"
LOCK, STOPPED = ".lock", "stopped"


def study_path(study: str, results: Path | str) -> Path:
    """Return the folder of a study.

    Raises:
      UserError: there is no run in it.
    """
    path = Path(results) / study
    if not has_runs(path):
        known = sorted({run.parents[1].name for run in Path(results).glob(f"*/*/{RUN}")})
        hint = f"known: {', '.join(known)}" if known else "there are no studies yet"
        raise UserError(f"there is no study {study!r} in {results} ({hint}); make one with `run --study {study}`")
    return path


def run_folders(study: str, results: Path | str) -> list[Path]:
    """Return the folders of a study's runs, sorted by name.

    Raises:
      UserError: there is no such study.
    """
    return runs_in(study_path(study, results))


def runs_in(study: Path) -> list[Path]:
    """Return the folders of the runs in a study's folder, sorted by name; none if there is no such folder.

    Raises:
      UserError: the folder cannot be read.
    """
    return sorted(_runs_in(study))


def has_runs(study: Path) -> bool:
    """Return whether a study's folder holds a run.

    Raises:
      UserError: the folder cannot be read.
    """
    return any(_runs_in(study))


def _runs_in(study: Path) -> Iterator[Path]:
    try:
        yield from (path for path in study.iterdir() if has_begun(path))
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise UserError(f"cannot read {study}: {error.strerror}") from None


def has_begun(run: Path) -> bool:
    """Return whether a run has begun: its folder has a `run.json`."""
    return _exists(run / RUN)


def has_rows(run: Path) -> bool:
    """Return whether the log in a run's folder has a complete row, so that there is something to continue."""
    try:
        with (run / ROWS).open("rb") as log:
            return bool(log.readline()) and log.readline().endswith(b"\n")
    except OSError as error:
        return not isinstance(error, FileNotFoundError)


def has_ended(run: Path) -> bool:
    """Return whether a run has ended: its folder has an `end.json`."""
    return _exists(run / END)


def _exists(file: Path) -> bool:
    """Return whether a file exists; true also where permissions hide it, so that whoever reads it says so."""
    try:
        return file.exists()
    except PermissionError:
        return True


def mark_stopped(run: Path) -> None:
    """Note in the folder of a run that has begun and not ended that it was stopped; its next start removes the note."""
    if has_begun(run) and not has_ended(run):
        with contextlib.suppress(OSError):  # it is only displayed
            (run / STOPPED).touch()


def note_death(run: Path, sentence: str) -> None:
    """Note in the folder of a run why its process ended; its next start removes the note."""
    with contextlib.suppress(OSError):  # it is only displayed
        (run / ERROR).write_text(f"{sentence}\n", encoding="utf-8")


def last_error(path: Path) -> str:
    """Return the last line of the error that ended a run's last attempt; empty if there was none."""
    file = path / ERROR
    lines = file.read_text(encoding="utf-8", errors="replace").strip().splitlines() if file.exists() else [""]
    return lines[-1] if lines else "without a message"


def unnamed_runs(study: Path) -> Iterator[Path]:
    """Yield the folders that hold rows but no `run.json`, so that their run is unknown."""
    yield from (rows.parent for rows in sorted(study.glob(f"*/{ROWS}")) if not has_begun(rows.parent))


def each_readable(runs: Iterable[Path], read: Callable[[Path], _Content]) -> list[_Content]:
    """Return what `read` returns for each run's folder, without damaged runs, which are named (see `leave_out`).

    Raises:
      UserError: every run is damaged.
    """
    errors: list[UserError] = []
    contents = list(readable(runs, read, errors))
    name_damaged(errors, some=bool(contents))
    return contents


def readable(runs: Iterable[Path], read: Callable[[Path], _Content], errors: list[UserError]) -> Iterator[_Content]:
    """Yield what `read` returns for each run's folder; `errors` takes those of damaged runs."""
    for run in runs:
        try:
            yield read(run)
        except UserError as error:
            errors.append(error)


def name_damaged(errors: Sequence[UserError], some: bool) -> None:
    """Name damaged runs (see `leave_out`).

    Args:
      some: True if there are others.

    Raises:
      UserError: every run is damaged.
    """
    if errors and not some:
        raise errors[0]
    for damage in errors:
        leave_out(damage)


def check_problems(problems: Iterable[str], known: Iterable[str], study: str) -> None:
    """Check that a study has runs of these problems; `known` are those that it has.

    Raises:
      UserError: it has not.
    """
    for problem in set(problems) - set(known):
        raise UserError(f"there is no problem {problem!r} in study {study!r}.{did_you_mean(problem, known)}")
