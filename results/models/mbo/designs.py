"""Would `mbo` be better with another target, other features or another way to choose? One design at a time.

    python results/models/mbo/designs.py           # designs_of_mbo.csv: only the runs that it lacks; 50 minutes for all
    python results/models/mbo/designs.py table     # prints mean ranks, hit rates, and who differs from `mbo` as it is

Nine training tasks of nine families, 1,000 evaluations in batches of 20, ten seeds.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import pandas as pd
from study import run
from tried import DESIGNS

from bbo_suite.stats import holm, rank_sum_p_values

FILE = Path(__file__).parent / "designs_of_mbo.csv"
TASKS = (
    *("fusion/resnet_v2-50-infer-b64", "tile/ssd-resnet34-infer-b32", "flags/resnet_v2-50-infer-b64"),
    *("layout/resnet_v2-50-infer-b64", "kernel/ssd-resnet34-infer-b32", "ordering/train-40-a", "ehrlich/32x32-a#21"),
    *("sharding/rnn@2x4", "scratchpad/bert@2MiB"),
)
SEEDS, BUDGET = 10, 1_000
PLAIN = "as it is"
Key = tuple[str, str, int]


def wanted() -> Iterator[Key]:
    """Yield the design, task and seed of each run."""
    for seed in range(SEEDS):
        yield from ((design, task, seed) for design in ("annealing", PLAIN, *DESIGNS) for task in TASKS)


def made(design: str, task: str, seed: int) -> dict[str, object]:
    """Return the row of a run."""
    with ExitStack() as replaced:
        for place, new in DESIGNS.get(design, {}).items():
            replaced.enter_context(patch(f"bbo_strategies.mbo.{place}", new))
        row = run(task, "annealing" if design == "annealing" else "mbo", BUDGET, seed)
    measured = {key: row[key] for key in ("g200", "g1000", "own", "hits")}
    return {"design": design, "problem": task, "seed": seed} | measured


def complete() -> None:
    """Make the runs that the table lacks, and write it after each."""
    rows = pd.read_csv(FILE).to_dict("records") if FILE.exists() else []
    done = {(row["design"], row["problem"], row["seed"]) for row in rows}
    for key in wanted():
        if key not in done:
            rows.append(made(*key))
            print(rows[-1], flush=True)
            pd.DataFrame(rows).to_csv(FILE, index=False, float_format="%.4g")


def compare() -> None:
    """Print a row for each design, and the differences from `mbo` as it is that chance does not explain."""
    runs = pd.read_csv(FILE)
    points = ["g200", "g1000"]
    means = runs.groupby(["problem", "design"])[points].mean()
    table = means.groupby("problem").rank(ascending=False).groupby("design").mean()
    hits = runs.groupby(["design", "problem"]).hits.median().groupby("design").median()
    own = runs.groupby(["design", "problem"]).own.median().groupby("design").median()
    print(table.assign(hits=hits, own=own).sort_values("g1000").round(2).to_string())
    for point in points:
        for design in table.index:
            mine, others = (runs[runs.design == name].groupby("problem")[point] for name in (design, PLAIN))
            p = holm(rank_sum_p_values([(mine.get_group(task), others.get_group(task)) for task in TASKS]))
            for task, value in zip(TASKS, p, strict=True):
                if value < 0.05:
                    gains = [means.loc[(task, name), point] for name in (design, PLAIN)]
                    print(f"{point} {design}, {task}: {gains[0]:.4g} against {gains[1]:.4g}, p {value:.3f}")


def main(part: str = "runs") -> None:
    """Make the runs, or print the table."""
    {"runs": complete, "table": compare}[part]()


if __name__ == "__main__":
    main(*sys.argv[1:])
