"""The smallest code that any inlining decisions give, on programs with few calls, and how far -Oz is from it.

    python results/inlining/optimum.py    # optimum.csv; an hour and a half of two busy cores

Candidates that LLVM decides alike are compiled once. LLVM says whether it inlines each call that is left to it, and a
candidate that asks for just that has the same code. There is one exception: LLVM merges two calls of a function only if
the same is asked of both. So of the calls of a function that stay, all are asked for, or none.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

import bbo_suite
from bbo_problems.inlining.problem import InliningProblem
from bbo_problems.inlining.sites import CALL, DEFAULT, INLINE
from bbo_problems.inlining.worker import DECIDED
from bbo_problems.llvm.ir import names

HERE = Path(__file__).parent
MOST, CHECKED, SAMPLE = 200_000, 10_000, 300
"""Programs with more candidates are left out; up to `CHECKED` all are compiled after all, of more a sample."""
COLUMNS = (
    *("program", "calls", "candidates", "compiled", "checked", "not as the class"),
    *("-Oz", "nothing inlined", "everything inlined", "least", "-Oz is larger by", "graybox"),
)
SEEDS, BUDGET, NEARLY = 3, 200, 0.99


class Classes:
    """All candidates of a program, by what LLVM makes of them.

    Attributes:
      costs: `(n,)` bytes of each; nan where nothing is known yet, infinite where it fails.
      compiled: how many were.
    """

    def __init__(self, problem: InliningProblem) -> None:
        self._problem, self._sizes = problem, tuple(problem.space.sizes)
        self._callees = problem.graph.callees
        self.costs, self.compiled = np.full(problem.space.cardinality, np.nan), 0
        for index in np.argsort((self.rows(np.arange(len(self.costs))) != DEFAULT).sum(axis=1), kind="stable"):
            if np.isnan(self.costs[index]):
                self._compile(index)

    def rows(self, indices: NDArray) -> NDArray:
        """Return the `(n, d)` candidates of `(n,)` numbers."""
        return np.stack(np.unravel_index(indices, self._sizes), axis=1)

    def _compile(self, index: int) -> None:
        row = self.rows(np.array([index]))
        cost = bbo_suite.evaluate(self._problem, row).values[0]
        alike = self._alike(row[0]) if np.isfinite(cost) else row
        numbers = np.ravel_multi_index(tuple(alike.T), self._sizes)
        self.costs[numbers[np.isnan(self.costs[numbers])]] = cost
        self.compiled += 1

    def _alike(self, row: NDArray) -> NDArray:
        """Return the candidates with the code of this one, which is the first."""
        found, made = row[None], self._problem.query((DECIDED, self._problem.request(row)))
        decided = np.array(list(made), int)
        for columns in self._free_together(row, decided):
            other = found.copy()
            other[:, columns] = decided[columns]
            found = np.concatenate([found, other])
        return found

    def _free_together(self, row: NDArray, decided: NDArray) -> list[list[int]]:
        """Return groups of columns that are left to LLVM: all of a group may ask for what it decides, or none."""
        groups = [[column] for column in np.flatnonzero((row == DEFAULT) & (decided == INLINE)).tolist()]
        columns = self._problem.graph.columns
        made = np.where(columns < 0, DEFAULT, decided[columns])
        left = np.where(columns < 0, False, (row[columns] == DEFAULT) & (made == CALL))
        for callee in np.unique(self._callees):
            stays = (self._callees == callee) & (made != INLINE)
            if stays.any() and left[stays].all():
                groups.append(columns[stays].tolist())
        return groups


def needed(problem: bbo_suite.Problem, default: float, least: float) -> str:
    """Return after how many compilations `graybox` has 99 % of the gain, the most of three seeds; "" if it has not."""
    enough, found = default - NEARLY * (default - least), []
    for seed in range(SEEDS):
        batches = bbo_suite.search("graybox", problem, BUDGET, seed, batch=10)
        values = np.concatenate([batch.values for batch in batches])
        found.append(1 + int(np.argmax(values <= enough)) if values.min() <= enough else BUDGET + 1)
    return str(max(found)) if max(found) <= BUDGET else ""


def solved(name: str) -> list[object]:
    """Return the row of a program."""
    problem = bbo_suite.problem(f"inlining/{name}")
    assert isinstance(problem, InliningProblem)
    classes = Classes(problem)
    count, rng = len(classes.costs), np.random.default_rng(0)
    checked = np.arange(count) if count <= CHECKED else rng.choice(count, SAMPLE, replace=False)
    own = bbo_suite.evaluate(problem, classes.rows(checked)).values
    differ = int((own != classes.costs[checked]).sum())
    ends = np.array([problem.default_row(), np.full(len(problem.space.sizes), CALL), problem.space.sizes - 1])
    default, nothing, inlined = bbo_suite.evaluate(problem, ends).values
    least = min(classes.costs.min(), own.min())
    gap = f"{100 * (default / least - 1):.2f} %"
    costs = (f"{x:.0f}" for x in (default, nothing, inlined, least))
    counts = (len(problem.space.sizes), count, classes.compiled, len(checked), differ)
    return [name, *counts, *costs, gap, needed(problem, default, least)]


def main() -> None:
    """Write the table."""
    sizes = {name: bbo_suite.problem(f"inlining/{name}").space.cardinality for name in names()}
    few = sorted((name for name in names() if sizes[name] <= MOST), key=lambda name: sizes[name])
    rows = Parallel(n_jobs=2, return_as="generator")(delayed(solved)(name) for name in few)
    with (HERE / "optimum.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(COLUMNS)
        for row in rows:
            table.writerow(row)
            file.flush()


if __name__ == "__main__":
    main()
