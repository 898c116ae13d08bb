"""Digests of runs: they show, without the rows, whether a repeated run has the same candidates, values and statuses.

A table of digests is a CSV file with one line per run. Seconds do not count: they differ from machine to machine.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

from ..errors import UserError
from ..store.folders import run_folders
from ..store.plan import RunName
from ..store.stored_run import StoredRun, open_run


class RunDigest(NamedTuple):
    """One line of a table.

    Attributes:
      problem, strategy, seed: of the run.
      evaluations: the number of its rows.
      best: the lowest value; inf if nothing succeeded.
      digest: 16 hexadecimal digits, of the run's identity and the digest, value and status of each row.
    """

    problem: str
    strategy: str
    seed: int
    evaluations: int
    best: float
    digest: str

    @property
    def name(self) -> RunName:
        """What distinguishes the run from the others of its study."""
        return RunName(self.problem, self.strategy, self.seed)

    @classmethod
    def of(cls, run: StoredRun) -> Self:
        """Return the digest of a stored run.

        Raises:
          UserError: its log is damaged.
        """
        content = hashlib.blake2b(json.dumps(run.identity.identity(), sort_keys=True).encode(), digest_size=8)
        for row in run.each_row():
            content.update(f"\n{row.digest},{row.value!r},{row.status.word}".encode())
        return cls(*run.name, run.count, run.best.value if run.best else math.inf, content.hexdigest())


def write_digests(file: Path, digests: Iterable[RunDigest]) -> None:
    """Write a table of digests."""
    with file.open("w", encoding="utf-8", errors="surrogateescape", newline="") as table:
        writer = csv.writer(table, lineterminator="\n")
        writer.writerow(RunDigest._fields)
        writer.writerows(digests)


def read_digests(file: Path) -> dict[RunName, RunDigest]:
    """Return a table of digests by run.

    Raises:
      UserError: the file cannot be read, or is not such a table.
    """
    try:
        with file.open(encoding="utf-8", errors="surrogateescape", newline="") as table:
            reader = csv.reader(table, strict=True)
            if tuple(next(reader, ())) != RunDigest._fields:
                raise UserError(f"{file} is not a table of digests; `export STUDY --to digests` writes one")
            return {digest.name: digest for digest in (_parsed(file, reader.line_num, cells) for cells in reader)}
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from None
    except csv.Error as error:
        raise UserError(f"{file} is damaged ({error}); restore it") from None


def _parsed(file: Path, line: int, cells: list[str]) -> RunDigest:
    try:
        problem, strategy, seed, evaluations, best, digest = cells
        return RunDigest(problem, strategy, int(seed), int(evaluations), float(best), digest)
    except ValueError:
        raise UserError(f"{file}, line {line} is damaged; restore the file") from None


@dataclass
class Comparison:
    """The runs of a study beside the published ones.

    Attributes:
      same: complete runs with the published digest.
      different: complete runs with another digest, each with a sentence.
      unfinished: published runs that are here, but not complete, and so not compared.
      missing: published runs that are not here.
      extra: runs here that are not published.
      damaged: a sentence for each run that cannot be read.
    """

    same: list[RunName] = field(default_factory=list)
    different: dict[RunName, str] = field(default_factory=dict)
    unfinished: list[RunName] = field(default_factory=list)
    missing: list[RunName] = field(default_factory=list)
    extra: list[RunName] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)

    def facts(self) -> dict[str, Any]:
        """Return the comparison as plain data, in which a run is an object."""
        different = [{**run._asdict(), "sentence": sentence} for run, sentence in self.different.items()]
        lists = {"same": self.same, "unfinished": self.unfinished, "missing": self.missing, "extra": self.extra}
        runs = {name: [run._asdict() for run in found] for name, found in lists.items()}
        return {**runs, "different": different, "damaged": self.damaged, "holds": self.holds}

    @property
    def compared(self) -> int:
        """The number of runs that were compared."""
        return len(self.same) + len(self.different)

    @property
    def holds(self) -> bool:
        """True if some runs were compared, all of them are the same, and no run is damaged."""
        return bool(self.same) and not self.different and not self.damaged


def compare(
    study: str, results: Path | str, published: Mapping[RunName, RunDigest], show: Callable[[int, str], None]
) -> Comparison:
    """Return how the runs of a study compare with published ones.

    Args:
      published: digests by run (see `read_digests`).
      show: called with the number of runs so far and a few words.

    Raises:
      UserError: there is no such study.
    """
    found, seen = Comparison(), set[RunName]()
    for number, folder in enumerate(run_folders(study, results)):
        show(number, folder.name)
        try:
            seen.add(_compare(folder, published, found))
        except UserError as error:
            found.damaged.append(str(error))
    found.missing = [name for name in published if name not in seen]
    return found


def _compare(folder: Path, published: Mapping[RunName, RunDigest], found: Comparison) -> RunName:
    """Sort one run into a comparison and return its name."""
    run = open_run(folder)
    if (there := published.get(run.name)) is None:
        found.extra.append(run.name)
    elif not run.is_complete(run.count):
        found.unfinished.append(run.name)
    elif (here := RunDigest.of(run)) != there:
        found.different[run.name] = _difference(here, there)
    else:
        found.same.append(run.name)
    return run.name


def _difference(here: RunDigest, there: RunDigest) -> str:
    for what, own, other in (("evaluations", here.evaluations, there.evaluations), ("best", here.best, there.best)):
        if own != other:
            return f"it differs from the published run: {what} {own!r}, published {other!r}"
    return "it differs from the published run in its options, its problem or some rows, not in the best value"
