"""The suite from Python: `bbo_suite.problem(id)`, `bbo_suite.run(...)`, `bbo_suite.load(study)`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .core.problem import Problem
from .errors import UserError
from .registry import Registry
from .runs.display import Display
from .runs.runner import run_study
from .runs.strategy_options import chosen_options
from .runs.study_plan import StudyPlan, default_name
from .store import frames

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
    quiet: bool = False,
) -> list[dict[str, Any]]:
    """Run every strategy on every problem and return one summary a run (see `store.summary.summarise`).

    The same call again resumes what is unfinished and never overwrites. Ctrl-C finishes the batch, stores it and then
    raises `KeyboardInterrupt`.

    Args:
      option_texts: options of strategies, `key` for all that have it or `strategy.key` for one, as text.
      study: the name of the folder in `results`; made of the settings when left out.
      workers: processes for each run whose problem has a live compiler; no result depends on it.
      max_seconds: ends a run, beside the budget, once its evaluations and its strategy have taken so long.
      jobs: runs at a time, a process each; as many as cores when left out.
      cluster: the address of a Dask scheduler whose workers do the runs; they must see `results`.
      quiet: show no progress; it is shown in a terminal and in a notebook.

    Raises:
      UserError: a mistake in the arguments, or a run that failed; the others are stored.
    """
    registry = _registry(plugins)
    names, ids = _ids(strategies, "strategy"), _ids(problems, "problem")
    chosen = chosen_options(registry, names, option_texts or {})
    name = default_name(names, ids, chosen, budget, batch, seed) if study is None else study
    where = Path(results).absolute()
    made = StudyPlan(name, where, registry, ids, chosen, repeats, seed, budget, batch, keep_all, workers, max_seconds)
    report = run_study(made, jobs, _display(quiet), cluster)
    if report.errors:
        raise UserError("; ".join(report.errors))
    if report.stopped:
        raise KeyboardInterrupt
    return report.summaries


def _display(quiet: bool) -> Display:
    from .cli.progress import display, in_notebook

    return display(quiet or not (sys.stderr.isatty() or in_notebook()))


def _ids(given: str | Sequence[str], word: str) -> tuple[str, ...]:
    ids = (given,) if isinstance(given, str) else tuple(dict.fromkeys(given))
    if not ids:
        raise UserError(f"no {word} is named; give at least one id")
    return ids
