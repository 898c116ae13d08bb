"""Runs the study of fleets and draws its figures: `python results/fleet/study.py [PART ...]`, by default all parts.

Parts: main, knee, sensitivity, strategies, figures. Runs are kept in `results/fleet/runs/`, which git ignores; the same
command goes on.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd

from bbo_suite.figures import fleet as figures
from bbo_suite.figures.style import save_with_few_colours
from bbo_suite.report import fleet as report

HERE = Path(__file__).parent
RUNS = HERE / "runs"
KERNELS = "tpu/catalogue"
SEEDS = ("--seed", "1", "--repeats", "3")
"""Seed 0 was looked at while the policies were designed."""
BUDGETS = ("864", "8640", "86400")
KNEE = ("100", "300", "864", "2600", "8640", "26000", "86400", "260000", "864000")
SOME = ("oracle", "weight", "saving", "transfer", "graybox", "model", "graybox-model", "two-stage")
STRATEGIES = ("annealing", "evolution", "local", "mbo")
FEW = ("oracle", "saving", "model", "graybox-model")
VARIANTS = {
    "as in the study": (),
    "lighter tail of weights: skew 2": ("skew=2",),
    "heavier tail of weights: skew 1.05": ("skew=1.05",),
    "every program starts again each day": ("restarts=1",),
    "only compiled programs fetch results": ("restarts=0",),
    "three times as many programs change": ("turnover=0.09", "recompiled=0.15"),
    "no release": ("release=0",),
    "compiling costs ten times as much": ("compile=3",),
    "measuring costs a tenth": ("measure=0.05",),
    "noise of 10 % for one time": ("noise=0.1",),
    "100 chips": ("chips=100",),
    "2,000 programs": ("programs=2000",),
}
"""Settings of the fleet, at the middle budget."""
TABLES = {"budgets": "policies", "knee": "knee"}
"""The figures of budgets, each with the table that it shows."""


def fleet(study: str, policies: tuple[str, ...], budgets: tuple[str, ...], *more: str) -> pd.DataFrame:
    """Run `fleet` and return a row for each run."""
    command = [sys.executable, "-m", "bbo_suite", "fleet", "--kernels", KERNELS, "--json", "--study", study]
    command += [word for name in policies for word in ("--policy", name)]
    command += [word for amount in budgets for word in ("--budget", amount)]
    done = subprocess.run([*command, "--results", str(RUNS), *more], stdout=subprocess.PIPE, text=True, check=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return pd.json_normalize(rows, sep="_").drop(columns=["days", "budget_share", "saved_chip_seconds"])


def main_part() -> None:
    """All policies at three budgets, three seeds."""
    every = (*SOME, "fifo", "none")
    write(fleet("main", every, BUDGETS, *SEEDS), "policies.csv")
    days = report.read(RUNS / "main")[1]
    columns = ["saved", "potential", "tuned", "revalidated", "cost", "hits", "saved_revalidate"]
    write(days.groupby(["budget", "policy", "day", "version"])[columns].mean().reset_index(), "days.csv")


def knee() -> None:
    """More budgets, one seed: where does the model stop paying?"""
    write(fleet("knee", SOME, KNEE, "--seed", "1"), "knee.csv")


def sensitivity() -> None:
    """Other fleets and other prices at the middle budget, one seed."""
    found = []
    for number, (name, options) in enumerate(VARIANTS.items()):
        more = [word for text in options for word in ("--option", text)]
        rows = fleet(f"variant-{number}", FEW, BUDGETS[1:2], "--seed", "1", *more)
        found.append(rows.assign(fleet=name))
    write(pd.concat(found), "sensitivity.csv")


def strategies() -> None:
    """Search strategies of the suite in the jobs, at the two smaller budgets, three seeds."""
    found = []
    for name in STRATEGIES:
        rows = fleet(f"search-{name}", ("oracle", "search"), BUDGETS[:2], *SEEDS, "--option", f"search={name}")
        found.append(rows[rows["policy"] == "search"].assign(search=name))
    write(pd.concat(found), "strategies.csv")


def write(frame: pd.DataFrame, name: str) -> None:
    """Write a table with few digits."""
    frame.to_csv(HERE / name, index=False, float_format="%.5g")


def draw() -> None:
    """Draw the figures from the tables."""
    days = pd.read_csv(HERE / "days.csv").assign(seed=0)
    drawn = {"days": figures.days(days)}
    drawn |= {name: figures.budgets(pd.read_csv(HERE / f"{table}.csv")) for name, table in TABLES.items()}
    for name, figure in drawn.items():
        save_with_few_colours(figure, HERE / f"{name}.png", 256, dpi=110, bbox_inches="tight")


PARTS = {"main": main_part, "knee": knee, "sensitivity": sensitivity, "strategies": strategies, "figures": draw}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
