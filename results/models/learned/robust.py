"""Ways to search on a learned model without falling for its errors: `python results/models/learned/robust.py DATA`.

DATA is made by `python -m bbo_problems.learned data`. Models are trained on its programs without those of `VALIDATION`,
on which the ways are compared: networks on random kernels, on kernels that searches on the model visit, the worst of
three networks, and several searches instead of one.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from bbo_problems.learned import dataset
from bbo_problems.learned.dataset import Chosen, Kernels, choose
from bbo_problems.learned.generate import MOST_NODES, VALIDATION
from bbo_problems.learned.kernels import KernelGraphs, KernelReader
from bbo_problems.learned.model import CostModel
from bbo_problems.learned.network import Network
from bbo_problems.learned.screen import LearnedScreen
from bbo_problems.learned.training import Recipe, train
from bbo_problems.tensor_compiler.fusion.fusion_pass import Fusion
from bbo_problems.tensor_compiler.fusion.state import StateBuffer
from bbo_problems.tensor_compiler.graph.build import read_graph
from bbo_problems.tensor_compiler.hardware.machine import MACHINES, Rate
from bbo_problems.tensor_compiler.layout.layout_pass import LayoutPass
from bbo_problems.tensor_compiler.tasks.programs import program
from bbo_suite.core.evaluation import default_value, evaluate
from bbo_suite.core.task import Screen
from bbo_suite.registry import Registry

HERE = Path(__file__).parent
JUDGED = ("dlrm-kaggle-infer-b64", "transformer")
VISITED = ("bert-tiny-infer-b64-s128", "dlrm-terabyte-infer-b2048")
KERNELS, EPOCHS, NETWORKS, ROUNDS = 6000, 10, 3, 2
CANDIDATES, KEEP, SEEDS, BUDGETS = 1000, 30, range(2), (1, 10, 30)


def main(path: str) -> None:
    """Write a row for each way, task and seed."""
    every = dataset.load(Path(path))
    data = every.of(set(every.programs) - set(VALIDATION))
    data = data.take(np.sort(np.random.default_rng(0).permutation(len(data))[:KERNELS]))
    rows = []
    for row in runs(data):
        print(row, flush=True)
        rows.append(row)
        pd.DataFrame(rows).to_csv(HERE / "robust.csv", index=False, float_format="%.4f")


def runs(data: Kernels) -> Iterator[dict[str, object]]:
    """Yield the gains over the default, in percent, after each of `BUDGETS` evaluations."""
    networks = [fitted(data, seed) for seed in range(NETWORKS)]
    yield from judged("estimate", [], 1)
    yield from judged("network", networks[:1], 1)
    yield from judged("three searches", networks[:1], 3)
    yield from judged("worst of three networks", networks, 1)
    yield from judged("worst of three networks, three searches", networks, 3)
    own = networks[0]
    for number in range(1, ROUNDS + 1):
        data = joined([data, *(visited(name, own, number) for name in VISITED)])
        own = fitted(data, number)
        yield from judged(f"visited kernels, round {number}", [own], 1)
    yield from judged("visited kernels, three searches", [own], 3)


def fitted(data: Kernels, seed: int) -> Network:
    """Return a network for kernel times."""
    return train(data, Recipe(("graph",), "log_mse", epochs=EPOCHS), np.random.default_rng(seed), lambda *_: None)


def judged(way: str, networks: list[Network], searches: int) -> Iterator[dict[str, object]]:
    """Yield a row for each task and seed."""
    for name in JUDGED:
        problem = Registry().load(f"fusion/{name}")
        for seed in SEEDS:
            started = time.process_time()
            configs = chosen(problem, networks, searches, seed)
            values = np.minimum.accumulate(evaluate(problem, configs).values)
            gains = {f"gain {n}": 100 * (default_value(problem) / values[min(n, len(values)) - 1] - 1) for n in BUDGETS}
            yield {"way": way, "task": problem.id, "seed": seed} | gains | {"seconds": time.process_time() - started}


def chosen(problem, networks: list[Network], searches: int, seed: int) -> np.ndarray:  # noqa: ANN001 - a fusion problem
    """Return the candidates to evaluate, the best first: in turn those of each search."""
    found = Registry().strategy("screened:annealing")
    options = found.Options(keep=KEEP // searches, candidates=CANDIDATES // searches)
    task, lists = replace(problem.task(True, Registry()), screen=screened(problem, networks)), []
    for number in range(searches):
        strategy = found(task, KEEP, np.random.default_rng([seed, number]), options)
        lists.append(strategy.ask(KEEP))
    return np.array([configs[i] for i in range(KEEP) for configs in lists if i < len(configs)])


def screened(problem, networks: list[Network]) -> Callable[[str], Screen]:  # noqa: ANN001 - a fusion problem
    """Return a screen by the largest cost that one of some networks predicts, or by the estimate if there is none."""
    if not networks:
        return problem.screen
    screens = [
        LearnedScreen(
            CostModel("v5e", (), "mean", network, network, np.zeros(2)),
            problem._machine,
            KernelReader(problem._graph),
            problem._analytical_compiler(),
        )
        for network in networks
    ]
    return lambda _: lambda configs: np.max([screen(configs) for screen in screens], axis=0)


def visited(name: str, network: Network, seed: int) -> Kernels:
    """Return the kernels of the best candidates of a search on a network, with their times."""
    problem, machine = Registry().load(f"fusion/{name}"), MACHINES["v5e"]
    graph = read_graph(program(name))
    layout = LayoutPass(graph, machine)
    laid = layout.apply(layout.default())
    fusion, reader, parts = Fusion(laid, machine, StateBuffer()), KernelReader(graph), []
    known: set[bytes] = set()
    for config in chosen(problem, [network], 1, seed):
        kernels = fusion.kernels(config)
        new = np.array([i for i, row in enumerate(kernels.rows) if row.tobytes() not in known], np.int64)
        known |= {row.tobytes() for row in kernels.rows}
        if len(new):
            read = reader.read(laid, fusion, kernels.result[new])
            own = choose(kernels.rows[new], kernels.cycles[new] / machine.array()[Rate.HERTZ], machine)
            small = np.flatnonzero((np.diff(read.node_starts) <= MOST_NODES) & (own.seconds > 0))
            parts.append((read.take(small), own.take(small)))
    graphs, own = KernelGraphs.joined([read for read, _ in parts]), Chosen.joined([made for _, made in parts])
    none = dataset.Settings(np.zeros(len(graphs) + 1, np.int64), np.empty((0, 9), np.float32), np.empty(0), np.empty(0))
    owner = np.zeros(len(graphs), np.int64)
    return Kernels("v5e", (name,), owner, graphs, own.rows, own.values, own.estimates, own.seconds, none, none)


def joined(parts: list[Kernels]) -> Kernels:
    """Return the kernels of several data sets without their settings, which the networks here do not learn."""
    columns = {name: np.concatenate([getattr(part, name) for part in parts])
               for name in ("program", "rows", "chosen", "estimates", "seconds")}  # fmt: skip
    count = sum(map(len, parts))
    none = dataset.Settings(np.zeros(count + 1, np.int64), np.empty((0, 9), np.float32), np.empty(0), np.empty(0))
    graphs = KernelGraphs.joined([part.graphs for part in parts])
    return replace(parts[0], graphs=graphs, tiles=none, flags=none, **columns)


if __name__ == "__main__":
    main(*sys.argv[1:])
