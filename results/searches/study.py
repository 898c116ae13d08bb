"""Which published search wins where, and what each of their mechanisms is worth.

    python results/searches/study.py [--seeds 10] [--budget 200 --budget 1000]   # runs.csv: only runs that it lacks
    python results/searches/study.py --tables                                    # ranks.csv, switches.csv, ranks.png
    python results/searches/study.py --seeds 3 --budget 10000 --only taso --only local ...       # some searches alone

Runs are made in this process, in batches of 20; `pip install bbo-suite[gomea]` adds the search by linkage learning.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu

import bbo_suite
from bbo_strategies.published import PRESETS
from bbo_suite import UserError
from bbo_suite.core.level import Level
from bbo_suite.registry import Registry
from bbo_suite.store import seed_columns
from bbo_suite.testing import play, start

HERE = Path(__file__).parent
TASKS = (
    *("fusion/bert-tiny-infer-b64-s128", "layout/bert-tiny-infer-b64-s128", "tile/mobilenet-1.4-infer-b32"),
    *("flags/mobilenet-1.4-infer-b32", "joint/bert-tiny-infer-b64-s128", "kernel/rnn-infer-b512-s64"),
    *("ordering/40x50-a", "ehrlich/32x32-a", "sharding/rnn", "scratchpad/bert@2MiB"),
)
"""The first task of the main study of each family that costs no compilation, and one of each family that it lacks."""
BATCH = 20
KEY = ["task", "search", "budget", "seed"]
FEWEST = 5
"""Runs of each of two searches that are compared by a test."""
FILE = HERE / "runs.csv"
"""A row for each task, search and budget: the median of its own time, and a column of gains for each seed."""


class Switch(NamedTuple):
    """A mechanism: a search with it, and one without."""

    mechanism: str
    with_it: str
    without: str


SEARCHES: dict[str, tuple[str, dict[str, object]]] = {
    **{name: (f"published:{name}", {}) for name in PRESETS},
    "autotvm without model": ("published:autotvm", {"model": False}),
    "ansor without model": ("published:ansor", {"model": False}),
    "adatune with fixed share": ("published:adatune", {"adaptive": False}),
    "chameleon without clusters": ("published:chameleon", {"clusters": False}),
    "halide in one pass": ("published:halide", {"passes": 1}),
    **{name: (name, {}) for name in ("random", "annealing", "evolution", "mbo", "local", "gomea:LinkageTree")},
}
"""By the name in tables: the strategy and its options."""
SWITCHES = (
    Switch("annealing on a surrogate (AutoTVM)", "autotvm", "autotvm without model"),
    Switch("evolution on a surrogate (Ansor)", "ansor", "ansor without model"),
    Switch("adaptive share of random candidates (AdaTune)", "adatune", "adatune with fixed share"),
    Switch("clusters of the walker's plan (Chameleon)", "chameleon", "chameleon without clusters"),
    Switch("clusters of proposals (Chameleon, on AutoTVM)", "chameleon-sampling", "autotvm"),
    Switch("coarse to fine (Halide)", "halide", "halide in one pass"),
)


def run(task_id: str, search: str, budget: int, seed: int) -> dict[str, object]:
    """Return a row of the table: one run, and the processor time that the strategy itself took."""
    name, options = SEARCHES[search]
    problem, spent = bbo_suite.problem(task_id), 0.0
    task = problem.task(True, None, True)

    def cost(configs: NDArray) -> NDArray[np.float64]:
        nonlocal spent
        begin = time.process_time()
        values = problem.evaluate(configs).values
        spent += time.process_time() - begin
        return values

    begin = time.process_time()
    searcher = start(Registry().strategy(name), task.space, budget, seed, task.structure, task.default, **options)
    best = min((float(values.min()) for _, values in play(searcher, cost, BATCH)), default=np.inf)
    own = (time.process_time() - begin - spent) / budget
    default = float(problem.evaluate(problem.default[None]).values[0])
    row = {"task": task_id, "search": search, "budget": budget, "seed": seed}
    return {**row, "gain": 100 * (default / min(best, default) - 1), "own_ms": 1000 * own}


def missing(
    seeds: int, budgets: list[int], searches: Iterable[str], known: pd.DataFrame
) -> Iterator[tuple[str, str, int, int]]:
    """Yield the runs that are not known, seed by seed."""
    done = set(known[KEY].itertuples(index=False, name=None)) if len(known) else set()
    for seed in range(seeds):
        for budget in budgets:
            for task in TASKS:
                yield from ((task, name, budget, seed) for name in searches if (task, name, budget, seed) not in done)


def make(seeds: int, budgets: list[int], searches: Iterable[str]) -> None:
    """Make the runs that are missing, and add each to `runs.csv` at once; a search may refuse a task."""
    known, refused = seed_columns.read(FILE, KEY[:-1]), set[tuple[str, str]]()
    for task, search, budget, seed in missing(seeds, budgets, searches, known):
        if (task, search) in refused:
            continue
        try:
            row = run(task, search, budget, seed)
        except UserError as error:
            refused.add((task, search))
            print(error, flush=True)
            continue
        known = pd.concat([known, pd.DataFrame([row])]) if len(known) else pd.DataFrame([row])
        seed_columns.write(FILE, KEY[:-1], known)
        print(f"{task}  {search}  {budget}  {seed}: {row['gain']:.2f} %", flush=True)


def knowledge(search: str) -> Level:
    """Return what a search knows."""
    return Registry().strategy(SEARCHES[search][0]).level


def ranked(runs: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Return the mean rank of each search (1 is best) by mean gains, over the tasks that it can run on."""
    found = []
    for budget, own in runs[runs["search"].isin(names)].groupby("budget"):
        gains = own.groupby(["task", "search"])["gain"].mean().unstack()
        table = pd.DataFrame({"rank": gains.rank(axis=1, ascending=False).mean(), "tasks": gains.notna().sum()})
        table["own_ms"] = own.groupby("search")["own_ms"].median()
        found.append(table.assign(budget=budget, wins=(gains.rank(axis=1, ascending=False) == 1).sum()))
    return pd.concat(found).reset_index().sort_values(["budget", "rank"])


def switched(runs: pd.DataFrame) -> pd.DataFrame:
    """Return for each mechanism and budget on how many tasks it gains or loses (Mann and Whitney, p < .05)."""
    found = []
    for mechanism, name, other in SWITCHES:
        for budget, own in runs.groupby("budget"):
            wins = {"better": 0, "worse": 0, "level": 0}
            gains = own.groupby(["task", "search"])["gain"].apply(np.array)
            for task in TASKS:
                ours, theirs = (gains.get((task, each), np.empty(0)) for each in (name, other))
                if min(len(ours), len(theirs)) >= FEWEST:
                    p = mannwhitneyu(ours, theirs).pvalue
                    wins["level" if p >= 0.05 else "better" if ours.mean() > theirs.mean() else "worse"] += 1
            found.append({"mechanism": mechanism, "budget": budget, **wins})
    found = pd.DataFrame(found)
    return found[found[["better", "worse", "level"]].any(axis=1)]


def draw(runs: pd.DataFrame, names: list[str], levels: dict[str, Level]) -> None:
    """Draw the mean gain of each search on each task at the largest budget of all, relative to the best one there."""
    import matplotlib.pyplot as plt
    from PIL import Image

    searches = runs.groupby("budget")["search"].nunique()
    most = searches[searches == searches.max()].index.max()
    own = runs[(runs["budget"] == most) & runs["search"].isin(names)]
    gains = own.groupby(["search", "task"])["gain"].mean().unstack()
    gains = gains[[task for task in TASKS if task in gains]]
    share = gains / gains.max()
    share = share.loc[share.mean(axis=1).sort_values(ascending=False).index]
    figure, ax = plt.subplots(figsize=(9, 6), layout="constrained")
    image = ax.imshow(share, cmap="viridis", vmin=0, vmax=1, aspect="auto")
    ax.set_xticks(range(len(share.columns)), share.columns, rotation=30, ha="right")
    ax.set_yticks(range(len(share)), [levels[name].marked(name) for name in share.index])
    for i, j in np.ndindex(share.shape):
        value = share.iat[i, j]
        text, colour = ("no", "grey") if np.isnan(value) else (f"{value:.2f}", "black" if value > 0.6 else "white")
        ax.text(j, i, text, ha="center", va="center", fontsize=8, color=colour)
    figure.colorbar(image, label="gain over the best search's gain")
    first = f"Mean gain after {most:,} evaluations, relative to the best search"
    ax.set_title(f"{first}\n* uses structure, ** sees parts; no: cannot run on this task")
    figure.savefig(HERE / "ranks.png", dpi=90)
    Image.open(HERE / "ranks.png").convert("RGB").quantize(256).save(HERE / "ranks.png", optimize=True)


def main(
    seeds: int = 10,
    budget: Annotated[list[int] | None, typer.Option(help="evaluations of a run, 200 and 1,000 by default")] = None,
    only: Annotated[list[str] | None, typer.Option(help="the searches to run; all by default")] = None,
    tables: Annotated[bool, typer.Option("--tables", help="make no runs, only tables of those that are there")] = False,
) -> None:
    """Make the runs, the tables and the figure."""
    if not tables:
        make(seeds, budget or [200, 1000], only or SEARCHES)
    runs = seed_columns.read(FILE, KEY[:-1])
    levels = {name: knowledge(name) for name in SEARCHES}
    names = [name for name in SEARCHES if name not in {switch.without for switch in SWITCHES} - {"autotvm"}]
    apart = [ranked(runs, [name for name in names if levels[name] is level]).assign(sees=level.sees) for level in Level]
    pd.concat(apart).to_csv(HERE / "ranks.csv", index=False, float_format="%.3g")
    switched(runs).to_csv(HERE / "switches.csv", index=False)
    draw(runs, names, levels)


if __name__ == "__main__":
    typer.run(main)
