"""A study compared with the digests of a published one: are the runs that are in both the same?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..store.digests import RunDigest
from ..store.folders import run_folders
from ..store.plan import RunName
from ..store.stored_run import open_run


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
      published: digests by run (see `store.digests.read_digests`).
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
    elif not run.is_complete(len(run.rows)):
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
