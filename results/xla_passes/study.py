"""What the order of XLA's passes is worth, and what remembering modules saves.

    python results/xla_passes/study.py [--budget 200] [--repeats 1]

Runs are kept under `results/xla-passes-BUDGET` and resumed. Writes `runs.csv` and `speed.csv` beside this file;
README.md says what they show.
"""

from __future__ import annotations

import time
from pathlib import Path

import pandas as pd
import typer

import bbo_suite
from bbo_problems.tensor_compiler.hlo.reader import read_hlo_text
from bbo_problems.xla_passes.problem import XlaPassesProblem
from bbo_problems.xla_passes.programs import named
from bbo_problems.xla_passes.worker import Optimiser

HERE = Path(__file__).parent
PROGRAMS = ("gpt2-l1", "bert-l1", "resnet-10")
STRATEGIES = ("random", "annealing", "evolution", "mbo")
REPLAYED = 12
"""Candidates of a run of `annealing`, on the first program, that are costed once more to see how fast that is."""


def runs(budget: int, repeats: int, study: str) -> pd.DataFrame:
    """Return one row a run, with the percent of operations fewer than by default; does what is missing."""
    done = bbo_suite.run(
        STRATEGIES,
        [f"xla-passes/{program}" for program in PROGRAMS],
        study=study,
        results=HERE.parent,
        budget=budget,
        repeats=repeats,
        batch=10,
        jobs=1,
        keep_all=True,
        quiet=False,
    )
    table = pd.DataFrame(done)
    table["fewer_percent"] = 100 * (1 - table["best"] / table["default"])
    columns = ["problem", "strategy", "seed", "evaluations", "unique", "failed", "default", "best", "fewer_percent"]
    return table[[*columns, "uses_structure"]].sort_values(["problem", "strategy", "seed"])


def best_sequences(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the shortest of the best candidates of each program, as the problem writes it."""
    found = []
    for program in PROGRAMS:
        own = rows[(rows["problem"] == f"xla-passes/{program}") & (rows["status"] == "ok")]
        problem = XlaPassesProblem(program)
        best = [problem.paste(problem.space.unpack(text)) for text in own[own["value"] == own["value"].min()]["config"]]
        found.append({"program": program, "operations": own["value"].min(), "passes": min(best, key=len)})
    return pd.DataFrame(found)


def speed(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the candidates in a second of one core's time, with and without memory, on the same candidates."""
    own = rows[(rows["problem"] == f"xla-passes/{PROGRAMS[0]}") & (rows["strategy"] == "annealing")]
    problem = XlaPassesProblem(PROGRAMS[0])
    requests = [problem.request(problem.space.unpack(text)) for text in own["config"][-REPLAYED:]]
    result, costs = [], []
    for memory in (True, False):
        optimiser = Optimiser(read_hlo_text(named(PROGRAMS[0])))
        started = time.process_time()
        for request in requests:
            if not memory:
                optimiser._states._forget()
            costs.append(optimiser.answer(request, lambda stage, seconds: None))
        seconds = time.process_time() - started
        result.append({"memory": memory, "candidates": len(requests), "per_second": len(requests) / seconds})
    assert costs[: len(requests)] == costs[len(requests) :]
    return pd.DataFrame(result)


def main(budget: int = 200, repeats: int = 1) -> None:
    """Run what is missing and write the tables and the figure."""
    study = f"xla-passes-{budget}"
    table = runs(budget, repeats, study)
    table.to_csv(HERE / "runs.csv", index=False, float_format="%.6g")
    rows = bbo_suite.load(study, HERE.parent, ["config"])
    best_sequences(rows).to_csv(HERE / "best.csv", index=False)
    speed(rows).to_csv(HERE / "speed.csv", index=False, float_format="%.4g")


if __name__ == "__main__":
    typer.run(main)
