"""Several runs on the same fleet: each policy with each daily budget and seed, with the measures that compare them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ..core.code_version import code_version, is_ours
from ..errors import UserError, error_boundary
from ..files.writing import disk_errors, replacing, write_json
from .executors import Executor
from .ledger import DayResult, summary
from .library import KernelLibrary, Progress
from .policy import Policy
from .settings import FleetSettings
from .simulation import Fleet
from .store import ResultStore

DAYS, END = "days.csv", "end.json"
ORACLE = "oracle"


@dataclass(frozen=True)
class FleetStudy:
    """Policies that are compared on one fleet.

    Attributes:
      folder: of the study; each run has a folder in it.
      library_id: names the library.
      policies: classes by id.
      budgets: chip-seconds a day.
      days: of each run.
      seeds: of the fleet's events and of the noise.
    """

    folder: Path
    library_id: str
    library: KernelLibrary
    settings: FleetSettings
    policies: Mapping[str, type[Policy]]
    budgets: Sequence[float]
    days: int
    seeds: Sequence[int]

    def __post_init__(self) -> None:
        if self.days < 1:
            raise UserError(f"days must be 1 or more, not {self.days}")
        for budget in self.budgets:
            if not budget > 0:
                raise UserError(f"a budget must be above 0 chip-seconds a day, not {budget}")

    def run(self, executor: Executor, shown: Progress = lambda text: None) -> Iterator[dict[str, Any]]:
        """Yield the measures of each run; runs that are stored are not measured again.

        Raises:
          UserError: as `Fleet` does, or a folder cannot be written.
        """
        done: list[dict[str, Any]] = []
        for seed in self.seeds:
            for budget in self.budgets:
                for name in sorted(self.policies, key=lambda name: not self.policies[name].is_oracle):
                    found = self._run(name, budget, seed, executor, shown)
                    done.append(found | regret(found, done))
                    yield done[-1]

    def _run(self, name: str, budget: float, seed: int, executor: Executor, shown: Progress) -> dict[str, Any]:
        made, folder = self.policies[name], self.folder / run_name(name, budget, seed)
        with error_boundary(f"policy {name}", "its constructor"):
            policy = made()
        version = "" if is_ours(made) else code_version(made)
        named = {"library": self.library_id, "kernels": self.library.fingerprint(), "days": self.days}
        run = {"policy": name, "policy_version": version, "budget": budget, "seed": seed}
        with ResultStore(folder, {**named, **run, **asdict(self.settings)}) as store:
            fleet = Fleet(self.library, self.settings, policy, name, budget, seed, store, executor, shown)
            days = []
            for day in fleet.run(self.days):
                days.append(day)
                shown(
                    f"{name}, {budget:g} chip-s a day, seed {seed}: day {day.day} of {self.days}, {day.live:,} kernels"
                    f" live, {day.tuned:,} tuned, {day.saved:.2%} saved"
                )
            return self._stored(folder, name, budget, seed, days)

    def _stored(self, folder: Path, name: str, budget: float, seed: int, days: list[DayResult]) -> dict[str, Any]:
        training = self.training if self.policies[name].predicts else 0.0
        head = {"policy": name, "budget": budget, "seed": seed, "budget_share": budget / self.settings.chip_seconds}
        found = head | summary(days, self.settings, training)
        with disk_errors(folder / DAYS), replacing(folder / DAYS) as unfinished:
            pd.DataFrame([day.flat() for day in days]).to_csv(unfinished, index=False, float_format="%.8g")
        write_json(folder / END, found)
        return found

    @property
    def training(self) -> float:
        """Chip-seconds a day for the labels that the learned model was trained on."""
        price = self.settings.compile + self.settings.measure
        return self.library.trained_on * price / self.settings.amortised


def regret(found: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the share of the oracle's savings that a run misses; None without a run of an oracle on the same fleet."""
    same = (o for o in others if o["policy"] == ORACLE and all(o[key] == found[key] for key in ("budget", "seed")))
    oracle = found if found["policy"] == ORACLE else next(same, None)
    return {"regret": 1 - found["saved"] / oracle["saved"] if oracle and oracle["saved"] else None}


def run_name(policy: str, budget: float, seed: int) -> str:
    """Return the name of a run's folder."""
    return f"{policy}-{budget:g}-{seed}".replace("/", "-").replace(":", "-")
