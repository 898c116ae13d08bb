"""GCC's flags on three programs and tiles of a Pallas kernel: random search and ours, at short budgets.

    python results/gcc_pallas/study.py [--budget 100]

Runs are kept under `results/gcc-pallas-BUDGET` and resumed. Writes `runs.csv`, and prints means over the repeats;
README.md says what they show.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import typer

import bbo_suite
from bbo_suite.store.results import summarise

HERE = Path(__file__).parent
TASKS = ("pallas/matmul", "gcc/huffman", "gcc/levenshtein", "gcc/lexer")
STRATEGIES = ("random", "annealing", "evolution", "mbo")
COLUMNS = ["problem", "strategy", "seed", "evaluations", "unique", "failed", "default", "best", "speedup"]
COLUMNS += ["uses_structure"]
SECONDS = ["strategy_seconds", "evaluation_seconds"]


def main(budget: int = 100, repeats: int = 3) -> None:
    """Do the runs that are missing and write the table of all."""
    study, where = f"gcc-pallas-{budget}", HERE.parent
    bbo_suite.run(STRATEGIES, TASKS, study=study, results=where, budget=budget, batch=10, repeats=repeats, jobs=1)
    folders = sorted(path.parent for path in (where / study).glob("*/end.json"))
    runs = pd.DataFrame([summarise(folder) for folder in folders])[COLUMNS + SECONDS]
    runs.to_csv(HERE / "runs.csv", index=False, float_format="%.6g")
    print(runs.pivot_table(index="strategy", columns="problem", values="speedup").to_string(float_format="%.4f"))


if __name__ == "__main__":
    typer.run(main)
