"""The suite from Python: `bbo_suite.problem(id)`, `bbo_suite.run(...)`, `bbo_suite.load(study)`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from . import frames, options
from .errors import UserError
from .interrupt import StopFile
from .problem_base import Problem
from .registry import Registry
from .store import LOCK, folder_name
from .study import Outcome, Study, default_jobs, perform

load = frames.load


def problem(problem_id: str, plugins: Sequence[str | Path] = ()) -> Problem:
    """Return the problem `family/instance`, or `family:path` for a file of yours.

    Raises:
      UserError: there is none of that id.
    """
    return Registry(tuple(map(Path, plugins))).problem(problem_id)


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
    quiet: bool = True,
) -> list[dict[str, Any]]:
    """Run every strategy on every problem and return one summary a run (see `frames.summarise`).

    The same call again resumes what is unfinished and never overwrites.

    Args:
      option_texts: options of strategies, `key` for all that have it or `strategy.key` for one, as text.
      study: the name of the folder in `results`; made of the settings when left out.
      jobs: runs at a time, a process each; as many as cores when left out.
      quiet: show no progress on standard error.

    Raises:
      UserError: a mistake in the arguments, or a run that failed; the others are stored.
    """
    registry = Registry(tuple(map(Path, plugins)))
    names = (strategies,) if isinstance(strategies, str) else tuple(dict.fromkeys(strategies))
    ids = (problems,) if isinstance(problems, str) else tuple(dict.fromkeys(problems))
    chosen = chosen_options(registry, names, option_texts or {})
    name = study or default_name(names, ids, chosen, budget, batch, seed)
    made = Study(name, Path(results), registry, ids, chosen, repeats, seed, budget, batch, keep_all)
    report = perform_study(made, jobs, quiet)
    if report.errors:
        raise UserError("; ".join(report.errors))
    return report.summaries


@dataclass(frozen=True)
class Report:
    """What came of a study: a summary of every run that has rows, one sentence per failure, and whether it was cut."""

    summaries: list[dict[str, Any]]
    errors: list[str]
    stopped: bool


def perform_study(study: Study, jobs: int | None, quiet: bool) -> Report:
    """Do all that is left of a study.

    Raises:
      UserError: the plan is wrong, or another process is at this study.
    """
    from .progress import preparing, shown

    if jobs is not None and jobs < 1:
        raise UserError(f"jobs must be 1 or more, not {jobs}")
    with StopFile() as stop, _alone(study):
        with preparing(study.problems, quiet):
            plan = study.prepare()
        with shown(plan, quiet):
            outcomes = list(perform(study, plan, jobs or default_jobs(len(plan)), stop.path))
        stopped = stop.stopped
    order = {planned.path: place for place, planned in enumerate(plan)}
    outcomes.sort(key=lambda outcome: order[outcome.path])
    return Report(list(_summaries(outcomes)), [o.error for o in outcomes if o.error], stopped)


def _summaries(outcomes: Sequence[Outcome]) -> Iterator[dict[str, Any]]:
    return (frames.summarise(outcome.path) for outcome in outcomes if not outcome.error)


@contextmanager
def _alone(study: Study) -> Iterator[None]:
    """Keep a second process from the same study while this one writes it."""
    study.claim()
    try:
        with FileLock(study.path / LOCK, timeout=0):
            yield
    except Timeout:
        raise UserError(
            f"another process is writing study {study.name!r}; wait for it or choose another --study"
        ) from None


def chosen_options(registry: Registry, strategies: Sequence[str], texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of each strategy by id.

    Raises:
      UserError: an option that no chosen strategy has, or a wrong value.
    """
    classes = {name: registry.strategy(name) for name in strategies}
    chosen = {}
    for name, strategy in classes.items():
        known = {option["name"] for option in options.describe(strategy.Options)}
        own = {key.removeprefix(f"{name}."): text for key, text in texts.items() if key.startswith(f"{name}.")}
        shared = {key: text for key, text in texts.items() if "." not in key and (key in known or len(classes) == 1)}
        chosen[name] = options.parse(strategy.Options, shared | own, f"strategy {name}")
    for key in texts:
        owner, _, rest = key.rpartition(".")
        if owner and owner not in classes:
            raise UserError(f"option {key!r} is for strategy {owner!r}, which is not run; add --strategy {owner}")
        if not owner and not any(rest in asdict(made) for made in chosen.values()):
            raise UserError(f"none of the strategies {', '.join(classes)} has an option {key!r}; see `show STRATEGY`")
    return chosen


def default_name(
    strategies: Sequence[str], problems: Sequence[str], chosen: Mapping[str, Any], budget: int, batch: int, seed: int
) -> str:
    """Return a study name that the settings determine, so that the same command finds its study again."""
    settings = [list(problems), {name: asdict(made) for name, made in chosen.items()}, budget, batch, seed]
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:6]
    words = [problems[0] if len(problems) == 1 else f"{len(problems)}-problems"]
    words.append("-".join(strategies) if len(strategies) <= 4 else f"{len(strategies)}-strategies")
    return folder_name("-".join(words).replace("/", "-").replace(":", "-")[:80]) + f"-{digest}"
