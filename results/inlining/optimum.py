"""The smallest code that any inlining decisions give, on programs with few calls, and how far -Oz is from it.

    python results/inlining/optimum.py    # optimum.csv; half an hour of one core, and seconds when the cache has all

Where a program has at most 10,000 candidates, all are compiled. Otherwise all explicit ones are, in which no call is
left to LLVM, if they are at most 2,500; and then the best of them with one or two calls left to LLVM.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import bbo_suite
from bbo_problems.llvm.ir import names

HERE = Path(__file__).parent
ALL, EXPLICIT, BATCH = 10_000, 2_500, 200
CALL = 1
COLUMNS = (
    "program",
    "calls",
    "compiled",
    "all",
    "-Oz",
    "nothing inlined",
    "everything inlined",
    "least",
    "-Oz is larger by",
    "graybox",
)
SEEDS, BUDGET, NEARLY = 3, 200, 0.99


def lowest(problem: bbo_suite.Problem, rows: Iterator[NDArray]) -> tuple[int, float, NDArray]:
    """Return how many candidates there are, the lowest cost, and a candidate that has it."""
    count, least, best = 0, np.inf, problem.default_row()
    while batch := list(itertools.islice(rows, BATCH)):
        values = bbo_suite.evaluate(problem, np.array(batch)).values
        count += len(batch)
        if values.min() < least:
            least, best = float(values.min()), batch[int(values.argmin())]
    return count, least, best


def candidates(problem: bbo_suite.Problem, first: int) -> Iterator[NDArray]:
    """Yield all candidates whose values are not below the first."""
    return (np.array(row) for row in itertools.product(*(range(first, size) for size in problem.space.sizes)))


def nearly(row: NDArray) -> Iterator[NDArray]:
    """Yield a candidate with one or two calls left to LLVM."""
    for columns in itertools.chain(*(itertools.combinations(range(len(row)), n) for n in (1, 2))):
        changed = row.copy()
        changed[list(columns)] = 0
        yield changed


def needed(problem: bbo_suite.Problem, default: float, least: float) -> str:
    """Return after how many compilations `graybox` has 99 % of the gain, the most of three seeds; "" if it has not."""
    enough, found = default - NEARLY * (default - least), []
    for seed in range(SEEDS):
        batches = bbo_suite.search("graybox", problem, BUDGET, seed, batch=10)
        values = np.concatenate([batch.values for batch in batches])
        found.append(1 + int(np.argmax(values <= enough)) if values.min() <= enough else BUDGET + 1)
    return str(max(found)) if max(found) <= BUDGET else ""


def solved(name: str, problem: bbo_suite.Problem) -> list[object] | None:
    """Return the row of a program; None if it has too many candidates."""
    sizes = problem.space.sizes.astype(object)
    if everything := problem.space.cardinality <= ALL:
        count, least, _ = lowest(problem, candidates(problem, 0))
    elif np.prod(sizes - 1) <= EXPLICIT:
        count, least, best = lowest(problem, candidates(problem, CALL))
        more, other, _ = lowest(problem, nearly(best))
        count, least = count + more, min(least, other)
    else:
        return None
    ends = np.array([problem.default_row(), np.full(len(sizes), CALL), problem.space.sizes - 1])
    default, nothing, inlined = bbo_suite.evaluate(problem, ends).values
    gap = f"{100 * (default / least - 1):.2f} %"
    costs = (f"{x:.0f}" for x in (default, nothing, inlined, least))
    return [name, len(sizes), count, everything, *costs, gap, needed(problem, default, least)]


def main() -> None:
    """Write the table."""
    with (HERE / "optimum.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(COLUMNS)
        problems = {name: bbo_suite.problem(f"inlining/{name}") for name in names()}
        for name in sorted(names(), key=lambda name: problems[name].space.cardinality):
            if row := solved(name, problems[name]):
                table.writerow(row)
                file.flush()


if __name__ == "__main__":
    main()
