"""Several runs on the same fleet: each policy with each daily budget and seed, with the measures that compare them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..core.versions import code_version, is_ours
from ..errors import UserError, did_you_mean, error_boundary
from ..files.writing import disk_errors, replacing, write_json
from ..registry import Registry
from .executors import Executor
from .library import KernelLibrary, Progress
from .policy import Policy
from .settings import FleetSettings
from .simulation import DayResult, Fleet
from .store import ResultStore

DAYS, END = "days.csv", "end.json"
ORACLE = "oracle"
WARM = 10
"""Days that means leave out: a fleet begins without results."""
_BEFORE, _RECOVERED = 5, 0.9
"""Days before a release that its recovery is compared with, and the share of their savings that must be reached."""


def policies(registry: Registry, names: Sequence[str] | None = None) -> dict[str, type[Policy]]:
    """Return the classes of policies by id, by default of all that are known and quick, an oracle first.

    Raises:
      UserError: there is no such policy, or it cannot be imported.
    """
    known = registry.known("bbo_suite.fleet_policies", Policy)
    for name in names or ():
        if name not in known:
            raise UserError(f"there is no policy {name!r}.{did_you_mean(name, known)}")
    found = {name: known[name]() for name in names or sorted(known, key=lambda name: (name != ORACLE, name))}
    return {name: policy for name, policy in found.items() if names or policy.by_default}


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
        if not self.seeds:
            raise UserError("repeats must be 1 or more, not 0")
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


def summary(days: Sequence[DayResult], settings: FleetSettings, training: float) -> dict[str, Any]:
    """Return the measures of a run.

    Args:
      training: chip-seconds a day for the training of a model, amortised.
    """
    late = days[WARM:] or days
    saved, potential = (float(np.mean([getattr(day, name) for day in late])) for name in ("saved", "potential"))
    cost = sum(day.cost for day in days) + training * len(days)
    total = sum(day.saved for day in days) * settings.chip_seconds
    return {
        "days": len(days),
        "saved": saved,
        "potential": potential,
        "saved_chip_seconds": total,
        "cost": cost,
        "training": training * len(days),
        "savings_over_cost": total / cost if cost else None,
        "kernels_a_day": float(np.mean([day.tuned for day in late])),
        "revalidated_a_day": float(np.mean([day.revalidated for day in late])),
        "lost": float(np.mean([day.lost for day in late])),
        "days_to_recover": recovery(days, settings),
        "live": days[-1].live,
        "by_method": {name: float(np.mean([day.by_method[name] for day in late])) for name in days[-1].by_method},
    }


def recovery(days: Sequence[DayResult], settings: FleetSettings) -> int | None:
    """Return the days after a release until nearly as much is saved as before; None if it is not reached."""
    before = [day.saved for day in days if settings.release - _BEFORE <= day.day < settings.release]
    if not settings.release or not before or np.mean(before) <= 0:
        return None
    after = (day.day for day in days if day.day >= settings.release and day.saved >= _RECOVERED * np.mean(before))
    first = next(after, None)
    return None if first is None else first - settings.release
