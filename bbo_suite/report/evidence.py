"""A study's folder, read as it is: damaged, unfinished and empty runs are noted and the others used."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import frames
from ..errors import UserError
from ..files import read_json
from ..identity import RUN
from ..planned import RunName, read_planned
from ..store import END, ERROR, complete
from .naming import Naming
from .record import Record, numbers

if TYPE_CHECKING:
    import pandas as pd

_KEY = ["problem", "strategy", "seed"]
_NEEDED = {*_KEY, "fingerprint", "options", "budget", "batch", "default", "unit", "uses_structure"}
_COLUMNS = ["value", "status", "digest", "reason", "strategy_seconds", "evaluation_seconds"]
_NOTHING: dict[str, Any] = {
    **{"evaluations": 0, "unique": 0, "failures": Counter(), "reasons": Counter(), "noise": np.nan},
    **{"steps": np.empty(0, np.int64), "costs": np.empty(0), "strategy_seconds": 0.0, "evaluation_seconds": 0.0},
}

Heads = dict[Path, dict[str, Any]]


@dataclass(frozen=True)
class Evidence:
    """What a study holds.

    Attributes:
      name: of the study.
      records: its runs, by problem, strategy and seed.
      frame: every evaluation (see `bbo_suite.load`), without digests.
      damaged: a sentence for each run that cannot be read.
      planned, waiting: how many runs the study lists, and those of them that have not begun.
    """

    name: str
    records: list[Record]
    frame: pd.DataFrame
    damaged: list[str]
    planned: int = 0
    waiting: Sequence[RunName] = ()


def read(study: str, results: Path) -> Evidence:
    """Return what a study's folder holds.

    Raises:
      UserError: there is no such study.
    """
    damaged: list[str] = []
    heads = _heads(frames.study_path(study, results).glob(f"*/{RUN}"), damaged)
    frame = _frame(study, results, heads, damaged)
    naming = Naming(list(heads.values()))
    places = frame.groupby(_KEY, observed=True, sort=False).indices
    records = [_record(path, head, naming, frame, places) for path, head in heads.items()]
    records.sort(key=lambda record: (record.problem, record.strategy, record.seed))
    named = naming.applied(frame, places, heads.values()).drop(columns="digest")  # half of its memory, used up by now
    planned = read_planned(results / study)
    waiting = [run for run in planned if not (results / study / run.folder / RUN).exists()]
    return Evidence(study, records, named, damaged, len(planned), waiting)


def _heads(files: Iterable[Path], damaged: list[str]) -> Heads:
    heads: Heads = {}
    seen: dict[tuple, Path] = {}
    for file in sorted(files):
        try:
            head = read_json(file)
            if missing := sorted(_NEEDED - set(head)):
                raise UserError(f"{file} does not say its {', '.join(missing)}; restore it, or delete its folder")
            other = seen.setdefault(tuple(head[name] for name in _KEY), file.parent)
            if other != file.parent:
                raise UserError(f"{file.parent} holds the same run as {other}; delete one of them")
            heads[file.parent] = head
        except UserError as error:
            damaged.append(str(error))
    return heads


def _frame(study: str, results: Path, heads: Heads, damaged: list[str]) -> pd.DataFrame:
    """Return every evaluation; a run whose rows cannot be read is taken from `heads`."""
    try:
        return _load_only(heads) if damaged else frames.load(study, results)
    except UserError:  # it names the first one only
        for path in list(heads):
            try:
                frames.rows(path)
            except UserError as error:
                damaged.append(str(error))
                del heads[path]
        return _load_only(heads)


def _load_only(heads: Heads) -> pd.DataFrame:
    import pandas as pd

    if not heads:
        return pd.DataFrame(columns=[*_KEY, *_COLUMNS])
    with tempfile.TemporaryDirectory() as folder:
        links = Path(folder) / "sound"
        links.mkdir()
        for number, path in enumerate(heads):
            (links / str(number)).symlink_to(path.resolve(), target_is_directory=True)
        return frames.load(links.name, folder)


def _record(path: Path, head: dict[str, Any], naming: Naming, frame: pd.DataFrame, places: dict) -> Record:
    rows = places.get(tuple(head[name] for name in _KEY))
    counted = _NOTHING if rows is None else numbers(frame[_COLUMNS].iloc[rows])
    error = (path / ERROR).read_text(encoding="utf-8", errors="replace") if (path / ERROR).exists() else ""
    last = error.strip().splitlines()[-1] if error.strip() else ""
    ended = _ended(path, counted["evaluations"])
    return Record(naming.problem(head), naming.strategy(head), head, ended, last, **counted)


def _ended(path: Path, evaluations: int) -> str:
    """Return why a run ended, nothing if it has not, or if that cannot be read."""
    try:
        return str(read_json(path / END).get("reason", "")) if complete(path, evaluations) else ""
    except UserError:
        return ""
