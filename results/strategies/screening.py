"""Runs every installable optimizer of Nevergrad, Optuna and pymoo once on a training problem, to choose the peers.

    python results/strategies/screening.py

Runs are kept under `results/screening-1000` and resumed. Writes `screening.csv`, the best first; README.md says what it
shows. A run ends after 20 seconds, so the results of slow optimizers depend on the machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import nevergrad
import pandas as pd

import bbo_suite
from bbo_strategies.adapters.optuna_samplers import SAMPLERS
from bbo_strategies.adapters.pymoo_algorithms import ALGORITHMS
from bbo_suite.registry import Registry
from bbo_suite.store.results import summarise

HERE, STUDY = Path(__file__).parent, "screening-1000"
PROBLEM = "fusion/ssd-resnet34-infer-b32"
COLUMNS = ["strategy", "speedup", "evaluations", "unique", "strategy_seconds"]
OURS = ("random", "annealing", "evolution", "mbo")


def usable() -> Iterator[str]:
    """Yield the peers that can be used here, and print why others cannot."""
    libraries = {"nevergrad": nevergrad.optimizers.registry, "optuna": SAMPLERS, "pymoo": ALGORITHMS}
    for name in [f"{library}:{name}" for library, names in libraries.items() for name in sorted(names)]:
        try:
            Registry().strategy(name)
            yield name
        except bbo_suite.UserError as error:
            print(f"left out: {error}")


def main() -> None:
    """Do the runs that are missing and write the table."""
    settings = {"budget": 1000, "max_seconds": 20, "jobs": 2, "study": STUDY, "results": HERE.parent}
    try:
        bbo_suite.run([*OURS, *usable()], PROBLEM, quiet=False, **settings)
    except bbo_suite.UserError as error:
        print("failed: " + str(error).replace("; ", "\nfailed: "))
    table = pd.DataFrame([summarise(end.parent) for end in (HERE.parent / STUDY).glob("*/end.json")])[COLUMNS]
    table.sort_values(["speedup", "strategy"], ascending=[False, True]).to_csv(
        HERE / "screening.csv", index=False, float_format="%.6g"
    )


if __name__ == "__main__":
    main()
