"""Writes speedups.png and verdicts.csv beside this file, and prints the tables that README.md has."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from plan import PILOT

from bbo_suite.figures import speedup
from bbo_suite.figures.style import extend_caption
from bbo_suite.scores import compare, corrected_p, over_programs
from bbo_suite.stats import signed_rank_p, stratified_rank_sum
from bbo_suite.store.run_table import last_rows, read_runs

HERE, BUDGET = Path(__file__).parent, 10_000
SEARCHES = ("exhaustive", "annealing", "evolution", "mbo", "rl")
"""Those of the sources' figure; `rl` reads the graph, too, as theirs does."""


def verdicts(runs: pd.DataFrame) -> Iterator[dict[str, object]]:
    """Yield a row for each pair: p is van Elteren's over the runs of all programs that both ran, the first is ahead if
    `lead` is positive; `ahead` and `behind` count the programs that are decided by their own runs.
    """
    for pair in itertools.combinations(SEARCHES, 2):
        one, other = (runs[runs["strategy"] == name].groupby("problem")["speedup"] for name in pair)
        shared = sorted(one.groups.keys() & other.groups.keys())
        both = [(one.get_group(problem), other.get_group(problem)) for problem in shared]
        lead, p, _ = stratified_rank_sum(both, np.random.default_rng(0))
        alone = compare(runs, pair)["ahead"]
        row = {"strategy": pair[0], "against": pair[1], "programs": len(shared), "lead": lead, "p": p}
        yield row | {"ahead": (alone > 0).sum(), "behind": (alone < 0).sum()}


def draw(runs: pd.DataFrame) -> None:
    """Draw the mean speedups. `exhaustive` is far off the scale of the others, so its numbers stand in the caption."""
    far = runs["strategy"] == "exhaustive"
    figure, _ = speedup.draw(last_rows(runs[~far].reset_index(drop=True)))
    means = runs[far].groupby("problem")["speedup"].mean()
    least = f"Not drawn: exhaustive, {means.min():.2f} to {means.max():.2f}, slower than the default."
    extend_caption(figure, least)
    figure.savefig(HERE / "speedups.png", dpi=80)


if __name__ == "__main__":
    runs = read_runs(HERE / "runs.csv.gz")
    runs = runs[runs["seed"] != PILOT]
    named = runs["strategy"].where(runs["budget"] == BUDGET, runs["strategy"] + " (200)")
    shown = runs.assign(strategy=named).reset_index(drop=True)
    table = pd.DataFrame(verdicts(shown))
    table["holm"] = corrected_p(table["p"].to_numpy())
    table.to_csv(HERE / "verdicts.csv", index=False, float_format="%.3g")
    print(table.to_string(index=False))
    wide = shown.pivot_table(index="problem", columns="strategy", values="speedup", aggfunc=["mean", "count"])
    print(wide.round(4).to_string())
    print(np.exp(np.log(wide["mean"]).mean()).round(4).to_string())
    draw(shown)
    wide = (
        read_runs(HERE / "all-runs.csv.gz").pivot_table(index="problem", columns="strategy", values="speedup").dropna()
    )
    found = {name: over_programs(own, (1, 5)) for name, own in wide.items()}
    print(pd.DataFrame(found).T.round(4).to_string())
    for first, second in itertools.combinations(wide.columns, 2):
        ahead, behind = ((wide[first] - wide[second]) * sign > 1e-9 for sign in (1, -1))
        print(first, ahead.sum(), second, behind.sum(), "p", signed_rank_p(wide[first], wide[second]))
