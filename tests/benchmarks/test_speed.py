"""Timings of the hot paths, to look at: `pytest tests/benchmarks`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bbo_suite
from bbo_suite import Evaluations, Problem, Space, Strategy, Task
from bbo_suite.registry import Registry
from bbo_suite.runs.loop import run_loop
from bbo_suite.store.identity import Run
from bbo_suite.store.run_folder import RunFolder

BATCH = 100
GEMMA = Path(__file__).parents[3] / "shared" / "data" / "hlo" / "gemma3_1b_flax_call.hlo.gz"
PROGRAMS = ["fusion/rnn", "fusion/resnet50", "fusion/transformer", "fusion/mobilenet", f"fusion:{GEMMA}"]


@pytest.mark.parametrize("rows", ["default", "random"])
@pytest.mark.parametrize("problem_id", PROGRAMS)
def test_fusion_evaluation(benchmark, problem_id: str, rows: str) -> None:
    """100 candidates: changes of the default as strategies propose them, and uniform ones."""
    if problem_id.startswith("fusion:") and not GEMMA.exists():
        pytest.skip("the shared programs are not here")
    problem = bbo_suite.problem(problem_id)
    rng = np.random.default_rng(0)
    configs = problem.space.sample(BATCH, rng)
    if rows == "default":
        configs = np.where(rng.random(configs.shape) < 0.01, configs, problem.default).astype(np.int8)
    benchmark.extra_info["nodes"] = len(problem._fusion.arrays.kind)
    benchmark(problem.evaluate, configs)


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


@pytest.mark.parametrize("d", [60, 783, 3000])
def test_engine(benchmark, tmp_path: Path, d: int) -> None:
    """A run of 10,000 candidates in batches of 100, with the store, but with nothing to ask and nothing to evaluate."""
    problem, count = Free(d), iter(range(10**6))

    def run() -> None:
        identity = Run("free/free", "", "constant", {}, 0, 10_000, BATCH)
        with RunFolder(tmp_path / str(next(count)), identity.identity(), {}) as folder:
            run_loop(identity, problem, Constant, folder, lambda: False)

    benchmark.pedantic(run, rounds=5, warmup_rounds=1)


@pytest.mark.parametrize("d", [300, 3000])
@pytest.mark.parametrize("name", ["random", "annealing", "evolution"])
def test_strategy(benchmark, name: str, d: int) -> None:
    """2,000 candidates in batches of 100, told costs that a dot product gives."""
    strategy, space = Registry().strategy(name), Space(np.full(d, 2))
    weights = np.random.default_rng(0).normal(size=d)

    def search() -> None:
        player = strategy(
            Task("t", space, np.zeros(d, np.int8), "s"), 2000, np.random.default_rng(0), strategy.Options()
        )
        for _ in range(20):
            configs = player.ask(BATCH)
            player.tell(configs, 1000 + configs[:, ::10] @ weights[::10])

    benchmark.pedantic(search, rounds=5, warmup_rounds=1)
