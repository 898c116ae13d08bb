"""Options of local search."""

from __future__ import annotations

from dataclasses import dataclass

from bbo_suite import option


@dataclass(frozen=True)
class LocalOptions:
    """Options of `local`."""

    kick: int = option(3, "largest number of interacting parameters that a kick adds to one", low=1, high=100)
    temperature: float = option(
        0.0005, "initial share by which a repaired kick may be worse than the best", low=0, high=1
    )
    alike: float = option(0.2, "share of the budget within which alike parameters change together", low=0, high=1)
    sweep: float = option(0.5, "share of the budget within which each single change is tried once", low=0, high=1)
