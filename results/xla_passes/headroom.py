"""What there is to win by the order of passes, for each program and each objective.

    python results/xla_passes/headroom.py rows gpt2-l1-infer rnn-l1-infer ... [--budget 200] [--rows rows.jsonl]
    python results/xla_passes/headroom.py table [--rows rows.jsonl]

The random candidates of the first command are costed in all objectives; annealing searches for operations, bytes and
kernels. It appends a row for each candidate to a file, which is not kept in the tree. The second command makes
`headroom.csv` and `headroom.png` of it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray

from bbo_problems.tensor_compiler.hlo.reader import read_hlo_text
from bbo_problems.xla_passes.actions import PIPELINE
from bbo_problems.xla_passes.census import OBJECTIVES
from bbo_problems.xla_passes.problem import XlaPassesProblem
from bbo_problems.xla_passes.programs import named
from bbo_problems.xla_passes.worker import Optimiser, to_lower
from bbo_strategies.annealing import Annealing
from bbo_strategies.random_search import RandomSearch

HERE = Path(__file__).parent
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


def search(
    problem: XlaPassesProblem, kind: type[Annealing] | type[RandomSearch], objective: str, budget: int, costs: Costs
) -> list[dict[str, object]]:
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


app = typer.Typer(add_completion=False)
Rows = Annotated[Path, typer.Option(help="File of rows.")]


@app.command("rows")
def make_rows(programs: list[str], budget: int = 200, rows: Rows = Path("rows.jsonl")) -> None:
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
        typer.echo(f"{program}: {len(found)} candidates, {time.process_time() - started:.0f} s")


@app.command("table")
def make_table(rows: Rows = Path("rows.jsonl")) -> None:
    """Write the table and the figure: percent that the best of all candidates saves over the default."""
    told = pd.DataFrame([json.loads(line) for line in rows.read_text().splitlines()])
    default = told[told["method"] == "default"].set_index("program")
    least = told.groupby("program", sort=False)[list(OBJECTIVES)].min()
    table = default.loc[least.index, list(OBJECTIVES)].add_prefix("default ")
    for name in OBJECTIVES:
        table[f"{name} saved %"] = 100 * (1 - least[name] / default[name])
    table["random candidates"] = told[told["method"] == "RandomSearch"].groupby("program").size()
    table.to_csv(HERE / "headroom.csv", float_format="%.12g")
    draw(table)


def draw(table: pd.DataFrame) -> None:
    """Write the figure: a row of bars a program, a colour an objective."""
    import matplotlib.pyplot as plt

    shown = [name for name in OBJECTIVES if table[f"{name} saved %"].any()]
    figure, axes = plt.subplots(figsize=(7, 5), layout="constrained")
    for number, name in enumerate(shown):
        places = np.arange(len(table)) + 0.27 * (number - 1)
        axes.barh(places, table[f"{name} saved %"], 0.27, label=name)
    axes.set_yticks(range(len(table)), table.index, fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("less than by default, % (more is better)")
    axes.set_title("Best of 800 candidates a program in inference, 240 in training", fontsize=9)
    axes.legend(fontsize=8)
    figure.savefig(HERE / "headroom.png", dpi=110)


if __name__ == "__main__":
    app()
