"""LLVM's whole pipelines against -Oz and GCC's flags against -Os, on six programs each, with 1,000 evaluations.

    python results/outside/pipelines.py llvm-pipelines [--seeds 1] [--strategies annealing,random] [--table]
    python results/outside/pipelines.py gcc

Runs are kept under `results/FAMILY-BUDGET`, one seed after another, and resumed. Adds a row for each run of both
families to `pipelines.csv` and prints the geometric means; README.md says what they show. A run that is in the file is
not made again: without its rows each takes up to twenty minutes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer

import bbo_suite
from bbo_problems.programs_c import large_names
from bbo_suite.stats.significance import signed_rank_p
from bbo_suite.store.results import summarise

HERE = Path(__file__).parent
TABLE = HERE / "pipelines.csv"
FAMILIES = {"llvm-pipelines": "", "gcc": "@wide"}
"""Each family and its variant."""
STRATEGIES = ("annealing", "evolution", "local", "mbo", "random")
COLUMNS = ["problem", "strategy", "seed", "evaluations", "unique", "failed", "default", "best", "speedup"]
SECONDS = ["strategy_seconds", "evaluation_seconds"]
RUN = ["problem", "strategy", "seed", "evaluations"]
"""What tells rows of the table apart."""


def make(family: str, strategies: list[str], seeds: int, budget: int) -> None:
    """Make the runs that are missing; the table is up to date after each program."""
    where = {"study": f"{family}-{budget}", "results": HERE.parent}
    for seed in range(seeds):
        for name in large_names():
            problem = f"{family}/{name}{FAMILIES[family]}"
            known = set(table(budget)[RUN].itertuples(index=False, name=None))
            missing = [strategy for strategy in strategies if (problem, strategy, seed, budget) not in known]
            if missing:
                bbo_suite.run(missing, problem, budget=budget, seed=seed, batch=20, jobs=1, quiet=True, **where)
                table(budget).to_csv(TABLE, index=False, float_format="%.6g")
            print(seed, name, flush=True)


def table(budget: int) -> pd.DataFrame:
    """Return one row for each complete run: those in the file, and those whose folders are there."""
    folders = [path.parent for family in FAMILIES for path in (HERE.parent / f"{family}-{budget}").glob("*/end.json")]
    made = pd.DataFrame([summarise(folder) for folder in folders], columns=COLUMNS + SECONDS)
    both = pd.concat([found for found in (pd.read_csv(TABLE), made) if len(found)])
    return both.drop_duplicates(RUN, keep="last").sort_values(RUN)


def means(runs: pd.DataFrame) -> pd.DataFrame:
    """Return for each family and strategy the geometric mean over programs of the speedup, and p against `random`.

    A program's speedup is the geometric mean of its runs. The test is Wilcoxon's, over programs.
    """
    runs = runs.assign(family=runs["problem"].str.split("/").str[0], log=np.log(runs["speedup"]))
    logs = runs.pivot_table(index="strategy", columns=["family", "problem"], values="log")
    found = []
    for (family, strategy), own in runs.groupby(["family", "strategy"]):
        mine = logs.loc[strategy, family].dropna()
        row = {"family": family, "strategy": strategy, "programs": len(mine), "runs": len(own)}
        row |= {"geometric mean": np.exp(mine.mean()), "least": np.exp(mine.min()), "most": np.exp(mine.max())}
        if strategy != "random" and "random" in logs.index:
            both = logs[family].loc[[strategy, "random"]].dropna(axis="columns")
            row |= {"ahead of random": int((both.loc[strategy] > both.loc["random"]).sum())}
            row |= {"p": signed_rank_p(both.loc[strategy], both.loc["random"]) if both.shape[1] > 1 else np.nan}
        found.append(row | {"seconds a run": own[SECONDS].sum(axis=1).mean()})
    return pd.DataFrame(found)


def power(runs: pd.DataFrame, family: str = "llvm-pipelines", seeds: tuple[int, ...] = (1, 2, 3, 10)) -> pd.DataFrame:
    """Return how many programs would tell `annealing` from `random` with 80 % power at 5 %, by the number of seeds.

    The lead on a program is normal, with a variance between programs and one between seeds, both estimated here.
    Wilcoxon's test needs 1 / .955 as many programs as that on means.
    """
    runs = runs[runs["problem"].str.startswith(family)].assign(log=np.log(runs["speedup"]))
    cells = runs[runs["strategy"].isin(["annealing", "random"])].groupby(["problem", "strategy"])["log"]
    leads = cells.mean().unstack().pipe(lambda means: means["annealing"] - means["random"])
    of_seeds = 2 * ((cells.var() * (cells.count() - 1)).sum() / (cells.count() - 1).sum())  # of both strategies
    of_programs = max(0.0, leads.var() - float((of_seeds / cells.count().groupby("problem").min()).mean()))
    needed = [(2.80 / leads.mean()) ** 2 * (of_programs + of_seeds / count) / 0.955 for count in seeds]
    deviations = np.sqrt([of_programs, of_seeds])
    return pd.DataFrame({"seeds": seeds, "programs": np.ceil(needed)}).assign(
        lead=leads.mean(), **{"between programs": deviations[0], "between seeds": deviations[1]}
    )


def main(
    family: Annotated[str, typer.Argument(help="llvm-pipelines or gcc")],
    seeds: int = 1,
    strategies: str = ",".join(STRATEGIES),
    budget: int = 1_000,
    only_table: Annotated[bool, typer.Option("--table", help="Only the tables of what is there.")] = False,
) -> None:
    """Make the runs that are missing, in one process, and write the table of all."""
    if not only_table:
        make(family, strategies.split(","), seeds, budget)
    runs = table(budget)
    runs.to_csv(TABLE, index=False, float_format="%.6g")
    print(means(runs).to_string(index=False, float_format="%.4f"))
    print(power(runs).to_string(index=False, float_format="%.4f"))


if __name__ == "__main__":
    typer.run(main)
