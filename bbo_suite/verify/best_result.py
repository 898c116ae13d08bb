"""What the best candidate of a problem is, what it is worth, and how to use it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ..core.level import LEVEL
from ..core.problem import Problem
from ..core.program import Change
from ..store.identity import known_speedups
from ..store.rows import Row
from ..store.stored_run import StoredRun
from .minimal import Minimal
from .remeasure import Remeasured


@dataclass(frozen=True)
class Best:
    """The best result of a study for one problem.

    Attributes:
      problem: its id.
      runs: the number of runs of this problem, with the same content.
      evaluations: the total of these runs.
      run, row: where the best candidate was found; None where none succeeded.
      again: its cost measured again; None if it could not be measured.
      why_not: why it could not be measured; empty if it was.
      checked: what was verified about the candidate besides its cost.
      paste: the candidate as text for the compiler, such as flags; empty if the problem has none.
      usage: how to use this text; empty if the problem does not say.
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
    again: Remeasured | None = None
    why_not: str = ""
    checked: str = ""
    paste: str = ""
    usage: str = ""
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
        if self.run is None or self.row is None or self.row.value <= 0:
            return None
        return self.run.head["default"] / self.row.value

    @property
    def speedup(self) -> float | None:
        """The speedup as measured again if it was, since one noisy measurement proves little; else as stored."""
        return self.again.speedup if self.again else self.stored_speedup

    def facts(self) -> dict[str, Any]:
        """Return everything as `best --json` prints it."""
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
            "paste": self.paste or None,
            "usage": self.usage or None,
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

    def _minimal_facts(self) -> dict[str, Any] | None:
        least, again = self.minimal, self.minimal_again
        if least is None or again is None or self.loaded is None:
            return None
        return {
            "changes": least.changes,
            "needed": [{**asdict(change), "gain": gain} for change, gain in self.changes()],
            "evaluations": least.evaluations,
            "noise": least.noise,
            "speedup": again.speedup,
            "measured_again": asdict(again),
            "config": self.loaded.space.pack(least.config),
        }
