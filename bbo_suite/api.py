"""The suite from Python: `bbo_suite.problem(id)`, `bbo_suite.run(...)`, `bbo_suite.load(study)`."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from . import frames, options
from .errors import UserError, did_you_mean
from .files import disk_errors
from .interrupt import StopFile
from .problem_base import Problem
from .registry import Registry
from .store import LOCK
from .study import Outcome, PlannedRun, Study, default_jobs, perform

load = frames.load


def problem(problem_id: str, plugins: Sequence[str | Path] = ()) -> Problem:
    """Return the problem `family/instance`, or `family:path` for a file of yours.

    Raises:
      UserError: there is none of that id.
    """
    return _registry(plugins).problem(problem_id)


def _registry(plugins: Sequence[str | Path]) -> Registry:
    return Registry(tuple(Path(path).absolute() for path in plugins))  # the caller or a worker may change directory


def run(
    strategies: str | Sequence[str],
    problems: str | Sequence[str],
    *,
    budget: int = 10_000,
    repeats: int = 1,
    seed: int = 0,
    batch: int = 100,
    jobs: int | None = None,
    study: str | None = None,
    results: str | Path = "results",
    plugins: Sequence[str | Path] = (),
    option_texts: Mapping[str, str] | None = None,
    keep_all: bool = False,
    workers: int = 1,
    max_seconds: float | None = None,
    cluster: str | None = None,
    quiet: bool = True,
) -> list[dict[str, Any]]:
    """Run every strategy on every problem and return one summary a run (see `frames.summarise`).

    The same call again resumes what is unfinished and never overwrites. Ctrl-C finishes the batch, stores it and then
    raises `KeyboardInterrupt`.

    Args:
      option_texts: options of strategies, `key` for all that have it or `strategy.key` for one, as text.
      study: the name of the folder in `results`; made of the settings when left out.
      workers: processes for each run whose problem has a live compiler; no result depends on it.
      max_seconds: ends a run, beside the budget, once its evaluations and its strategy have taken so long.
      jobs: runs at a time, a process each; as many as cores when left out.
      cluster: the address of a Dask scheduler whose workers do the runs; they must see `results`.
      quiet: show no progress on standard error.

    Raises:
      UserError: a mistake in the arguments, or a run that failed; the others are stored.
    """
    registry = _registry(plugins)
    names, ids = _ids(strategies, "strategy"), _ids(problems, "problem")
    chosen = chosen_options(registry, names, option_texts or {})
    name = default_name(names, ids, chosen, budget, batch, seed) if study is None else study
    where = Path(results).absolute()
    made = Study(name, where, registry, ids, chosen, repeats, seed, budget, batch, keep_all, workers, max_seconds)
    report = perform_study(made, jobs, quiet, cluster)
    if report.errors:
        raise UserError("; ".join(report.errors))
    if report.stopped:
        raise KeyboardInterrupt
    return report.summaries


def _ids(given: str | Sequence[str], word: str) -> tuple[str, ...]:
    ids = (given,) if isinstance(given, str) else tuple(dict.fromkeys(given))
    if not ids:
        raise UserError(f"no {word} is named; give at least one id")
    return ids


@dataclass(frozen=True)
class Report:
    """What came of a study: a summary of every run that did not fail, a sentence for each that did, and was it cut?"""

    summaries: list[dict[str, Any]]
    errors: list[str]
    stopped: bool


def perform_study(study: Study, jobs: int | None, quiet: bool, cluster: str | None = None) -> Report:
    """Do all that is left of a study.

    Raises:
      UserError: the plan is wrong, or another process is at this study.
    """
    from .progress import preparing, shown

    if jobs is not None and jobs < 1:
        raise UserError(f"jobs must be 1 or more, not {jobs}")
    if cluster is not None:
        _check_cluster(cluster, jobs)
    with _alone(study), StopFile(study.path if cluster else None) as stop:
        with preparing(study.problems, quiet):
            plan = study.prepare()
        study.announce()
        with shown(plan, quiet) as ended:
            outcomes = list(_told(_performed(study, plan, jobs, stop.path, cluster), ended))
        stopped = stop.stopped
    order = {planned.path: place for place, planned in enumerate(plan)}
    outcomes.sort(key=lambda outcome: order[outcome.path])
    summaries = [outcome.summary for outcome in outcomes if outcome.summary]
    return Report(summaries, [outcome.error for outcome in outcomes if outcome.error], stopped)


def _check_cluster(address: str, jobs: int | None) -> None:
    from .cluster import check_address

    if jobs is not None:
        raise UserError("jobs is for this machine; a cluster does as many runs at a time as it has workers")
    check_address(address)


def _performed(
    study: Study, plan: list[PlannedRun], jobs: int | None, stop: Path, cluster: str | None
) -> Iterator[Outcome]:
    if cluster is None:
        return perform(study, plan, jobs or default_jobs(len(plan)), stop)
    from .cluster import perform_on

    return perform_on(cluster, study, plan, stop)


def _told(outcomes: Iterable[Outcome], ended: Callable[[Path], None]) -> Iterator[Outcome]:
    for outcome in outcomes:
        ended(outcome.path)
        yield outcome


@contextmanager
def _alone(study: Study) -> Iterator[None]:
    """Keep a second process from the same study, or the same share of it, while this one writes it."""
    study.claim()
    name = LOCK if study.only is None else f"{LOCK}-{study.only[0]}-of-{study.only[1]}"
    lock = FileLock(study.path / name, timeout=0)
    with disk_errors(study.path):
        try:
            lock.acquire()
        except Timeout:  # before disk_errors sees it: to filelock it is an OSError
            what = "" if study.only is None else f"share {study.only[0]}/{study.only[1]} of "
            advice = "wait for it or choose another --study"
            raise UserError(f"another process is writing {what}study {study.name!r}; {advice}") from None
    try:
        yield
    finally:
        lock.release()


def chosen_options(registry: Registry, strategies: Sequence[str], texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of each strategy by id.

    Raises:
      UserError: an option that no chosen strategy has, or a wrong value.
    """
    classes = {name: registry.strategy(name) for name in strategies}
    chosen = {}
    for name, strategy in classes.items():
        known = {option["name"] for option in options.describe(strategy.Options)}
        own = {key.rpartition(".")[2]: text for key, text in texts.items() if key.rpartition(".")[0] == name}
        shared = {key: text for key, text in texts.items() if "." not in key and (key in known or len(classes) == 1)}
        chosen[name] = options.parse(strategy.Options, shared | own, f"strategy {name}")
    _check_owners(texts, chosen)
    return chosen


def _check_owners(texts: Iterable[str], chosen: Mapping[str, Any]) -> None:
    known = {option for made in chosen.values() for option in asdict(made)}
    for key in texts:
        owner, _, option = key.rpartition(".")
        if owner and owner not in chosen:
            run = ", ".join(chosen)
            raise UserError(f"option {key!r} is for strategy {owner!r}, which is not among those that run: {run}")
        if not owner and option not in known:
            hint = did_you_mean(key, known)
            raise UserError(f"none of the strategies {', '.join(chosen)} has an option {key!r}.{hint}")


def default_name(
    strategies: Sequence[str], problems: Sequence[str], chosen: Mapping[str, Any], budget: int, batch: int, seed: int
) -> str:
    """Return a study name that the settings determine, so that the same command finds its study again."""
    strategies, problems = sorted(strategies), sorted(problems)
    settings = [problems, {name: asdict(made) for name, made in chosen.items()}, budget, batch, seed]
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:6]
    words = [problems[0] if len(problems) == 1 else f"{len(problems)}-problems"]
    words.append("-".join(strategies) if len(strategies) <= 4 else f"{len(strategies)}-strategies")
    return f"{re.sub(r'[^A-Za-z0-9.+]+', '-', '-'.join(words)).strip('-.')[:80]}-{digest}".strip("-")
