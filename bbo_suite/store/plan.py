"""The runs that a study consists of: their list in its folder, for commands that watch it, and shares of it."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..files.log import CheckedLog
from ..files.names import folder_name, printable
from ..files.reading import DamagedFile, parse_json, read_json
from .folders import PLANNED, STUDY, runs_in
from .identity import IMPORTED, is_count, stored_head


class RunName(NamedTuple):
    """What distinguishes a run from the others of its study."""

    problem: str
    strategy: str
    seed: int

    @property
    def folder(self) -> str:
        """The name of the run's folder."""
        return folder_name(self.problem, self.strategy, str(self.seed))

    @property
    def label(self) -> str:
        """The run in words."""
        return printable(f"{self.strategy} on {self.problem}, seed {self.seed}")


def together(runs: Iterable[RunName]) -> list[str]:
    """Return runs in words, the repeats of a strategy on a problem as one: `mbo on fusion/rnn (10 repeats)`."""
    groups: dict[str, list[RunName]] = defaultdict(list)
    for run in runs:
        groups[printable(f"{run.strategy} on {run.problem}")].append(run)
    return [own[0].label if len(own) == 1 else f"{name} ({len(own):,} repeats)" for name, own in groups.items()]


def share(runs: Sequence[RunName], number: int, shares: int) -> list[RunName]:
    """Return share `number` of `shares`, counted from 1; shares are disjoint, and together they are all runs.

    Strategies differ most in cost, so the runs of each are spread evenly over the shares. They are ordered by a hash,
    because every tenth run of the plan has the same problem or the same seed.
    """
    order = sorted(runs, key=lambda run: (run.strategy, hashlib.sha256(run.folder.encode()).digest()))
    mine = set(order[number - 1 :: shares])
    return [run for run in runs if run in mine]


def read_settings(study: Path) -> dict[str, Any]:
    """Return what all runs of a study share: `study.json`, or if it is missing or damaged, what a run of it says.

    It is empty if there is no such run either.

    Raises:
      UserError: a file cannot be read.
    """
    if settings := stored_settings(study):
        return settings
    heads = (stored_head(path) or {IMPORTED: {}} for path in runs_in(study))
    head = next((head for head in heads if IMPORTED not in head), {})
    return {"format": 1, "budget": head.get("budget"), "batch": head.get("batch")} if head else {}


def stored_settings(study: Path) -> dict[str, Any]:
    """Return the content of `study.json`; empty if it is missing or damaged."""
    try:
        settings = read_json(study / STUDY) if (study / STUDY).exists() else {}
    except DamagedFile:
        return {}
    return settings if is_count(settings.get("budget")) and is_count(settings.get("batch")) else {}


def read_planned(study: Path) -> list[RunName]:
    """Return the runs listed in a study's folder, without a line that is still being written."""
    return [run for run in _log(study) if run]


def add_planned(study: Path, runs: Iterable[RunName]) -> None:
    """Append the runs that are not listed yet; the caller holds a lock against other writers."""
    log = _log(study)
    known = set(log)
    new = [f"{json.dumps(run._asdict())}\n" for run in runs if run not in known]
    if new:
        log.append(new)


def _log(study: Path) -> CheckedLog[RunName | None]:
    return CheckedLog(study / PLANNED, parse=_parsed, checksums=False)


def _parsed(line: str) -> RunName | None:
    """Return the run on a line; None on a foreign line: no result depends on the list."""
    try:
        run = RunName(**parse_json(line))
    except (ValueError, TypeError):
        return None
    texts = isinstance(run.problem, str) and isinstance(run.strategy, str)
    return run if texts and is_count(run.seed, least=0) else None
