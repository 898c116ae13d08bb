"""Runs the peers with options that were tuned on training problems, on the tasks of the study.

    python results/strategies/tuned.py --budget 1000    # tuned.csv; README.md says what it shows

Runs are kept under `results/tuned-BUDGET` and resumed, and added to `tuned.csv`.
"""

from __future__ import annotations

import json
from typing import Annotated

import typer
from study import HERE, TASKS, gather

import bbo_suite

PEERS = ("pymoo:GA", "pymoo:DE", "optuna:NSGAIISampler")


def main(
    budget: int = 1000,
    repeats: int = 10,
    jobs: int = 2,
    only: Annotated[list[str] | None, typer.Option(help="families")] = None,
    peer: Annotated[list[str] | None, typer.Option(help="by default all three")] = None,
) -> None:
    """Do the runs that are missing and write the table of all."""
    tasks = [f"{family}/{name}" for family in only or TASKS for name in TASKS[family]]
    settings = {"repeats": repeats, "jobs": jobs, "study": f"tuned-{budget}", "results": HERE.parent}
    for name in peer or PEERS:
        found = json.loads((HERE / "tuning" / f"{name.replace(':', '-')}.json").read_text())["options"]
        texts = {f"{name}.{key}": str(value) for key, value in found.items()}
        bbo_suite.run(name, tasks, budget=budget, option_texts=texts, quiet=False, **settings)
    gather("tuned", HERE / "tuned.csv").to_csv(HERE / "tuned.csv", index=False, float_format="%.10g")


if __name__ == "__main__":
    typer.run(main)
