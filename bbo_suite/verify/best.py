"""The best configuration of a study for each problem: who found it, its cost measured again, and how to use it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from numpy.typing import NDArray

from ..core.problem import Problem
from ..errors import UserError, error_boundary
from ..registry import Registry
from ..store.folders import check_problems, run_folders
from ..store.rows import Row
from ..store.stored_run import StoredRun, readable
from .best_result import Best
from .minimal import minimal
from .remeasure import Remeasured, fresh, measure

COST_ALONE = "nothing besides its cost"


def best_of(
    registry: Registry,
    study: str,
    results: Path | str,
    complaints: list[str],
    simplify: bool = False,
    problems: Collection[str] | None = None,
) -> Iterator[Best]:
    """Yield the best result for each problem of a study, measured again.

    Args:
      complaints: a sentence is appended for each run that cannot be read; it is left out.
      simplify: also return the changes that gain nothing to the default.
      problems: ids of those to look at (default: all).

    Raises:
      UserError: there is no such study, or no such problem in it.
    """
    by_problem: dict[tuple[str, str], _Runs] = {}
    for run in readable(run_folders(study, results), complaints):
        by_problem.setdefault((run.identity.problem, run.identity.fingerprint), _Runs()).add(run)
    known = [problem for problem, _ in by_problem]
    check_problems(problems or (), known, study)
    chosen = set(known if problems is None else problems)
    for (problem, _), runs in by_problem.items():
        if problem in chosen:
            yield _best(registry, problem, runs, simplify)


def best_of_run(registry: Registry, run: StoredRun, simplify: bool = False) -> Best:
    """Return the best result of one run, measured again.

    Args:
      simplify: as for `best_of`.
    """
    runs = _Runs()
    runs.add(run)
    return _best(registry, run.identity.problem, runs, simplify)


def text_of_run(registry: Registry, run: StoredRun) -> Best:
    """Return the best result of one run with its text; nothing is evaluated."""
    best = Best(run.identity.problem, 1, len(run.rows), run, run.best)
    if best.row is None or not best.row.config:
        return replace(best, why_not="its configuration was not stored" if best.row else "")
    try:
        problem = fresh(registry, best.problem, run.identity.fingerprint)
        return _with_text(replace(best, loaded=problem), problem, problem.space.unpack(best.row.config))
    except ValueError as error:
        return replace(best, why_not=f"the stored configuration cannot be read: {error}")
    except UserError as error:
        return replace(best, why_not=str(error))


@dataclass
class _Runs:
    """The runs of one problem, read one after another; only the rows of the best run stay in memory.

    A run whose best candidate was measured again counts with that cost: the lowest of many noisy costs is too low.
    """

    folders: list[Path] = field(default_factory=list)
    evaluations: int = 0
    run: StoredRun | None = None
    row: Row | None = None
    cost: float = math.inf

    def add(self, run: StoredRun) -> None:
        self.folders.append(run.path)
        self.evaluations += len(run.rows)
        row, cost = run.choice or (None, math.inf)
        if row and (not self.row or (cost, row.evaluation) < (self.cost, self.row.evaluation)):
            self.run, self.row, self.cost = run, row, cost


def _best(registry: Registry, problem_id: str, runs: _Runs, simplify: bool) -> Best:
    run, row = runs.run, runs.row
    best = Best(problem_id, len(runs.folders), runs.evaluations, run, row)
    if run is None or row is None:
        return best
    if not row.config:
        return replace(best, why_not="its configuration was not stored")
    try:
        problem = fresh(registry, problem_id, run.identity.fingerprint)
        config = problem.space.unpack(row.config)
        best = _with_text(replace(best, loaded=problem), problem, config)
        again = measure(problem, config)
        best = replace(best, again=again, checked=what_is_checked(problem), all_tried=_all_tried(problem, runs))
        return _simplified(best, problem, config, again) if simplify else best
    except ValueError as error:
        return replace(best, why_not=f"the stored configuration cannot be read: {error}")
    except UserError as error:
        return replace(best, why_not=str(error))


def _simplified(best: Best, problem: Problem, config: NDArray, again: Remeasured) -> Best:
    if again.failure:
        return best
    least = minimal(problem, config, again.noisy or problem.noisy)
    best = replace(best, minimal=least, minimal_again=measure(problem, least.config))
    return _with_text(best, problem, least.config)


def _with_text(best: Best, problem: Problem, config: NDArray) -> Best:
    with error_boundary(f"problem {problem.id}", "paste"):
        return replace(best, paste=problem.paste(config), usage=problem.usage())


def _all_tried(problem: Problem, runs: _Runs) -> int:
    """Return the number of candidates in the space if the runs have tried all of them; else 0."""
    candidates = problem.space.cardinality
    if candidates > runs.evaluations:
        return 0
    tried = {row.digest for run in readable(runs.folders, []) for row in run.rows}
    return candidates if len(tried) == candidates else 0


def what_is_checked(problem: Problem) -> str:
    """Return what a problem verifies besides the cost: live compilers describe it in the fact `results`."""
    with error_boundary(f"problem {problem.id}", "facts"):
        results = problem.facts().get("results", "")
    return f"the compiled program is {results}" if results else COST_ALONE
