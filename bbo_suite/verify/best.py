"""The best configuration of a study for each problem: who found it, its cost measured again, and how to use it.

And the few changes of it that matter: the others return to the default as long as the cost does not rise. Of several
programs: the K candidates that serve them best, if each may use the best of them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.evaluation import default_value, evaluate, told
from ..core.level import LEVEL
from ..core.problem import Problem
from ..core.program import Change
from ..core.quantities import cost, effect, over_default
from ..errors import UserError
from ..registry import Registry
from ..store.folders import check_problems, run_folders
from ..store.identity import BASELINES, known_speedups
from ..store.rows import Row
from ..store.stored_run import StoredRun, open_run, readable
from .minimal import Minimal, gain_text, minimal
from .remeasure import Remeasured, fresh, measure


@dataclass(frozen=True)
class Best:
    """The best result of a study for one problem.

    Attributes:
      problem: its id.
      runs: the number of runs of this problem, with the same content.
      evaluations: the total of these runs.
      run, row: where the best candidate was found; None where none succeeded.
      cost: its cost as the result of its run states it: of noisy costs, as measured again after the search.
      again: its cost measured again; None if it could not be measured.
      why_not: why it could not be measured; empty if it was.
      checked: what was verified about the candidate besides its cost.
      paste: the candidate as text for the compiler, such as flags; empty if the problem has none.
      usage: how to use this text; empty if the problem does not say.
      replayed: what the compiler's own tool makes of this text; empty if it was not tried.
      all_tried: the number of candidates in the space if the runs have tried every one of them; else 0.
      minimal: the candidate without the changes that gain nothing, if asked for; then `paste` is its text.
      minimal_again: the cost of that one, measured again.
      loaded: the problem; None if it is not available.
    """

    problem: str
    runs: int
    evaluations: int
    run: StoredRun | None = None
    row: Row | None = None
    cost: float = math.inf
    again: Remeasured | None = None
    why_not: str = ""
    checked: str = ""
    paste: str = ""
    usage: str = ""
    replayed: str = ""
    all_tried: int = 0
    minimal: Minimal | None = None
    minimal_again: Remeasured | None = None
    loaded: Problem | None = None

    @property
    def is_optimum(self) -> bool:
        """True if every candidate was tried and costs do not vary."""
        again = self.again
        return bool(self.all_tried and self.row and again and not again.noisy and again.value == self.row.value)

    @property
    def stored_speedup(self) -> float | None:
        """The speedup over the default, by the stored costs."""
        return over_default(self.run.head["default"], self.row.value) if self.run and self.row else None

    @property
    def speedup(self) -> float | None:
        """The default's cost / `cost`, as `run` and `report` say it; of noisy costs that no run repeated, as now."""
        again = self.again
        if again and (again.failure or (again.noisy and self.row and self.cost == self.row.value)):
            return again.speedup
        return over_default(self.run.head["default"], self.cost) if self.run else None

    @property
    def beyond(self) -> float:
        """The share of the cost that the minimiser saved beyond the strategy; 0 if that may be noise."""
        least, again, minimal = self.minimal, self.again, self.minimal_again
        if least is None or again is None or minimal is None or not again.value > 0:
            return 0.0
        before, after = again.speedup, minimal.speedup
        saved = 1 - before / after if again.noisy and before and after else 1 - minimal.value / again.value
        return saved if saved > least.noise else 0.0

    @property
    def better(self) -> str:
        """Which baseline, or the default, costs less than the candidate, as a sentence; empty if none does.

        If the default is what is left, a baseline must be better by more than the noise.
        """
        speedup = self.minimal_again.speedup if self.minimal_again else self.speedup
        if self.run is None or not speedup:
            return ""
        default, unit = float(self.run.head["default"]), self.run.head["unit"]
        known = {"the default": default} | dict(self.run.head.get(BASELINES) or {})
        name = min(known, key=lambda each: known[each])
        noise = self.minimal.noise if self.minimal and not self.minimal.needed else 1e-9
        if known[name] >= default / speedup * (1 - noise):
            return ""
        gain = f", {effect(default / known[name], unit)}" if 0 < known[name] < default else ""
        return f"{name} is better: {cost(known[name], unit)}{gain}; use that, not what was found"

    def facts(self) -> dict[str, Any]:
        """Return everything as `best --json` prints it; the text to paste only if no baseline is better."""
        result: dict[str, Any] = {"problem": self.problem, "runs": self.runs, "evaluations": self.evaluations}
        if self.run is None or self.row is None:
            return result | {"speedup": None, "strategy": None, "paste": None}
        return {
            **result,
            "speedup": self.speedup,
            "stored_speedup": self.stored_speedup,
            "unit": self.run.head["unit"],
            "default": self.run.head["default"],
            "value": self.row.value,
            "strategy": self.run.identity.strategy,
            LEVEL: self.run.head[LEVEL],
            "seed": self.run.identity.seed,
            "evaluation": self.row.evaluation,
            "measured_again": asdict(self.again) if self.again else None,
            "why_not_measured": self.why_not or None,
            "checked": self.checked or None,
            "all_tried": self.all_tried or None,
            "is_optimum": self.is_optimum or None,
            "baselines": known_speedups(self.run.head),
            "better": self.better or None,
            "paste": None if self.better else self.paste or None,
            "usage": None if self.better else self.usage or None,
            "replayed": None if self.better else self.replayed or None,
            "minimal": self._minimal_facts(),
            "config": self.row.config,
            "path": str(self.run.path),
        }

    def changes(self) -> list[tuple[Change, float]]:
        """Return the changes of the minimal candidate with their gains, the largest first.

        A gain is how much the cost rises without the change, as a share of the cost; inf if the candidate then fails.
        """
        if self.minimal is None or self.loaded is None:
            return []
        known = {change.column: change for change in self.loaded.changes(self.minimal.config)}
        return [(known[each.column], each.gain) for each in self.minimal.needed if each.column in known]

    def gain_lines(self) -> list[str]:
        """Return a line for each of these changes: what it saves, and what it changes."""
        again, run = self.minimal_again, self.run
        known = (again.value, run.head["unit"]) if again and run else (0.0, "")
        texts = [(gain_text(gain, *known), change) for change, gain in self.changes()]
        width = max((len(gain) for gain, _ in texts), default=0)
        return [f"  {gain:>{width}}  {c.name}: {c.default} -> {c.value}" for gain, c in texts]

    def needed_text(self) -> str:
        """Return how many changes are needed, and what the minimiser found beyond the strategy; empty if not known."""
        least, again = self.minimal, self.minimal_again
        if least is None or again is None or self.run is None:
            return ""
        needed, verb = len(least.needed), "is" if len(least.needed) == 1 else "are"
        text = f"{needed:,} of {least.changes:,} change{'' if least.changes == 1 else 's'} {verb} needed"
        if again.noisy:
            text += f", where a rise of up to {least.noise:.2%} counts as noise"
        if self.beyond:
            found = f"{cost(again.value, self.run.head['unit'])}: the minimiser found {100 * self.beyond:.2g} %"
            text += f"; without the others the cost is {found} beyond {self.run.identity.strategy}"
        return text

    def _minimal_facts(self) -> dict[str, Any] | None:
        least, again = self.minimal, self.minimal_again
        if least is None or again is None or self.loaded is None:
            return None
        return {
            "changes": least.changes,
            "beyond": self.beyond,
            "needed": [{**asdict(change), "gain": gain} for change, gain in self.changes()],
            "evaluations": least.evaluations,
            "noise": least.noise,
            "speedup": again.speedup,
            "measured_again": asdict(again),
            "config": self.loaded.space.pack(least.config),
        }


COST_ALONE = "nothing besides its cost"


def best_of(
    registry: Registry,
    study: str,
    results: Path | str,
    simplify: bool = False,
    problems: Collection[str] | None = None,
) -> Iterator[Best]:
    """Yield the best result for each problem of a study, measured again; damaged runs are left out and named.

    Args:
      simplify: also return the changes that gain nothing to the default.
      problems: ids of those to look at (default: all).

    Raises:
      UserError: there is no such study, or no such problem in it.
    """
    by_problem: dict[tuple[str, str], _Runs] = {}
    for run in readable(run_folders(study, results)):
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
    row, cost = run.choice or (None, math.inf)
    best = Best(run.identity.problem, 1, run.count, run, row, cost)
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
    """The runs of one problem, read one after another.

    A run whose best candidate was measured again counts with that cost: the lowest of many noisy costs is too low.
    """

    folders: list[Path] = field(default_factory=list)
    evaluations: int = 0
    run: StoredRun | None = None
    row: Row | None = None
    cost: float = math.inf

    def add(self, run: StoredRun) -> None:
        self.folders.append(run.path)
        self.evaluations += run.count
        row, cost = run.choice or (None, math.inf)
        if row and (not self.row or (cost, row.evaluation) < (self.cost, self.row.evaluation)):
            self.run, self.row, self.cost = run, row, cost


def _best(registry: Registry, problem_id: str, runs: _Runs, simplify: bool) -> Best:
    run, row = runs.run, runs.row
    best = Best(problem_id, len(runs.folders), runs.evaluations, run, row, runs.cost)
    if run is None or row is None:
        return best
    if not row.config:
        return replace(best, why_not="its configuration was not stored")
    try:
        problem = fresh(registry, problem_id, run.identity.fingerprint)
        config = problem.space.unpack(row.config)
        best, again = replace(best, loaded=problem), measure(problem, config)
        best = _replayed(_with_text(best, problem, config), problem, config, again.value)
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
    measured = measure(problem, least.config)
    best = replace(best, minimal=least, minimal_again=measured)
    return _replayed(_with_text(best, problem, least.config), problem, least.config, measured.value)


def _with_text(best: Best, problem: Problem, config: NDArray) -> Best:
    paste, usage = told(problem, "paste", str, config), told(problem, "usage", str)
    return replace(best, paste=paste, usage=usage)


def _replayed(best: Best, problem: Problem, config: NDArray, value: float) -> Best:
    return replace(best, replayed=told(problem, "replayed", str, config, value))


def _all_tried(problem: Problem, runs: _Runs) -> int:
    """Return the number of candidates in the space if the runs have tried all of them; else 0."""
    candidates = problem.space.cardinality
    if candidates > runs.evaluations:
        return 0
    tried = {row.digest for folder in runs.folders for row in open_run(folder).each_row()}
    return candidates if len(tried) == candidates else 0


def what_is_checked(problem: Problem) -> str:
    """Return what a problem verifies besides the cost: live compilers describe it in the fact `results`."""
    results = told(problem, "facts", Mapping).get("results", "")
    return f"the compiled program is {results}" if results else COST_ALONE


EXHAUSTIVE = 200_000
"""The most sets of candidates that are all tried."""


@dataclass(frozen=True)
class Selection:
    """The candidates that were selected for a problem.

    Attributes:
      problem: its id.
      candidates: how many were known in full.
      programs: `p` ids.
      ratios: `(k, p)` costs over those of the defaults, measured again.
      alone: the lowest cost of one candidate for all programs.
      pastes: what each candidate's compiler reads, for each program.
      unit: of the problem's costs.
    """

    problem: str
    candidates: int
    programs: tuple[str, ...]
    ratios: NDArray[np.float64]
    alone: float
    pastes: tuple[str, ...]
    unit: str

    @property
    def speedup(self) -> float:
        """The speedup over the defaults if each program uses the best selected candidate."""
        return 1 / shared_ratio(self.ratios)

    def facts(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        use = self.ratios.argmin(axis=0).tolist()
        return {
            "problem": self.problem,
            "candidates": self.candidates,
            "speedup": self.speedup,
            "speedup_of_one": 1 / self.alone,
            "kept": list(self.pastes),
            "uses": dict(zip(self.programs, use, strict=True)),
            "speedups": dict(zip(self.programs, (1 / self.ratios.min(axis=0)).tolist(), strict=True)),
        }

    def text(self) -> str:
        """Return what `best` prints."""
        several, one = (effect(ratio, self.unit) for ratio in (self.speedup, 1 / self.alone))
        lines = [
            f"{self.problem}: {several} with {len(self.ratios)} candidates, {one} with one",
            f"  chosen among {self.candidates:,} that are stored in full",
        ]
        use, best = self.ratios.argmin(axis=0), self.ratios.min(axis=0)
        for place, paste in enumerate(self.pastes):
            users = [f"{self.programs[i]} {1 / best[i]:.4f}" for i in np.flatnonzero(use == place).tolist()]
            lines += ["", f"{place + 1}: {', '.join(users) or 'no program'}", paste]
        return "\n".join([*lines, ""])


def selections(
    registry: Registry, study: str, results: Path | str, k: int, problems: Collection[str] | None
) -> Iterator[Selection]:
    """Yield the k candidates that serve best, for each `several:...` of a study; every candidate is measured again.

    Args:
      problems: ids of those to look at (default: all).

    Raises:
      UserError: there is no such study, problem, or candidate, or a problem has not several programs.
    """
    rows: dict[tuple[str, str], set[str]] = {}
    for run in readable(run_folders(study, results)):
        known = rows.setdefault((run.identity.problem, run.identity.fingerprint), set())
        known |= {row.config for row in run.each_row() if row.config}
    check_problems(problems or (), [problem for problem, _ in rows], study)
    for (name, fingerprint), configs in rows.items():
        if problems is None or name in problems:
            yield _selected(registry, name, fingerprint, sorted(configs), k)


def _selected(registry: Registry, name: str, fingerprint: str, configs: list[str], k: int) -> Selection:
    problem = fresh(registry, name, fingerprint)
    if not problem.programs:
        raise UserError(f"{name} is one program; --keep needs several, as in --problem several:llvm/tree+llvm/lexer")
    if not configs:
        raise UserError(f"no candidate of {name} is stored in full")
    unpacked = np.stack([problem.space.unpack(config) for config in configs])
    ratios = np.stack([evaluate(each, unpacked).values / default_value(each) for each in problem.programs], axis=1)
    chosen = best_rows(ratios, k)
    alone = shared_ratio(ratios[best_rows(ratios, 1)])
    pastes = tuple(problem.programs[0].paste(unpacked[i]) for i in chosen)
    programs = tuple(program.id for program in problem.programs)
    return Selection(name, len(configs), programs, ratios[chosen], alone, pastes, problem.unit)


def best_rows(ratios: NDArray[np.float64], k: int) -> list[int]:
    """Return k rows of `(n, p)` costs so that the geometric mean of the least cost of each column is lowest.

    All sets are tried if they are few; otherwise rows are added one by one, and exchanged while that helps.

    Args:
      ratios: costs of candidates over those of the defaults, more than 0; inf where one fails.
    """
    with np.errstate(divide="ignore"):
        logs = np.log(np.minimum(ratios, 1e300))
    k = min(k, len(logs))
    if math.comb(len(logs), k) <= EXHAUSTIVE:
        return list(min(combinations(range(len(logs)), k), key=lambda rows: _cost(logs[list(rows)])))
    chosen = _greedy(logs, k)
    return sorted(_exchanged(logs, chosen))


def shared_ratio(ratios: NDArray[np.float64]) -> float:
    """Return the geometric mean, over the columns, of the least of each."""
    return float(np.exp(np.log(ratios.min(axis=0)).mean()))


def _cost(logs: NDArray[np.float64]) -> float:
    return float(logs.min(axis=0).sum())


def _greedy(logs: NDArray[np.float64], k: int) -> list[int]:
    chosen: list[int] = []
    for _ in range(k):
        base = logs[chosen].min(axis=0) if chosen else np.full(logs.shape[1], np.inf)
        totals = np.minimum(logs, base).sum(axis=1)
        totals[chosen] = np.inf
        chosen.append(int(totals.argmin()))
    return chosen


def _exchanged(logs: NDArray[np.float64], chosen: list[int]) -> list[int]:
    """Replace one row by another that lowers the cost, until none does."""
    cost, improved = _cost(logs[chosen]), True
    while improved:
        improved = False
        for place in range(len(chosen)):
            rest = chosen[:place] + chosen[place + 1 :]
            base = logs[rest].min(axis=0) if rest else np.full(logs.shape[1], np.inf)
            totals = np.minimum(logs, base).sum(axis=1)
            best = int(totals.argmin())
            if totals[best] < cost - 1e-12:
                chosen[place], cost, improved = best, float(totals[best]), True
    return chosen
