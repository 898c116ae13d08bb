"""What is known of instances: the optima of our own ones, and published results of four contest problems.

An exact solver found the optima; `make_optima.py` makes them again. The contest's files themselves do not ship.
"""

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


SOURCE = "asplos-contest/2025, misc/iopddl_final_results.csv (teams); ti2-group/iopddl_experiments (XLA, bound)"


@dataclass(frozen=True)
class Reference:
    """What others reached on a problem.

    Attributes:
      program: the model, the task and the mesh.
      seconds: that the contest allowed.
      costs: by name.
      bound: no candidate costs less.
    """

    program: str
    seconds: int
    costs: dict[str, float]
    bound: float | None = None

    @property
    def optimum(self) -> float | None:
        """The optimum, if it is proven."""
        return self.bound if min(self.costs.values()) == self.bound else None


REFERENCES = {
    "9b84decdbaef9a6c": Reference(
        "B: Transformer, inference, mesh 4x8",
        60,
        {"XLA": 990205, "best team": 532843, "second team": 532844, "third team": 570851, "median team": 83252702},
        532843,
    ),
    "fcd45ac4ee02c6f4": Reference(
        "G: Transformer, inference, mesh 2x16",
        120,
        {"XLA": 1264777, "best team": 217039, "second team": 217039, "third team": 362368, "median team": 55761085},
        216931,
    ),
    "8a90f8a9da9a0674": Reference(
        "P: Gemma 1 27B, fine-tuning, mesh 8x16",
        240,
        {
            "XLA": 651833115436,
            "best team": 662197407330,
            "second team": 667347028482,
            "third team": 775827253426,
            "median team": 2109682776096,
        },
    ),
    "4958cf1f5cacb3f0": Reference(
        "U: GNS, fine-tuning, mesh 2x4x4",
        300,
        {
            "best team": 2569342178,
            "second team": 4823818136,
            "third team": 5064203678,
            "median team": 8702143850,
        },
    ),
}
"""By the digest of the graph, so that a renamed or packed file is known, and a changed one is not."""
