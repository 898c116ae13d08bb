"""The optima of our own instances, as an exact solver found them; `make_optima.py` makes them again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

TABLE = Path(__file__).parent / "optima.json"
"""By the digest of the graph, so that a graph that changed has none."""


@dataclass(frozen=True)
class Optimum:
    """What an exact solver showed of an instance.

    Attributes:
      name: of the instance.
      bound: no candidate costs less.
      cost: of the best candidate that it found.
      candidate: that candidate, packed.
    """

    name: str
    bound: int
    cost: int | None = None
    candidate: str | None = None

    @property
    def optimum(self) -> float | None:
        """The optimum, if no candidate costs less than the one that was found."""
        return float(self.bound) if self.cost == self.bound else None


@lru_cache(maxsize=1)
def optima() -> dict[str, Optimum]:
    """Return what is known of all instances."""
    return {digest: Optimum(**row) for digest, row in json.loads(TABLE.read_text(encoding="utf-8")).items()}
