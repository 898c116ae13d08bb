"""Every strategy on tasks that nothing was tuned on: who wins, by how much, and at what cost.

    python results/strategies/study.py [--budget 10000] [--repeats 10] [--only fusion] [--strategy local ...]

Runs are kept under `results/strategies-BUDGET` and resumed, so the study can be made in parts. All finished runs are
added to `runs.csv` (if the cost model has changed, first cut that file down to its header), curves are drawn, and the
report is written into the study's folder. `verdicts.py` makes tables and more figures; README.md says what they show.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

import bbo_suite
from bbo_suite import figures, report
from bbo_suite.store.summary import summarise

HERE = Path(__file__).parent
TASKS = {
    "fusion": (
        "bert-tiny-infer-b64-s128",
        "mobilenet-1.4-infer-b32",
        "bert-base-infer-b128-s64",
        "gpt2-124m-decode-b128-s256",
        "nmt-2layer-train-b256-s80",
        "resnet-18-train-b64",
        "unet-32-infer-b1",
        "mobilenet-0.75-train-b96",
    ),
    "layout": (
        "bert-tiny-infer-b64-s128",
        "mobilenet-1.4-infer-b32",
        "bert-tiny-train-b256-s128",
        "unet-32-infer-b1",
    ),
    "tile": ("bert-tiny-infer-b64-s128", "mobilenet-1.4-infer-b32"),
    "flags": ("bert-tiny-infer-b64-s128", "mobilenet-1.4-infer-b32"),
    "joint": ("bert-tiny-infer-b64-s128", "mobilenet-1.4-infer-b32"),
    "ordering": ("40x50-a", "40x50-b"),
    "ehrlich": ("32x32-a", "64x32-a"),
}
"""Tasks by family; `training.txt` names the tasks that settings were tuned on: other models."""

OURS = ("random", "annealing", "evolution", "mbo", "portfolio", "local", "rl")
PEERS = (
    *("pymoo:GA", "pymoo:DE", "nevergrad:DiscreteLenglerOnePlusOne", "nevergrad:NGOpt", "nevergrad:TwoPointsDE"),
    *("nevergrad:SmoothDiscreteOnePlusOne", "nevergrad:UltraSmoothDiscreteLenglerOnePlusOne", "optuna:NSGAIISampler"),
)
"""The best-known ones, and two that are among the best of `screening.csv`, on a training problem."""
BESIDES = {"joint": ("joint",)}
"""Strategies that take part in one family only."""
KEY = ["problem", "strategy", "budget", "seed"]
COLUMNS = [*KEY, "uses_structure", "default", "best", "speedup"]
TIMES = ["strategy_seconds", "evaluation_seconds"]
COSTS = ["evaluations", "unique", "failed", *TIMES]


def gather(study: str, table: Path) -> pd.DataFrame:
    """Return one row for each run: those in a table, and those that are finished here, which replace them."""
    folders = HERE.parent.glob(f"{study}-*/*/end.json")
    here = pd.DataFrame([summarise(path.parent) for path in folders], columns=COLUMNS + COSTS)
    known = pd.read_csv(table)[COLUMNS + COSTS]
    both = pd.concat([known, here]).infer_objects()  # of a header alone pandas knows no types
    for column in TIMES:  # more digits of a time are noise, and a fifth of the file
        both[column] = both[column].map(lambda seconds: float(f"{seconds:.3g}"))
    return both.drop_duplicates(KEY, keep="last").sort_values(KEY)


def collect() -> pd.DataFrame:
    """Return one row for each run; for each budget, only the pairs with the most repeats."""
    runs = gather("strategies", HERE / "runs.csv")
    counts = runs.groupby(["budget", "problem", "strategy"])["seed"].transform("count")
    return runs[counts == counts.groupby(runs["budget"]).transform("max")]


def main(
    budget: int = 10_000,
    repeats: int = 10,
    jobs: int = 2,
    only: Annotated[list[str] | None, typer.Option(help="families")] = None,
    strategy: Annotated[list[str] | None, typer.Option(help="strategies")] = None,
) -> None:
    """Make the missing runs, then write the table of all runs, the figures and the report."""
    settings = {"repeats": repeats, "jobs": jobs, "study": f"strategies-{budget}", "results": HERE.parent}
    for family in only or TASKS:
        names = strategy or [*OURS, *PEERS, *BESIDES.get(family, ())]
        bbo_suite.run(names, [f"{family}/{name}" for name in TASKS[family]], budget=budget, quiet=False, **settings)
    collect().to_csv(HERE / "runs.csv", index=False, float_format="%.10g")
    frame = bbo_suite.load(f"strategies-{budget}", HERE.parent)
    list(figures.write(frame, HERE.parent / f"strategies-{budget}", names=("ecdf", "time"), formats=("png",)))
    report.write(f"strategies-{budget}", HERE.parent)


if __name__ == "__main__":
    typer.run(main)
