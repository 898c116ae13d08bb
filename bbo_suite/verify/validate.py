"""Validation of a study: its logs are checked, its strategies replayed and its best candidates measured again."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from ..core.problem import Problem
from ..errors import UserError
from ..registry import Registry
from ..store.folders import has_begun, run_folders, unnamed_runs
from ..store.plan import RunName, read_planned
from ..store.stored_run import StoredRun, open_run
from .checks import check_log, check_parts, check_values, remarks_on, replay
from .remeasure import fresh


class Finding(StrEnum):
    """The outcome of one check."""

    HOLDS = "holds"
    BROKEN = "does NOT hold"
    UNCHECKED = "not checked"


@dataclass
class Verdict:
    """The findings on one run.

    Attributes:
      name: of its folder.
      run: None if it cannot be read.
      rows: their number; None if it cannot be read, or is not there.
      log, replayed, values: the outcome for the files, the replay of the strategy, and the costs measured again.
      complaints: a sentence for each failed check.
      remarks: what was not checked and why, and other notes.
    """

    name: str
    run: RunName | None = None
    rows: int | None = None
    log: Finding = Finding.UNCHECKED
    replayed: Finding = Finding.UNCHECKED
    values: Finding = Finding.UNCHECKED
    complaints: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def label(self) -> str:
        """The run in words."""
        return self.run.label if self.run else self.name

    @property
    def absent(self) -> bool:
        """True if the run is expected but missing."""
        return self.run is not None and self.rows is None

    @property
    def unchecked(self) -> bool:
        """True if a check was left out and nothing wrong was found."""
        return not self.complaints and Finding.UNCHECKED in (self.log, self.replayed, self.values)

    def facts(self) -> dict[str, Any]:
        """Return the verdict as plain data; problem, strategy and seed are null if the run cannot be read."""
        run = self.run or (None, None, None)
        checks = {"log": self.log, "proposals": self.replayed, "values": self.values}
        words = {"complaints": self.complaints, "remarks": self.remarks}
        return {
            "folder": self.name,
            **dict(zip(RunName._fields, run, strict=True)),
            "rows": self.rows,
            **checks,
            **words,
        }

    def judge(self, found: list[str]) -> Finding:
        """Keep complaints and return the outcome."""
        self.complaints += [sentence for sentence in found if sentence not in self.complaints]
        return Finding.BROKEN if found else Finding.HOLDS


def validate(
    registry: Registry, study: str, results: Path | str, sample: int, show: Callable[[int, str], None]
) -> Iterator[Verdict]:
    """Yield the findings on each run, then on runs that are missing.

    Args:
      sample: number of rows of each run, from the first on, that are replayed and evaluated again; as many of the
        later improvements are evaluated again too.
      show: called with the number of runs so far and a few words.

    Raises:
      UserError: there is no such study, or the sample is negative.
    """
    if sample < 0:
        raise UserError(f"sample must be 0 or more, not {sample}")
    folders = run_folders(study, results)
    problems: dict[tuple[str, str], Problem | UserError] = {}
    verdicts = []
    for number, folder in enumerate(folders):
        show(number, folder.name)
        verdicts.append(_of_run(registry, folder, sample, problems))
        yield verdicts[-1]
    yield from _leftovers(folders[0].parent)
    yield from _missing([verdict.run for verdict in verdicts if verdict.run], folders[0].parent)


def _of_run(
    registry: Registry, folder: Path, sample: int, problems: dict[tuple[str, str], Problem | UserError]
) -> Verdict:
    verdict = Verdict(folder.name)
    try:
        run = open_run(folder)
        verdict.run, verdict.rows = run.name, len(run.rows)
        wrong = check_log(run)
    except UserError as error:
        verdict.log = verdict.judge([str(error)])
        return verdict
    verdict.remarks += remarks_on(run)
    problem = _problem(registry, run, problems)
    verdict.log = verdict.judge(wrong + check_parts(run, None if isinstance(problem, UserError) else problem))
    if isinstance(problem, UserError):
        verdict.remarks.append(f"neither values nor proposals can be checked: {problem}")
        return verdict
    _against_problem(registry, problem, run, sample, verdict)
    return verdict


def _problem(
    registry: Registry, run: StoredRun, known: dict[tuple[str, str], Problem | UserError]
) -> Problem | UserError:
    key = (run.identity.problem, run.identity.fingerprint)
    if key not in known:
        for other in [other for other in known if other[0] != run.identity.problem]:
            del known[other]  # only one problem is kept: runs are sorted by problem
        try:
            known[key] = fresh(registry, *key)
        except UserError as error:
            known[key] = error
    return known[key]


def _against_problem(registry: Registry, problem: Problem, run: StoredRun, sample: int, verdict: Verdict) -> None:
    from threadpoolctl import threadpool_limits

    proposed = problem.space.sample(0, run.identity.generator())
    try:
        strategy = None if run.source else registry.strategy(run.identity.strategy)
    except UserError as error:
        strategy = None
        verdict.remarks.append(f"proposals cannot be checked: {error}")
    if strategy is not None:
        try:
            with threadpool_limits(1):
                proposed = replay(run, problem, strategy, sample, registry)
            verdict.replayed = Finding.HOLDS
        except UserError as error:
            verdict.replayed = verdict.judge([str(error)])
    if run.best is not None and not run.best.config:
        verdict.remarks.append("values cannot be checked: the best candidate was not stored")
        return
    verdict.values = verdict.judge(check_values(run, problem, proposed, sample, verdict.remarks))


def _leftovers(study: Path) -> Iterator[Verdict]:
    for path in unnamed_runs(study):
        verdict = Verdict(path.name)
        verdict.log = verdict.judge(["it has rows but no run.json, so their run is unknown"])
        yield verdict


def _missing(runs: list[RunName], study: Path) -> Iterator[Verdict]:
    """Yield missing runs of the plan, or without a plan, of every strategy on every problem with every seed."""
    axes = [sorted(set(values)) for values in zip(*runs, strict=True)]
    for expected in read_planned(study) or itertools.starmap(RunName, itertools.product(*axes)):
        if not has_begun(study / expected.folder):
            yield Verdict(expected.folder, expected, remarks=["there is no such run"])
