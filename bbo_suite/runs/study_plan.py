"""The plan of a study: problems x strategies x seeds under one budget; its name, and the options of its strategies."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import os
import platform
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ..core import options
from ..core.evaluation import default_value, told, working_baselines
from ..core.level import LEVEL
from ..core.options import identifying
from ..core.problem import Problem
from ..core.quantities import LARGEST
from ..errors import UserError, did_you_mean
from ..files.writing import acquired, disk_errors, write_json
from ..registry import Registry, code_facts
from ..store.folders import STUDY, has_begun
from ..store.identity import (
    BASELINES,
    BOUND,
    CODE,
    NOISY,
    PUBLISHED_IN,
    UNVERSIONED,
    Run,
    check_contents,
    check_identity,
)
from ..store.plan import RunName, add_planned, read_settings, share, stored_settings

CLAIM_LOCK, CLAIM_SECONDS = ".claim.lock", 60
LONGEST = 255
"""Bytes of a folder's name, on nearly all file systems."""
_MOST_RUNS = 1_000_000
_PACKAGES = ("bbo_suite", "numpy", "scipy", "scikit-learn", "numba", "jax")


@dataclass(frozen=True)
class PlannedRun:
    """A run, its folder, and the facts that are stored beside its identity when it starts.

    Attributes:
      timed: whether the costs of its problem are times.
    """

    run: Run
    path: Path
    facts: dict[str, Any]
    timed: bool = False

    @property
    def name(self) -> RunName:
        """The name of the run within its study."""
        return RunName(self.run.problem, self.run.strategy, self.run.seed)


@dataclass(frozen=True)
class StudyPlan:
    """A comparison: strategies on problems, each `repeats` times, with equal budgets.

    A study may grow by strategies, problems and repeats. Its budget and batch size never change, nor do the options
    and the problem of a stored run.

    Attributes:
      name: of the folder in `results`.
      problems: ids.
      strategies: the options of each strategy by id, as instances of its `Options`.
      repeats: runs of each strategy on each problem, with seeds `seed`, `seed + 1`, and so on.
      budget: evaluations of a run.
      batch: candidates of one `ask`.
      keep_all: store every candidate in full.
      workers: processes that each problem with a live compiler may use.
      max_seconds: ends a run once its evaluations and its strategy have taken this long; None for no limit.
      until: ends a run once more evaluations are expected to gain less than this each; None for no such price.
      only: `(k, n)` for the k-th of n shares of the runs, counted from 1; None for all. Shares may run at the same
        time, on any machines that share the folder.
      plain_seeds: the random draws of a run follow from its seed alone, not from all that identifies it.
      on: the strategies that run on a problem; all of them on a problem that is not in it.
      leave_out: runs that are known already.
    """

    name: str
    results: Path
    registry: Registry
    problems: tuple[str, ...]
    strategies: Mapping[str, Any]
    repeats: int = 1
    seed: int = 0
    budget: int = 10_000
    batch: int = 100
    keep_all: bool = False
    workers: int = 1
    max_seconds: float | None = None
    only: tuple[int, int] | None = None
    plain_seeds: bool = False
    until: float | None = None
    on: Mapping[str, Sequence[str]] = field(default_factory=dict)
    leave_out: frozenset[RunName] = frozenset()

    def __post_init__(self) -> None:
        for name in ("budget", "batch", "repeats", "workers"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be 1 or more, not {getattr(self, name)}")
        if self.max_seconds is not None and not self.max_seconds > 0:
            raise UserError(f"max_seconds must be above 0, not {self.max_seconds}")
        if self.seed < 0:
            raise UserError(f"seed must be 0 or more, not {self.seed}")
        for name in ("seed", "budget", "batch"):
            if getattr(self, name) > LARGEST:
                raise UserError(f"{name} must be {LARGEST:,} or less, not {getattr(self, name)}")
        if (runs := len(self._pairs) * self.repeats) > _MOST_RUNS:
            raise UserError(
                f"{self.repeats:,} repeats would make {runs:,} runs, and a study has {_MOST_RUNS:,} at most"
            )
        if self.only and not 1 <= self.only[0] <= self.only[1]:
            raise UserError(f"there is no share {self.only[0]}/{self.only[1]}; shares are counted from 1")
        check_name(self.name)

    @property
    def path(self) -> Path:
        """The study's folder."""
        return self.results / self.name

    @property
    def runs(self) -> list[RunName]:
        """All runs of the study, problem by problem."""
        seeds = range(self.seed, self.seed + self.repeats)
        return [RunName(*pair, seed) for pair, seed in itertools.product(self._pairs, seeds)]

    @property
    def _pairs(self) -> list[tuple[str, str]]:
        return [(problem, name) for problem in self.problems for name in self.on.get(problem, self.strategies)]

    @property
    def share(self) -> list[RunName]:
        """The runs of this share of the study; all runs if it has no shares."""
        runs = share(self.runs, *self.only) if self.only else self.runs
        return [run for run in runs if run not in self.leave_out]

    def prepare(self) -> list[PlannedRun]:
        """Load every problem of the share, evaluate its default, and check the plan against what is stored.

        Raises:
          UserError: an id is unknown, a problem does not load, or a folder holds something else.
        """
        self._check_settings()
        where = machine_facts()
        by_problem = itertools.groupby(self.share, key=lambda run: run.problem)
        plan = [run for problem, runs in by_problem for run in self._of_problem(problem, list(runs), where)]
        for planned in plan:
            check_identity(planned.path, planned.run.identity(), planned.facts.get(CODE))
        check_contents(self.path, {planned.run.problem: planned.run.fingerprint for planned in plan})
        return plan

    @functools.cached_property
    def _code(self) -> dict[str, dict[str, str]]:
        """The facts about the code of each strategy, by its id."""
        return {name: code_facts(self.registry, name, options) for name, options in self.strategies.items()}

    @property
    def _settings(self) -> dict[str, int]:
        """What all runs share, as `study.json` holds it."""
        return {"format": 1, "budget": self.budget, "batch": self.batch}

    def check_folder(self) -> None:
        """Check that the study's folder exists or can be made; nothing is left behind.

        Raises:
          UserError: it cannot be made.
        """
        with disk_errors(self.path):
            folder = next(path for path in (self.path, *self.path.absolute().parents) if path.exists())
            tempfile.TemporaryDirectory(prefix=".bbo_suite_", dir=folder).cleanup()

    def claim(self) -> None:
        """Write the settings that all runs share, or compare them with the stored ones.

        Raises:
          UserError: the folder cannot be written, or the study was made with other settings.
        """
        with self._writing():
            self._check_settings()
            if not stored_settings(self.path):
                write_json(self.path / STUDY, self._settings)

    def _check_settings(self) -> None:
        stored = read_settings(self.path)
        for key, value in self._settings.items():
            if stored and stored.get(key) != value:
                advice = "choose another --study, or the same settings"
                raise UserError(f"study {self.name!r} was made with {key} {stored.get(key)}, not {value}; {advice}")

    def announce(self) -> None:
        """List the runs of all shares in the study's folder, for `watch`."""
        with self._writing():
            add_planned(self.path, self.runs)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Lock the files that all shares write, for milliseconds: other shares may start at the same time."""
        with disk_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            with acquired(self.path / CLAIM_LOCK, str(self.path), CLAIM_SECONDS):
                yield

    def _of_problem(self, problem_id: str, runs: Sequence[RunName], where: dict[str, Any]) -> Iterator[PlannedRun]:
        problem = self.registry.problem(problem_id)
        default = default_value(problem)
        if not default:
            what = "so nothing can be better and there is no speedup"
            raise UserError(f"the default configuration of {problem_id} costs 0, {what}; add a constant to all costs")
        for what, assumed in told(problem, "assumptions", Mapping).items():
            print(f"{problem_id}: {what}: {assumed}", file=sys.stderr)
        noted: dict[str, Any] = {"default": default, "optimum": problem.optimum, "unit": problem.unit}
        noted |= {"parameters": len(problem.space), **where}
        if (candidates := problem.space.cardinality) < LARGEST:
            noted["candidates"] = candidates
        if not all(has_begun(self.path / name.folder) for name in runs):
            noted |= _baselines(problem)
        fingerprint = told(problem, "fingerprint", str)
        why = problem.why_unversioned()
        noted |= ({UNVERSIONED: why} if why else {}) | ({NOISY: True} if problem.noisy else {})
        for name in runs:
            fields = identifying(self.strategies[name.strategy])
            noted[LEVEL] = self.registry.strategy(name.strategy).level.word
            run = Run(
                problem_id, fingerprint, name.strategy, fields, name.seed, self.budget, self.batch, self.plain_seeds
            )
            yield PlannedRun(run, self.path / name.folder, noted | self._code[name.strategy], problem.timed)


def timed_problems(plan: Sequence[PlannedRun]) -> list[str]:
    """Return the problems of a plan whose costs are times."""
    return list(dict.fromkeys(planned.run.problem for planned in plan if planned.timed))


def _baselines(problem: Problem) -> dict[str, Any]:
    """Return the keys of `run.json` for what a problem knows to compare with; without those of which there is none."""
    bound = None if problem.bound is None else float(problem.bound)
    known = {BASELINES: working_baselines(problem), BOUND: bound, PUBLISHED_IN: str(problem.published_in)}
    return {key: value for key, value in known.items() if value not in ({}, None, "")}


def check_name(study: str, what: str = "") -> None:
    """Check that a study's name can name a folder.

    Args:
      what: the name that the user chose, in words, if the study's was made from it.

    Raises:
      UserError: it cannot name one.
    """
    what = what or f"study name {study!r}"
    if not re.fullmatch(r"[\w@+][\w.@+-]*", study):
        allowed = "letters, digits and any of . _ @ + - without a slash, and begin with neither . nor -"
        raise UserError(f"{what} must be {allowed}")
    if len(study.encode()) > LONGEST:
        raise UserError(f"{what} is too long; at most {LONGEST} bytes can name a folder")


def default_name(
    strategies: Sequence[str], problems: Sequence[str], chosen: Mapping[str, Any], budget: int, batch: int, seed: int
) -> str:
    """Return a study name that depends only on the settings, so that the same command finds its study again."""
    strategies, problems = sorted(strategies), sorted(problems)
    settings = [problems, {name: identifying(made) for name, made in chosen.items()}, budget, batch, seed]
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:6]
    words = [problems[0] if len(problems) == 1 else f"{len(problems)}-problems"]
    words.append("-".join(strategies) if len(strategies) <= 4 else f"{len(strategies)}-strategies")
    return f"{re.sub(r'[^A-Za-z0-9.+]+', '-', '-'.join(words)).strip('-.')[:80]}-{digest}".strip("-")


def chosen_options(
    registry: Registry,
    strategies: Sequence[str],
    texts: Mapping[str, str],
    values: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return the options of each strategy by id.

    Args:
      texts: values as text by `option` or `strategy.option`.
      values: values by strategy and option.

    Raises:
      UserError: an option that no chosen strategy has, or a wrong value.
    """
    classes = {name: registry.strategy(name) for name in strategies}
    chosen = {}
    for name, strategy in classes.items():
        known = {option["name"] for option in options.describe(strategy.Options)}
        own = {key.rpartition(".")[2]: text for key, text in texts.items() if key.rpartition(".")[0] == name}
        shared = {key: text for key, text in texts.items() if "." not in key and (key in known or len(classes) == 1)}
        given = {**shared, **own, **(values or {}).get(name, {})}
        chosen[name] = options.make(strategy.Options, given, f"strategy {name}")
    _check_owners([*texts, *(f"{owner}." for owner in values or {})], chosen)
    return chosen


def _check_owners(texts: Iterable[str], chosen: Mapping[str, Any]) -> None:
    known = {option for made in chosen.values() for option in asdict(made)}
    for key in texts:
        owner, _, option = key.rpartition(".")
        if owner and owner not in chosen:
            what = f"option {key!r} is" if option else "options are"
            raise UserError(f"{what} for strategy {owner!r}, which is not among those that run: {', '.join(chosen)}")
        if not owner and option not in known:
            hint = did_you_mean(key, known)
            raise UserError(f"none of the strategies {', '.join(chosen)} has an option {key!r}.{hint}")


def machine_facts() -> dict[str, dict[str, str | int | None]]:
    """Return the versions and the machine that a run's `run.json` stores; nothing that identifies a person."""
    versions: dict[str, str | int | None] = {"python": platform.python_version()}
    versions |= {package: _version(package) for package in _PACKAGES}
    return {"versions": versions, "machine": {"system": platform.platform(), "cpu": _cpu(), "cores": os.cpu_count()}}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpu() -> str:
    listing = Path("/proc/cpuinfo")
    lines = listing.read_text(encoding="utf-8").splitlines() if listing.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor()
