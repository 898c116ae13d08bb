"""The K candidates of a study's runs that serve several programs best, if each may use the best of them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.evaluation import default_value, evaluate
from ..core.quantities import effect
from ..errors import UserError
from ..registry import Registry
from ..store.folders import check_problems, run_folders
from ..store.stored_run import readable
from .remeasure import fresh

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
