"""Writes and prints ranks.csv, switches.csv and rivals.csv, beside this file: `python results/searches/study.py`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from plan import PLANS

from bbo_suite import Level
from bbo_suite.scores import compare
from bbo_suite.store.run_table import read_runs

HERE = Path(__file__).parent
SWITCHES = {
    "annealing on a surrogate (AutoTVM)": ("autotvm", "autotvm without model"),
    "evolution on a surrogate (Ansor)": ("ansor", "ansor without model"),
    "adaptive share of random candidates (AdaTune)": ("adatune", "adatune with fixed share"),
    "clusters of the walker's plan (Chameleon)": ("chameleon", "chameleon without clusters"),
    "clusters of proposals (Chameleon, on AutoTVM)": ("chameleon-sampling", "autotvm"),
    "coarse to fine (Halide)": ("halide", "halide in one pass"),
}
"""A search with each mechanism, and one without."""
VARIANTS = {name for plan in PLANS for name, search in plan.searches().items() if name != search.strategy}


def ranks(runs: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield the mean rank of each search (1 is best) by mean gains over the tasks that it can run on.

    Each level of knowledge is ranked apart; `own_ms` is the search's own time for an evaluation.
    """
    own_ms = 1000 * runs["seconds"] / runs["evaluations"]
    searches = runs.assign(own_ms=own_ms)[~runs["strategy"].isin(VARIANTS)]
    for (level, budget), own in searches.groupby(["level", "budget"]):
        gains = own.pivot_table(index="problem", columns="strategy", values="gain")
        places = gains.rank(axis=1, ascending=False)
        found = pd.DataFrame({"rank": places.mean(), "tasks": gains.notna().sum(), "wins": (places == 1).sum()})
        found["own_ms"] = own.groupby("strategy")["own_ms"].median()
        yield found.assign(level=Level.named(level).sees, budget=budget).sort_values("rank").reset_index()


def switches(runs: pd.DataFrame) -> Iterator[dict[str, object]]:
    """Yield on how many tasks each mechanism gains or loses with each budget (Mann and Whitney, p < .05)."""
    for mechanism, pair in SWITCHES.items():
        for budget in sorted(set(runs["budget"])):
            tasks = compare(runs, tuple((f"published:{name}", budget) for name in pair), "gain")
            sure, better = tasks["p"] < 0.05, tasks["mean"] > tasks["other_mean"]
            counts = {"better": (sure & better).sum(), "worse": (sure & ~better).sum(), "level": (~sure).sum()}
            yield {"mechanism": mechanism, "budget": budget, **counts}


def rivals(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the mean over the runs of each search on each problem with each budget, its standard error and own time.

    On recorded spaces the value is the optimum over the best, elsewhere the gain in percent.
    """
    read = [runs.assign(best=runs[f"best@{n}"], budget=n)[runs[f"best@{n}"].notna()] for n in (100, 200)]
    long = pd.concat([runs, *read])
    recorded = long["problem"].str.startswith("recorded")
    gains = 100 * (long["default"] / long["best"] - 1)
    long["value"] = (long["optimum"] / long["best"]).where(recorded, gains)
    long["own_ms"] = 1000 * long["seconds"] / long["evaluations"]
    found = long.groupby(["problem", "budget", "strategy"])
    values = {"mean": found["value"].mean(), "error": found["value"].sem(), "runs": found["value"].count()}
    used = {"own_ms": found["own_ms"].median(), "evaluations": found["evaluations"].median()}
    return pd.DataFrame(values | used).reset_index()


if __name__ == "__main__":
    table = read_runs(HERE / "runs.csv.gz")
    table["gain"] = 100 * (table["speedup"].clip(lower=1) - 1)
    ranked, switched = pd.concat(ranks(table)), pd.DataFrame(switches(table))
    ranked.to_csv(HERE / "ranks.csv", index=False, float_format="%.3g")
    switched.to_csv(HERE / "switches.csv", index=False)
    after_2021 = rivals(read_runs(HERE / "rivals-runs.csv.gz"))
    after_2021.to_csv(HERE / "rivals.csv", index=False, float_format="%.4g")
    print(*(frame.to_string(index=False) for frame in (ranked, switched, after_2021)), sep="\n\n")
