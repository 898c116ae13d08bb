"""The suite from Python: `bbo_suite.problem(id)`, `bbo_suite.run(...)`, `bbo_suite.load(study)`."""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .core.arguments import typed
from .core.problem import Problem
from .core.strategy import Strategy
from .errors import UserError
from .forecast import price_of
from .recommend import with_choices
from .registry import Registry, Resolved, resolve
from .runs.runner import Display, run_study
from .runs.study_plan import StudyPlan, chosen_options, default_name
from .store import frames
from .study import Study

load = frames.load


@typed
def problem(problem_id: str, plugins: Sequence[str | Path] = ()) -> Problem:
    """Return the problem `family/instance`, or `family:path` for your own file.

    Raises:
      UserError: there is no problem with that id.
    """
    return Registry(tuple(Path(path).absolute() for path in plugins)).problem(problem_id)


@typed
def run(
    strategies: str | type[Strategy] | Iterable[str | type[Strategy]],
    problems: str | Problem | type[Problem] | Iterable[str | Problem | type[Problem]],
    *,
    budget: int = 10_000,
    repeats: int = 1,
    seed: int = 0,
    batch: int = 100,
    jobs: int | None = None,
    study: str | None = None,
    results: str | Path = "results",
    plugins: str | Path | Sequence[str | Path] = (),
    options: Mapping[str | type[Strategy], Mapping[str, Any]] | None = None,
    option_texts: Mapping[str, str] | None = None,
    keep_all: bool = False,
    workers: int = 1,
    max_seconds: float | None = None,
    until: str | None = None,
    cluster: str | None = None,
    quiet: bool | None = None,
) -> Study:
    """Run every strategy on every problem and return the study, a sequence with one summary for each run.

    The same call again resumes what is unfinished and never overwrites. Ctrl-C ends what is being evaluated, stores it
    and then raises `KeyboardInterrupt`.

    Args:
      strategies: ids or classes, which can be mixed. The id of a class `HillClimb` is `hill-climb`; `auto` stands for
        the recommended strategy of each problem.
      problems: ids, objects or classes; of a class, the first instance is used. The id of `Queens("8")` is `queens/8`.
        Each process builds a problem from its class and the arguments of its constructor: later changes of the object
        have no effect. A run resumes only if the modules of its classes and the arguments of its problem are the same.
      options: of strategies, by id or class: `{"annealing": {"heat": 2.0}}`.
      option_texts: options as text, as on the command line: `heat` for every strategy that has it, `annealing.heat`.
      study: the name of the folder in `results` (default: derived from the settings).
      workers: processes for each run whose problem has a live compiler; no result depends on it.
      max_seconds: the time limit of a run, in addition to the budget: its evaluations and its strategy together.
      until: ends a run once more evaluations are expected to gain less than this price: `0.1%/100`, or `worth-it`.
      jobs: the number of parallel runs, one process each (default: the number of cores; 1 if costs are
        times, which other runs change).
      cluster: the address of a Dask scheduler whose workers execute the runs; they must see `results`.
      quiet: show no progress. By default it is shown in a terminal and in a notebook only.

    Raises:
      UserError: a mistake in the arguments, or a run that failed; the others are stored.
    """
    repeats, seed, workers, budget, batch = map(operator.index, (repeats, seed, workers, budget, batch))
    texts = [] if option_texts is None else [option_texts]
    if not all(
        isinstance(each, Mapping) and all(isinstance(t, str) for t in (*each, *each.values())) for each in texts
    ):
        raise UserError(f"option_texts must be a dict of texts, not {option_texts!r}")
    given = resolve(strategies, problems, plugins)
    on = with_choices(given.strategies, given.problems, budget, given.registry, max_seconds)
    given = replace(given, strategies=tuple(dict.fromkeys(name for names in on.values() for name in names)))
    chosen = chosen_options(given.registry, given.strategies, option_texts or {}, _by_id(given, options or {}))
    name = default_name(given.strategies, given.problems, chosen, budget, batch, seed) if study is None else study
    price = None if until is None else price_of(until)
    where, what = Path(results).absolute(), (given.registry, given.problems, chosen)
    plan = StudyPlan(
        name, where, *what, repeats, seed, budget, batch, keep_all, workers, max_seconds, until=price, on=on
    )
    if cluster is not None or (jobs != 1 and len(plan.runs) > 1):
        given.registry.objects.pickled()  # so that an error is raised now, not during the study
    outcome = run_study(plan, jobs, _display(quiet), cluster)
    if outcome.errors:
        raise UserError("; ".join(outcome.errors))
    if outcome.stopped:
        raise KeyboardInterrupt
    return Study._of_run(plan, outcome.summaries)


def _by_id(given: Resolved, options: object) -> dict[str, Mapping[str, Any]]:
    """Return the options by the ids of their strategies."""
    example = 'write options={"annealing": {"heat": 2.0}}'
    if not isinstance(options, Mapping):
        raise UserError(f"options must be a dict of dicts, not {options!r}; {example}")
    classes = {given.registry.strategy(name): name for name in given.strategies}
    found: dict[str, Mapping[str, Any]] = {}
    for key, values in options.items():
        if not isinstance(values, Mapping):
            raise UserError(f"the options of {key!r} must be a dict, not {values!r}; {example}")
        found[classes.get(key, key.__name__) if isinstance(key, type) else key] = values
    return found


def _display(quiet: bool | None) -> Display:
    from .cli.progress import display, in_notebook

    return display(not (sys.stderr.isatty() or in_notebook()) if quiet is None else quiet)
