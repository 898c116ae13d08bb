"""What search and models gain on the real XLA:TPU compiler: `python results/models/learned/live.py search`.

`search` runs strategies on live tasks and writes live.csv. `barriers DATA` compiles every choice of barriers of a task
and tells how models rank these; it writes barriers.csv. DATA is made by `bbo_problems.learned data-xla-tpu`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import kendalltau

from bbo_problems.learned import dataset
from bbo_problems.learned.kernels import SIZES, KernelReader, features
from bbo_problems.learned.model import embeddings, scores
from bbo_problems.learned.network import Network
from bbo_problems.learned.training import Recipe, train
from bbo_problems.tensor_compiler.calibration.comparison import timed
from bbo_problems.tensor_compiler.fusion.fusion_pass import Fusion
from bbo_problems.tensor_compiler.fusion.state import StateBuffer
from bbo_problems.tensor_compiler.graph.build import build
from bbo_problems.tensor_compiler.hardware.kernel_settings import compile_kernels
from bbo_problems.tensor_compiler.hardware.machine import one_core
from bbo_problems.tensor_compiler.hlo import reader as hlo
from bbo_problems.tensor_compiler.layout.layout_pass import LayoutPass
from bbo_problems.tensor_compiler.models.lower import hlo_text
from bbo_problems.xla_tpu import blocks
from bbo_problems.xla_tpu.decisions import BARRIER
from bbo_problems.xla_tpu.marks import rewritten
from bbo_problems.xla_tpu.problem import XlaTpuProblem
from bbo_suite.core.evaluation import default_value, evaluate
from bbo_suite.core.strategy import tell
from bbo_suite.registry import Registry

HERE = Path(__file__).parent
TASKS = ("xla-tpu/attention", "xla-tpu/dlrm")
FEW = ("xla-tpu/dlrm", "xla-tpu/attention", "xla-tpu/norm", "xla-tpu/conv")
"""Tasks with so few barriers that every choice can be compiled."""
SEARCHES = ("annealing", "graybox")
RECIPE = Recipe(("graph",), "log_mae", epochs=30)
SEEDS, BUDGETS, BATCH = range(2), (30, 100, 300), 10


def main(what: str, *arguments: str) -> None:
    """Write one of the tables, a row as soon as it is known."""
    made, file = {"search": (searches, "live.csv"), "barriers": (barriers, "barriers.csv")}[what]
    rows = []
    for row in made(*arguments):
        print(row, flush=True)
        rows.append(row)
        pd.DataFrame(rows).to_csv(HERE / file, index=False, float_format="%.4f")


def searches() -> Iterator[dict[str, object]]:
    """Yield the gains over the default, in percent, after each of `BUDGETS` compilations."""
    for most in BUDGETS[1:]:
        for task in TASKS:
            for seed in SEEDS:
                for search in SEARCHES:
                    yield {"task": task, "search": search, "seed": seed} | gains(task, search, seed, most)


def gains(name: str, search: str, seed: int, most: int) -> dict[str, object]:
    """Return the gains of a run of some compilations; a strategy knows this number."""
    problem = Registry().load(name)
    default, found = default_value(problem), Registry().strategy(search)
    task = problem.task(found.uses_structure, Registry(), found.uses_parts)
    strategy, values = found(task, most, np.random.default_rng(seed), found.Options()), np.empty(0)
    while len(values) < most and len(configs := strategy.ask(min(BATCH, most - len(values)))):
        result = evaluate(problem, configs, with_parts=found.uses_parts)
        values = np.append(values, result.values)
        tell(strategy, configs, result.values, result.parts)
    best = np.minimum.accumulate(values)
    after = {f"gain {n}": 100 * (default / best[min(n, len(best)) - 1] - 1) for n in BUDGETS if n <= most}
    return {"budget": most, "compilations": len(best)} | after


def barriers(path: str) -> Iterator[dict[str, object]]:
    """Yield, for each task and model, how it ranks all choices of barriers, with the flags and layouts of the default.

    A model of kernels needs a candidate's kernels, which the compiler tells only after it has compiled it. So it is
    given those of the simulated compiler, which is run on the traced program with the barriers.
    """
    data = dataset.load(Path(path))
    network = train(data, RECIPE, np.random.default_rng(0), lambda *_: None)
    for task in FEW:
        problem = Registry().load(task)
        configs = choices(problem)
        values, default = evaluate(problem, configs).values, default_value(problem)
        predicted = np.array([priced(problem, config, network) for config in configs])
        for model, costs in zip(("simulator", "network"), predicted.T, strict=True):
            order = np.argsort(costs, kind="stable")
            best = {f"gain {k}": 100 * (default / values[order[:k]].min() - 1) for k in (1, 5, 10)}
            best["gain of all"] = 100 * (default / values.min() - 1)
            random = {f"random {k}": 100 * (default / least(values, k) - 1) for k in (1, 5, 10)}
            tau = kendalltau(costs, values)[0]
            spread = {"spread": values.max() / values.min(), "predicted spread": costs.max() / costs.min()}
            yield {"task": task, "model": model, "choices": len(values), "kendall": tau} | spread | best | random


def choices(problem: XlaTpuProblem) -> np.ndarray:
    """Return all choices of barriers, as rows."""
    columns = [i for i, decision in enumerate(problem._decisions) if decision.kind == BARRIER]
    rows = np.repeat(problem.default_row()[None], 2 ** len(columns), axis=0)
    rows[:, columns] = np.arange(len(rows))[:, None] >> np.arange(len(columns)) & 1
    return rows


def least(values: np.ndarray, k: int) -> float:
    """Return the expected best of k values without replacement."""
    ordered, n = np.sort(values), len(values)
    shares = [math.comb(n - 1 - i, k - 1) / math.comb(n, k) for i in range(n)]
    return float(ordered @ shares)


def priced(problem: XlaTpuProblem, config: np.ndarray, network: Network) -> tuple[float, float]:
    """Return the seconds of a candidate by the simulator, and those of the simulator's kernels by a network."""
    function, arguments = getattr(blocks, problem.id.partition("/")[2])()
    text = hlo_text((rewritten(function, problem.request(config).barriers), arguments))
    graph = build(hlo.parse(text, problem.id), problem.id)
    machine = one_core("v5e")
    layout = LayoutPass(graph, machine)
    laid = layout.apply(layout.default())
    fusion = Fusion(laid, machine, StateBuffer())
    kernels = fusion.kernels(fusion.default())
    read = KernelReader(graph).read(laid, fusion, kernels.result).cut(SIZES[-1])
    estimates = np.array(timed(kernels.rows, machine)[0]) / machine.hertz
    chosen = compile_kernels(kernels.rows, np.ones(len(kernels.rows)), machine).chosen.astype(np.float32)
    rows = features(kernels.rows, chosen, estimates, "v5e")
    logs = scores(network, "graph", embeddings(network, read), rows, estimates)
    return float(kernels.runs @ kernels.cycles) / machine.hertz, float(kernels.runs @ np.exp(logs))


if __name__ == "__main__":
    main(*sys.argv[1:])
