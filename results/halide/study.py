"""What search gains on Halide schedules, held against Halide's autoschedulers, and how noisy that is.

    python results/halide/study.py blur matmul --budget 300

Runs annealing and random search, or goes on with them, in `results/halide-BUDGET`; writes `runs.csv`,
`autoschedulers.csv` and `noise.csv` beside this file. README.md says what they show.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

import bbo_suite
from bbo_problems.halide.problem import AUTOSCHEDULERS, HalideProblem

HERE = Path(__file__).parent
BATCH, REPEATS = 10, 9


def loaded(name: str) -> HalideProblem:
    """Return a pipeline's problem."""
    problem = bbo_suite.problem(f"halide/{name}")
    assert isinstance(problem, HalideProblem)
    return problem


def runs(names: list[str], budget: int) -> Iterator[dict[str, Any]]:
    """Yield what each run found; its best is measured again, because the least of many noisy costs is too small."""
    ids = [f"halide/{name}" for name in names]
    study, results = f"halide-{budget}", HERE.parent
    both = ["annealing", "random"]
    bbo_suite.run(both, ids, study=study, results=results, budget=budget, batch=BATCH, jobs=1, quiet=False)
    rows = bbo_suite.load(study, results, texts=["config"])
    for (problem_id, strategy), run in rows[rows.problem.isin(ids)].groupby(["problem", "strategy"], observed=True):
        problem = bbo_suite.problem(str(problem_id))
        assert isinstance(problem, HalideProblem)
        best = run.loc[run.value.idxmin()]
        again = problem.evaluate_again(problem.space.unpack(best.config), REPEATS)
        yield {
            "problem": problem_id,
            "strategy": strategy,
            "evaluations": len(run),
            "failed": int((run.status != "ok").sum()),
            "seconds_each": round(float(run.evaluation_seconds.mean()), 2),
            "median_cost": round(float(run.value.median()), 3),
            "best_cost": round(float(best.value), 4),
            "best_again": round(float(np.median(again)), 4),
        }


def autoschedulers(name: str) -> Iterator[dict[str, Any]]:
    """Yield what Halide's own schedules cost."""
    for scheduler in AUTOSCHEDULERS:
        cost, reason = loaded(name).autoscheduled(scheduler)
        yield {"problem": f"halide/{name}", "autoscheduler": scheduler, "cost": round(cost, 3), "reason": reason}


def noise(name: str) -> dict[str, Any]:
    """Return how costs and plain seconds of the default differ from one measurement to the next."""
    problem = loaded(name)
    costs, seconds = [], []
    for _ in range(3 * REPEATS):
        costs += problem.evaluate_again(problem.default_row(), 1).tolist()
        seconds.append(float(problem.query("seconds")))
    told = {"problem": f"halide/{name}", "milliseconds": round(1e3 * float(np.median(seconds)), 3)}
    for word, values in (("cost", costs), ("seconds", seconds)):
        told |= {f"{word}_deviation": round(float(np.std(values) / np.mean(values)), 4)}
        told |= {f"{word}_range": round(float(max(values) / min(values) - 1), 4)}
    return told


def main(names: list[str], budget: Annotated[int, typer.Option(help="Evaluations a run.")] = 300) -> None:
    """Make the three tables."""
    pd.DataFrame(noise(name) for name in names).to_csv(HERE / "noise.csv", index=False)
    pd.DataFrame(runs(names, budget)).to_csv(HERE / "runs.csv", index=False)
    pd.DataFrame(row for name in names for row in autoschedulers(name)).to_csv(HERE / "autoschedulers.csv", index=False)


if __name__ == "__main__":
    typer.run(main)
