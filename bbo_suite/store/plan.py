"""Which runs a study is made of: their list in its folder, for whoever watches it, and shares of it."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ..files import folder_name

STUDY, PLANNED = "study.json", "planned.jsonl"


class RunName(NamedTuple):
    """What tells a run from the others of its study."""

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
        return f"{self.strategy} on {self.problem}, seed {self.seed}"


def together(runs: Iterable[RunName]) -> list[str]:
    """Return runs in words, those of one strategy on one problem in one: `mbo on fusion/rnn (10 repeats)`."""
    groups: dict[str, list[RunName]] = defaultdict(list)
    for run in runs:
        groups[f"{run.strategy} on {run.problem}"].append(run)
    return [own[0].label if len(own) == 1 else f"{name} ({len(own):,} repeats)" for name, own in groups.items()]


def share(runs: Sequence[RunName], number: int, shares: int) -> list[RunName]:
    """Return share `number` of `shares`, counted from 1: disjoint, complete, and as many of each strategy in all.

    Strategies differ most in cost, so each is dealt out evenly; by a hash, because every tenth of a list in order is
    one problem's or one seed's.
    """
    order = sorted(runs, key=lambda run: (run.strategy, hashlib.sha256(run.folder.encode()).digest()))
    mine = set(order[number - 1 :: shares])
    return [run for run in runs if run in mine]


def read_planned(study: Path) -> list[RunName]:
    """Return the runs that a study's folder lists, without a line that is still being written."""
    return _parsed(_content(study))


def add_planned(study: Path, runs: Iterable[RunName]) -> None:
    """Append the runs that are not listed yet; the caller sees to it that nobody else does so meanwhile."""
    content = _content(study)
    known = set(_parsed(content))
    new = "".join(f"{json.dumps(run._asdict())}\n" for run in runs if run not in known)
    if new:
        with (study / PLANNED).open("ab") as file:
            file.truncate(content.rfind(b"\n") + 1)  # the torn end of a line that a crash cut
            file.write(new.encode())


def _content(study: Path) -> bytes:
    file = study / PLANNED
    return file.read_bytes() if file.exists() else b""


def _parsed(content: bytes) -> list[RunName]:
    runs = []
    for line in content[: content.rfind(b"\n") + 1].splitlines():
        try:
            runs.append(RunName(**json.loads(line)))
        except (ValueError, TypeError):  # someone else's line: the list serves people who watch, no result needs it
            continue
    return runs
