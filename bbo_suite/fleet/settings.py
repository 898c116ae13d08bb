"""What a fleet is like, what tuning costs, and how exact measurements are: the assumptions of the simulation."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..core.options import option

DAY = 86_400
"""Seconds."""


@dataclass(frozen=True)
class FleetSettings:
    """The fleet, its clock and its prices. One chip-second is the unit of all costs."""

    programs: int = option(800, "programs that run at a time", 1, 1_000_000)
    chips: float = option(1000.0, "chips that the programs keep busy", 1e-6)
    skew: float = option(1.2, "exponent of the Pareto law of the programs' shares of chip time", 0.1, 100)
    popularity: float = option(1.0, "exponent of Zipf's law by which programs of the catalogue are chosen", 0, 10)
    own: float = option(0.25, "share of a program's kernels that no other version of it has", 0, 1)
    turnover: float = option(0.03, "share of the programs that another one replaces each day", 0, 1)
    recompiled: float = option(0.05, "share of the programs that change each day", 0, 1)
    renewed: float = option(0.1, "share of its kernels that a program changes then", 0, 1)
    drift: float = option(0.1, "deviation of the logarithm of a program's share of chip time in a day", 0, 3)
    restarts: float = option(0.5, "share of the programs that start again each day and fetch new results", 0, 1)
    release: int = option(20, "day on which a new compiler makes all results old; 0: never", 0)
    noise: float = option(0.02, "deviation of the logarithm of one measured time", 0, 3)
    finalists: int = option(5, "best candidates that are measured again, with the default", 1, 100)
    repeats: int = option(100, "repeats of that second measurement", 1, 10_000)
    margin: float = option(0.003, "share of the time that a result must save, as measured, to be used", 0, 1)
    compile: float = option(0.3, "chip-seconds that compiling one configuration is worth", 0)
    measure: float = option(0.5, "chip-seconds to load a kernel, warm up and time it", 1e-9)
    model: float = option(0.01, "chip-seconds that a learned model takes to rank the settings of a kernel", 0)
    amortised: float = option(365.0, "days over which the training of that model is paid", 1)
    horizon: float = option(28.0, "days that a result is expected to be of use", 0)
    near: int = option(3, "results of the closest kernels that are tried on another kernel", 1, 20)
    search: str = option("annealing", "strategy of the policy `search`")
    evaluations: int = option(64, "its evaluations for a kernel", 1)
    checked: float = option(0.01, "share of the results that are measured again here, to find workers that lie", 0, 1)

    @property
    def chip_seconds(self) -> float:
        """What the fleet spends in a day."""
        return self.chips * DAY

    @property
    def final_noise(self) -> float:
        """The deviation of the logarithm of a time that is measured again."""
        return self.noise / math.sqrt(self.repeats)
