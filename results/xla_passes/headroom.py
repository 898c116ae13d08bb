"""What there is to win by the order of passes, for each program and each objective.

    python results/xla_passes/headroom.py gpt2-l1-infer rnn-l1 ... [--budget 200] [--rows rows.jsonl]

200 random candidates are costed in all objectives, and 200 of `annealing` for each objective. Appends a row for each
candidate to the file of rows, which is not kept in the tree; `study.py` makes `headroom.csv` and the figure of it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from bbo_problems.tensor_compiler.hlo.reader import read_hlo_text
from bbo_problems.xla_passes.actions import PIPELINE
from bbo_problems.xla_passes.objectives import OBJECTIVES
from bbo_problems.xla_passes.problem import XlaPassesProblem
from bbo_problems.xla_passes.programs import named
from bbo_problems.xla_passes.worker import Optimiser, to_lower
from bbo_strategies.annealing import Annealing
from bbo_strategies.random_search import RandomSearch

BATCH = 10
Costs = Callable[[tuple[str, ...]], dict[str, float]]


def all_costs(program: str) -> Costs:
    """Return a function that gives all costs of a sequence of passes; one module is compiled once."""
    optimiser = Optimiser(read_hlo_text(named(program)))
    known: dict[bytes, dict[str, float]] = {}

    def costs(passes: tuple[str, ...]) -> dict[str, float]:
        whole = (*passes, *to_lower(passes))
        if (key := optimiser._states.key(whole)) not in known:
            text = optimiser._states.module(whole)
            fused = optimiser._compiler.fused(text)
            known[key] = {name: float(o.count(fused if o.fused else text)) for name, o in OBJECTIVES.items()}
        return known[key]

    return costs


def search(problem: XlaPassesProblem, kind: type, objective: str, budget: int, costs: Costs) -> list[dict[str, object]]:
    """Return a row for each candidate of one run."""
    rng = np.random.default_rng([2, budget, *problem.id.encode(), *objective.encode()])
    strategy = kind(problem.task(), budget, rng, kind.Options())
    rows: list[dict[str, object]] = []
    while len(rows) < budget:
        batch = strategy.ask(BATCH)
        told = [_row(problem, candidate, costs) for candidate in batch]
        strategy.tell(batch, np.array([row[objective] for row in told], float))
        rows += told
    return [
        {"program": problem.id.partition("/")[2], "method": kind.__name__, "objective": objective} | row for row in rows
    ]


def _row(problem: XlaPassesProblem, candidate: NDArray, costs: Costs) -> dict[str, object]:
    passes = problem.request(candidate)
    try:
        return {"passes": ",".join(passes), **costs(passes)}
    except RuntimeError:
        return {"passes": ",".join(passes), **dict.fromkeys(OBJECTIVES, float("inf"))}


def main(
    programs: list[str],
    budget: int = 200,
    rows: Annotated[Path, typer.Option(help="File that rows are appended to.")] = Path("rows.jsonl"),
) -> None:
    """Cost the candidates of every program."""
    for program in programs:
        problem = XlaPassesProblem(program)
        problem.id = f"xla-passes/{program}"
        started, costs = time.process_time(), all_costs(program)
        default = {"program": program, "method": "default", "objective": "", "passes": PIPELINE, **costs((PIPELINE,))}
        found = [default, *search(problem, RandomSearch, "operations", budget, costs)]
        for objective in ("operations", "bytes", "kernels"):
            found += search(problem, Annealing, objective, budget, costs)
        with rows.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in found)
        least = {name: min(row[name] for row in found) / default[name] for name in OBJECTIVES}
        typer.echo(f"{program}: {time.process_time() - started:.0f} s, {default} {least}")


if __name__ == "__main__":
    typer.run(main)
