"""Our searches on the problems of the ASPLOS 2025 contest, beside the published results of its 20 teams and of XLA.

Run `python results/outside/sharding.py FOLDER`, with the folder of the files `asplos-2025-iopddl-B.json.gz` and others.
It takes an hour on one core, writes `sharding.csv` beside itself and prints the table of `README.md`. Some problems or
seeds only: `--problems BG --seeds 3`.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bbo_suite.core.evaluation import evaluate
from bbo_suite.core.strategy import tell
from bbo_suite.registry import Registry

HERE = Path(__file__).parent
BUDGET = 10_000
LEVELS = (("graybox", "parts"), ("local", "structure"), ("annealing", "costs"), ("mbo", "costs"))
SECONDS = {"B": 60, "G": 120, "P": 240, "U": 300}
"""What the contest gave its teams; ours get as much of one core, loading and evaluations included."""
FIELDS = ("problem", "solver", "knows", "seed", "seconds", "evaluations", "cost")


def search(path: Path, strategy: str, seed: int, seconds: float) -> Iterator[tuple[float, int, float]]:
    """Yield the processor seconds, the evaluations and the cost at each improvement by 1 %, and at the end."""
    began = time.process_time()
    registry = Registry()
    problem, found = registry.load(f"sharding:{path}"), registry.strategy(strategy)
    task = problem.task(found.uses_structure, registry, found.uses_parts)
    searching = found(task, BUDGET, np.random.default_rng(seed), found.Options())
    best, yielded, spent = np.inf, np.inf, 0
    while spent < BUDGET and time.process_time() - began < seconds:
        rows = searching.ask(min(100, BUDGET - spent))
        if not len(rows):
            break
        result = evaluate(problem, rows, with_parts=found.uses_parts)
        tell(searching, rows, result.values, result.parts)
        spent += len(rows)
        best = min(best, float(result.values.min()))
        if best < 0.99 * yielded:
            yielded = best
            yield time.process_time() - began, spent, best
    yield time.process_time() - began, spent, best


def published() -> Iterator[dict[str, object]]:
    """Yield what the teams reached; a cost of 10^18 and more contains impossible pairs."""
    with (HERE / "sharding_teams.csv").open() as file:
        for row in csv.DictReader(file):
            for name, seconds in SECONDS.items():
                if row[name]:
                    yield dict(problem=name, solver=row["team"], knows="all", seconds=seconds, cost=int(row[name]))


def main() -> None:
    """Run our searches and write all results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--problems", default="BGPU")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--strategies", default=",".join(name for name, _ in LEVELS))
    given = parser.parse_args()
    rows = read() or list(published())
    for name in given.problems:
        for strategy, knows in LEVELS:
            for seed in range(given.seeds if strategy in given.strategies.split(",") else 0):
                path = given.folder / f"asplos-2025-iopddl-{name}.json.gz"
                key = dict(problem=name, solver=strategy, knows=knows, seed=seed)
                rows = [row for row in rows if any(str(row.get(k)) != str(v) for k, v in key.items())]
                for seconds, spent, cost in search(path, strategy, seed, SECONDS[name]):
                    rows.append(dict(**key, seconds=round(seconds, 1), evaluations=spent, cost=int(min(cost, 1e30))))
                print(rows[-1], flush=True)
                write(rows)
    print(table(rows))


def read() -> list[dict[str, object]]:
    """Return the rows that were written before."""
    path = HERE / "sharding.csv"
    if not path.exists():
        return []
    with path.open() as file:
        return list(csv.DictReader(file))


def write(rows: list[dict[str, object]]) -> None:
    """Write all rows."""
    with (HERE / "sharding.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def table(rows: list[dict[str, object]]) -> str:
    """Return a table of all solvers, best first on G; of ours the median over seeds of the last cost."""
    solvers = {(str(row["solver"]), str(row["knows"])) for row in rows}
    costs = {key: {name: _cost(rows, key[0], name) for name in SECONDS} for key in solvers}
    lines = ["| solver | knew | B | G | P | U |", "|---|---|---|---|---|---|"]
    for (solver, knows), found in sorted(costs.items(), key=lambda item: item[1]["G"]):
        cells = " | ".join(_text(cost) for cost in found.values())
        lines.append(f"| {solver} | {knows} | {cells} |")
    return "\n".join(lines)


def _cost(rows: list[dict[str, object]], solver: str, name: str) -> float:
    last: dict[object, float] = {}
    for row in rows:
        if row["solver"] == solver and row["problem"] == name:
            last[row.get("seed")] = float(str(row["cost"]))
    return float(np.median(list(last.values()))) if last else np.inf


def _text(cost: float) -> str:
    return "-" if np.isinf(cost) else "impossible" if cost >= 1e18 else f"{cost:,.0f}"


if __name__ == "__main__":
    main()
