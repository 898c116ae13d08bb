"""Run a study: lock its folder, prepare the plan, run what is left, and collect the outcomes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..files.writing import acquired, disk_errors
from ..store.folders import LOCK, mark_stopped
from ..store.identity import UNVERSIONED
from .interrupt import StopFile
from .processes import Outcome, default_jobs, one_at_a_time, run_all
from .study_plan import PlannedRun, StudyPlan, timed_problems


class Display:
    """Shows nothing; a subclass shows something."""

    @contextmanager
    def preparing(self, problems: Sequence[str]) -> Iterator[None]:
        """Show, until the block ends, that these problems are loaded and their defaults evaluated."""
        yield

    @contextmanager
    def running(self, plan: Sequence[PlannedRun]) -> Iterator[Callable[[Path], None]]:
        """Show the progress of the runs until the block ends.

        Yields a function to be called with the folder of each run that has finished: files do not show that a run
        failed.
        """
        yield lambda path: None


@dataclass(frozen=True)
class StudyOutcome:
    """The outcome of a study.

    Attributes:
      summaries: of the runs that did not fail.
      errors: one sentence for each run that failed; equal ones once.
      stopped: True if Ctrl-C stopped the study.
    """

    summaries: list[dict[str, Any]]
    errors: list[str]
    stopped: bool


def run_study(study: StudyPlan, jobs: int | None, display: Display, cluster: str | None = None) -> StudyOutcome:
    """Run all that is left of a study.

    Raises:
      UserError: the plan is wrong, or another process is writing this study.
    """
    if jobs is not None and jobs < 1:
        raise UserError(f"jobs must be 1 or more, not {jobs}")
    if cluster is not None:
        _check_cluster(cluster, jobs)
    study.check_folder()
    exists = study.path.exists()
    with ExitStack() as alone:
        if exists:  # else nothing is written before the plan is valid: a study that cannot start leaves no folder
            alone.enter_context(_alone(study))
        with display.preparing(study.problems):
            plan = study.prepare()
        if not exists:
            alone.enter_context(_alone(study))
        stop = alone.enter_context(StopFile(study.path / f".stop{_share(study)}" if cluster else None))
        study.announce()
        for why in sorted({planned.facts[UNVERSIONED] for planned in plan if UNVERSIONED in planned.facts}):
            print(f"this study cannot be resumed, because {why}", file=sys.stderr)
        if jobs is None and cluster is None and len(plan) > 1 and (timed := timed_problems(plan)):
            print(one_at_a_time(timed), file=sys.stderr)
        try:
            with display.running(plan) as ended:
                outcomes = list(_shown(_outcomes(study, plan, jobs, stop.path, cluster), ended))
        finally:
            stopped = stop.stopped
            for planned in plan if stopped else ():
                mark_stopped(planned.path)
    order = {planned.path: place for place, planned in enumerate(plan)}
    outcomes.sort(key=lambda outcome: order[outcome.path])
    summaries = [outcome.summary for outcome in outcomes if outcome.summary]
    errors = dict.fromkeys(outcome.error for outcome in outcomes if outcome.error)  # a study that is gone: one sentence
    return StudyOutcome(summaries, list(errors), stopped)


def _check_cluster(address: str, jobs: int | None) -> None:
    from .cluster import check_address

    if jobs is not None:
        raise UserError("jobs applies to this machine only; a cluster executes one run per worker at a time")
    check_address(address)


def _outcomes(
    study: StudyPlan, plan: list[PlannedRun], jobs: int | None, stop: Path, cluster: str | None
) -> Iterator[Outcome]:
    if cluster is None:
        return run_all(study, plan, jobs or default_jobs(len(plan), timed_problems(plan)), stop)
    from .cluster import run_on_cluster

    return run_on_cluster(cluster, study, plan, stop)


def _shown(outcomes: Iterable[Outcome], ended: Callable[[Path], None]) -> Iterator[Outcome]:
    for outcome in outcomes:
        ended(outcome.path)
        yield outcome


def _share(study: StudyPlan) -> str:
    """Return how files of this share of a study end; nothing for the whole study."""
    return "" if study.only is None else f"-{study.only[0]}-of-{study.only[1]}"


@contextmanager
def _alone(study: StudyPlan) -> Iterator[None]:
    """Prevent other processes from writing the same study, or the same share of it, inside the block."""
    study.claim()
    share = "" if study.only is None else f"share {study.only[0]}/{study.only[1]} of "
    with disk_errors(study.path):
        held = acquired(study.path / f"{LOCK}{_share(study)}", f"{share}study {study.name!r}")
    with held:
        yield
