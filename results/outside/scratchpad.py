"""Searches on the contest's graphs and on our networks: `python results/outside/scratchpad.py [FOLDER]`.

FOLDER holds the files `mlsys-2026-N.json` of the contest; without it, only our networks are searched. Writes
`scratchpad.csv`: a row for each problem, strategy, level of knowledge and budget, with the best cost of ten runs.
"""

from __future__ import annotations

import csv
import sys
import time
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from bbo_problems.scratchpad.network.networks import INSTANCES
from bbo_problems.scratchpad.problem import ScratchpadProblem
from bbo_suite import Problem
from bbo_suite.registry import Registry
from bbo_suite.testing import play, start

SEEDS = 10
BUDGETS = (1_000, 10_000)
STRATEGIES = ("annealing", "evolution", "local", "random")
COLUMNS = ("problem", "strategy", "knows", "evaluations", "default", "median", "best", "worst", "seconds")
TARGET = Path(__file__).with_suffix(".csv")


def load(name: str, folder: Path | None) -> Problem:
    """Return a problem by its name."""
    return ScratchpadProblem(folder / f"{name}.json" if folder and name.startswith("mlsys") else name)


def run(name: str, folder: Path | None, strategy: str, seed: int) -> tuple[list[float], float]:
    """Return the best cost after each budget of one run, and its seconds."""
    problem, loaded = load(name, folder), Registry().strategy(strategy)
    started, best, spent, reached = time.perf_counter(), problem.evaluate(problem.default_row()[None]).values[0], 0, []
    chosen = start(loaded, problem.space, BUDGETS[-1], seed, problem.structure(), problem.default_row())
    for _, values in play(chosen, lambda configs: problem.evaluate(configs).values):
        best, spent = min(best, values.min()), spent + len(values)
        while len(reached) < len(BUDGETS) and spent >= BUDGETS[len(reached)]:
            reached.append(float(best))
    return reached + [float(best)] * (len(BUDGETS) - len(reached)), time.perf_counter() - started


def rows(name: str, folder: Path | None) -> list[dict[str, object]]:
    """Return the rows of one problem."""
    problem, found = load(name, folder), []
    default = float(problem.evaluate(problem.default_row()[None]).values[0])
    for strategy in STRATEGIES:
        runs = Parallel(n_jobs=2)(delayed(run)(name, folder, strategy, seed) for seed in range(SEEDS))
        knows = "structure" if Registry().strategy(strategy).uses_structure else "costs"
        for i, budget in enumerate(BUDGETS):
            costs, seconds = np.array([reached[i] for reached, _ in runs]), np.median([s for _, s in runs])
            numbers = (default, float(np.median(costs)), float(costs.min()), float(costs.max()))
            seconds = round(float(seconds) * budget / BUDGETS[-1], 2)
            found.append(dict(zip(COLUMNS, (name, strategy, knows, budget, *numbers, seconds), strict=True)))
    return found


def main(arguments: list[str]) -> None:
    """Write the table."""
    folder = Path(arguments[0]) if arguments else None
    graphs = [path.stem for path in folder.glob("mlsys-2026-*.json")] if folder else []
    names = sorted(graphs, key=lambda name: int(name.rpartition("-")[2]))
    with TARGET.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for name in (*names, *INSTANCES):
            writer.writerows(rows(name, folder))
            file.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
