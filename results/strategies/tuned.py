"""The peer whose options were tuned on training problems, under what was found, on the tasks of the study.

    python results/strategies/tuned.py --budget 1000    # tuned.csv; README.md says what it shows

Runs are kept under `results/tuned-BUDGET` and resumed. Writes `tuned.csv` from all that is there.
"""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import typer
from study import COLUMNS, COSTS, HERE, TASKS

import bbo_suite
from bbo_suite.frames import summarise

PEER = "pymoo:GA"


def collect(results: Path) -> pd.DataFrame:
    """Return one row for each finished run."""
    folders = sorted(path.parent for path in results.glob("tuned-*/*/end.json"))
    return pd.DataFrame([summarise(folder) for folder in folders])[COLUMNS + COSTS]


def main(budget: int = 1000, repeats: int = 10, jobs: int = 2) -> None:
    """Do the runs that are missing and write the table of all."""
    found = json.loads((HERE / "tuning" / f"{PEER.replace(':', '-')}.json").read_text())["options"]
    tasks = [f"{family}/{name}" for family, names in TASKS.items() for name in names]
    settings = {"repeats": repeats, "jobs": jobs, "study": f"tuned-{budget}", "results": HERE.parent}
    texts = {f"{PEER}.{key}": str(value) for key, value in found.items()}
    bbo_suite.run(PEER, tasks, budget=budget, option_texts=texts, quiet=False, **settings)
    collect(HERE.parent).to_csv(HERE / "tuned.csv", index=False, float_format="%.10g")


if __name__ == "__main__":
    typer.run(main)
