"""The K candidates of a study's runs that serve several programs best, for `best --keep K`."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import UserError
from ..registry import Registry
from ..store.folders import check_problems, run_folders
from ..store.stored_run import readable
from ..verify.remeasure import fresh
from .keep import keep, shared_ratio
from .problem import SeveralProblem


@dataclass(frozen=True)
class Kept:
    """The candidates that were kept.

    Attributes:
      problem: its id.
      candidates: how many were known in full.
      programs: `p` ids.
      ratios: `(k, p)` costs over those of the defaults, measured again.
      alone: the lowest cost of one candidate for all programs.
      pastes: what each candidate's compiler reads, for each program.
    """

    problem: str
    candidates: int
    programs: tuple[str, ...]
    ratios: NDArray[np.float64]
    alone: float
    pastes: tuple[str, ...]

    @property
    def speedup(self) -> float:
        """The speedup over the defaults if each program uses the best candidate that was kept."""
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
        head = f"{self.problem}: speedup {self.speedup:.4f} with {len(self.ratios)} candidates"
        lines = [
            f"{head}, {1 / self.alone:.4f} with one",
            f"  chosen among {self.candidates:,} that are stored in full",
        ]
        use, best = self.ratios.argmin(axis=0), self.ratios.min(axis=0)
        for place, paste in enumerate(self.pastes):
            users = [f"{self.programs[i]} {1 / best[i]:.4f}" for i in np.flatnonzero(use == place).tolist()]
            lines += ["", f"{place + 1}: {', '.join(users) or 'no program'}", paste]
        return "\n".join([*lines, ""])


def kept_of(
    registry: Registry, study: str, results: Path | str, complaints: list[str], k: int, problems: Collection[str] | None
) -> Iterator[Kept]:
    """Yield the k candidates that serve best, for each `several:...` of a study; every candidate is measured again.

    Args:
      complaints: a sentence is appended for each run that cannot be read; it is left out.
      problems: ids of those to look at (default: all).

    Raises:
      UserError: there is no such study, problem, or candidate, or a problem has not several programs.
    """
    rows: dict[tuple[str, str], set[str]] = {}
    for run in readable(run_folders(study, results), complaints):
        known = rows.setdefault((run.identity.problem, run.identity.fingerprint), set())
        known |= {row.config for row in run.rows if row.config}
    check_problems(problems or (), [problem for problem, _ in rows], study)
    for (name, fingerprint), configs in rows.items():
        if problems is None or name in problems:
            yield _kept(registry, name, fingerprint, sorted(configs), k)


def _kept(registry: Registry, name: str, fingerprint: str, configs: list[str], k: int) -> Kept:
    problem = fresh(registry, name, fingerprint)
    if not isinstance(problem, SeveralProblem):
        raise UserError(f"{name} is one program; --keep needs several, as in --problem several:llvm/tree+llvm/lexer")
    if not configs:
        raise UserError(f"no candidate of {name} is stored in full")
    unpacked = np.stack([problem.space.unpack(config) for config in configs])
    ratios = problem.ratios(unpacked)
    chosen = keep(ratios, k)
    alone = shared_ratio(ratios[keep(ratios, 1)])
    pastes = tuple(problem.programs[0].paste(unpacked[i]) for i in chosen)
    programs = tuple(program.id for program in problem.programs)
    return Kept(name, len(configs), programs, ratios[chosen], alone, pastes)
