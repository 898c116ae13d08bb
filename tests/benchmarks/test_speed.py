"""Timings of the hot paths: `pytest tests/benchmarks -m slow`. Where tests run in parallel each is made only once."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import bbo_suite
from bbo_suite import Evaluations, Problem, Space, Strategy, Study, load
from bbo_suite.core.evaluation import evaluate
from bbo_suite.registry import Registry
from bbo_suite.testing import play, start

pytestmark = pytest.mark.slow
BATCH, BUDGET = 100, 2_000
PROBLEMS = [
    *(f"{family}/resnet50" for family in ("fusion", "layout", "tile", "flags", "joint", "sharding")),
    *("fusion/transformer", "ordering/40x50-a", "ehrlich/32x32-a", "scratchpad/bert@2MiB", "recorded/gcc-huffman"),
]


def strategy(name: str) -> type[Strategy]:
    return Registry().strategy(name)


@pytest.mark.parametrize("near", [True, False], ids=["near the default", "random"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_evaluation(benchmark, name: str, near: bool) -> None:
    """100 candidates: about one change of the default, and uniform ones."""
    problem, rng = bbo_suite.problem(name), np.random.default_rng(0)
    rows = problem.space.sample(BATCH, rng)
    if near:
        rows = np.where(rng.random(rows.shape) < 1 / len(problem.space), rows, problem.default_row())
    found = benchmark(evaluate, problem, rows)
    assert len(found.values) == BATCH and (np.isfinite(found.values).any() or not near)


@pytest.mark.parametrize("name", ["fusion/resnet50", "tile/resnet50"])
def test_evaluation_with_parts(benchmark, name: str) -> None:
    """100 random candidates with the costs of their parts."""
    problem = bbo_suite.problem(name)
    rows = problem.space.sample(BATCH, np.random.default_rng(0))
    found = benchmark(evaluate, problem, rows, with_parts=True)
    np.testing.assert_allclose(found.parts.sums(), found.values)


@pytest.mark.parametrize("d", [300, 3000])
@pytest.mark.parametrize("name", ["random", "annealing", "evolution", "local", "mbo", "portfolio"])
def test_strategy(benchmark, name: str, d: int) -> None:
    """2,000 candidates in batches of 100 with costs that a dot product gives."""
    space, weights = Space(np.full(d, 2)), np.random.default_rng(0).normal(size=d)

    def search() -> float:
        batches = play(start(strategy(name), space, BUDGET), lambda rows: 1000 + rows[:, ::10] @ weights[::10], BATCH)
        return min(values.min() for _, values in batches)

    assert benchmark.pedantic(search, rounds=3, warmup_rounds=1) < 1000


class Free(Problem):
    """Costs nothing to evaluate."""

    def __init__(self, d: int) -> None:
        self.space, self.default = Space(np.full(d, 2)), np.zeros(d, np.int8)

    def evaluate(self, configs) -> Evaluations:
        return Evaluations.of(np.ones(len(configs)))


class Constant(Strategy):
    """Costs nothing to ask."""

    def ask(self, n: int):
        if not hasattr(self, "batch"):
            self.batch = self.task.space.sample(n, self.rng)
        return self.batch[:n]


def engine(results: Path, repeats: int) -> Study:
    return bbo_suite.run(
        Constant, Free(783), budget=5 * BUDGET, repeats=repeats, study="s", results=results, jobs=1, quiet=True
    )


def test_engine(benchmark, tmp_path: Path) -> None:
    """A run of 10,000 candidates in batches of 100, with the store, but with nothing to ask and nothing to evaluate."""
    count = itertools.count()
    found = benchmark.pedantic(lambda: engine(tmp_path / str(next(count)), 1), rounds=5, warmup_rounds=1)
    assert found[0]["evaluations"] == 5 * BUDGET


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a study of 20 runs of 10,000 evaluations."""
    folder = tmp_path_factory.mktemp("results")
    engine(folder, 20)
    return folder


def test_reading(benchmark, results: Path) -> None:
    """Every evaluation of 20 runs as a frame."""
    assert len(benchmark.pedantic(load, ("s", results), rounds=3)) == 20 * 5 * BUDGET


def test_results_of_runs(benchmark, results: Path) -> None:
    """One row of results for each of 20 runs."""
    assert len(benchmark.pedantic(lambda: Study("s", results).runs(), rounds=3)) == 20
