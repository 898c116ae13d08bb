"""What each day saved and cost, and the measures of a whole run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from .settings import FleetSettings

WARM = 10
"""Days that means leave out: a fleet begins without results."""
_BEFORE, _RECOVERED = 5, 0.9
"""Days before a release that its recovery is compared with, and the share of their savings that must be reached."""


@dataclass(frozen=True)
class DayResult:
    """One day. Shares are of all chip time that the fleet would spend with the compiler's settings.

    Attributes:
      live, new: kernels in use, and those seen for the first time.
      tuned, revalidated: kernels that were tuned, and those whose old result alone was measured again.
      cost: chip-seconds of tuning.
      saved: share that is saved, by true times; regressions count against it.
      lost: share that results lose which are slower than the default in truth.
      slower: uses of such results.
      potential: share that the best settings of all live kernels would save.
      hits: share of the chip time of the programs that were compiled today, for whose kernels the store had a result.
      by_method: the saved share by the method that found the result.
    """

    day: int
    version: int
    live: int
    new: int
    tuned: int
    revalidated: int
    cost: float
    saved: float
    lost: float
    slower: int
    potential: float
    hits: float
    by_method: Mapping[str, float] = field(default_factory=dict)

    def flat(self) -> dict[str, Any]:
        """Return the day as one row of a table."""
        row = asdict(self)
        methods = row.pop("by_method")
        return {**row, **{f"saved_{name}": share for name, share in methods.items()}}


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
