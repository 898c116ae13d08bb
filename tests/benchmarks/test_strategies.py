"""What strategies cost beside annealing: seconds of ask and tell, and memory, over a whole run of 10,000 candidates.

`pytest tests/benchmarks/test_strategies.py -s -k 500` prints a line a strategy; each run is a child process of its own.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from bbo_strategies.published import PRESETS
from bbo_suite import Graph, Kind, Space, Structure, Task, UserError
from bbo_suite.registry import Registry

NAMES = [
    "annealing",
    "evolution",
    "local",
    "mbo",
    "portfolio",
    "rl",
    "optuna:NSGAIISampler",
    "nevergrad:DiscreteLenglerOnePlusOne",
    "pymoo:GA",
    *(f"published:{name}" for name in PRESETS if name != "deepcuts"),  # that one is told no model here
]
ORDERED = {"published:chameleon", "published:flextensor"}
"""Strategies that need ordered parameters."""
BUDGET, BATCH, LONGEST = 10_000, 100, 600
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}


def measure(name: str, d: int) -> dict[str, float]:
    """Return CPU seconds and peak MB of a run, measured in a child so that no run pays for another's memory.

    A strategy that is not registered, cannot be loaded, or takes too long, skips.
    """
    try:
        Registry().strategy(name)
    except UserError as error:
        pytest.skip(str(error))
    command = [sys.executable, str(Path(__file__)), name, str(d)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, env=os.environ | ONE_THREAD)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{name} does not finish {BUDGET:,} candidates of {d:,} parameters in {LONGEST} s")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@cache
def annealing(d: int) -> dict[str, float]:
    """Return what all others are compared with."""
    return measure("annealing", d)


@pytest.mark.parametrize("d", [500, 3000])
@pytest.mark.parametrize("name", NAMES)
def test_a_whole_run(benchmark, name: str, d: int) -> None:
    """The benchmark's own time is that of the child; what counts is in the line and in `extra_info`."""
    found = benchmark.pedantic(measure, (name, d), rounds=1)
    reference = annealing(d)
    ratios = {f"{what} / annealing": found[what] / reference[what] for what in ("microseconds", "megabytes")}
    benchmark.extra_info.update(found | ratios)
    words = f"{found['microseconds']:.0f} us a candidate ({ratios['microseconds / annealing']:.1f} x annealing)"
    print(
        f"\n{name}, {d:,} parameters: {words}, {found['megabytes']:.0f} MB ({found['cost']:.4f} of the default's cost)"
    )


def run(name: str, d: int) -> dict[str, float]:
    """Play one run in this process: costs are a ring of fields and couplings, the structure of which is declared."""
    strategy, rng = Registry().strategy(name), np.random.default_rng(0)
    fields, couplings = rng.normal(size=d).astype(np.float32), rng.normal(size=d).astype(np.float32)
    places = np.arange(d)
    ring = np.sort(np.column_stack([(places - 1) % d, (places + 1) % d]), axis=1).astype(np.int32)
    features = np.column_stack([fields, couplings])
    structure = Structure(np.arange(0, 2 * d + 1, 2), ring.reshape(-1), features, ("field", "coupling"))
    if name.startswith("published:"):  # some need a graph
        chain = np.column_stack([places[:-1], places[1:]]).astype(np.int32)
        graph = Graph(features, structure.feature_names, chain)
        structure = replace(structure, graph=graph, nodes=places.astype(np.int32))
    kinds = np.full(d, Kind.SCALE if name in ORDERED else Kind.CHOICE)
    declared = structure
    task = Task("benchmark/ring", Space(np.full(d, 2), kinds), np.zeros(d, np.int8), "seconds", declared)

    def cost(configs: np.ndarray) -> np.ndarray:
        signs = 1 - 2.0 * configs
        return 5 * d + signs @ fields + (signs * np.roll(signs, -1, axis=1)) @ couplings

    def play(budget: int) -> tuple[float, float, int]:
        """Return CPU seconds of the strategy, the best cost, and the number of candidates: some searches end."""
        clock = time.process_time()
        player = strategy(task, budget, np.random.default_rng(0), strategy.Options())
        seconds, done, best = time.process_time() - clock, 0, np.inf
        while done < budget:
            clock = time.process_time()
            configs = player.ask(min(BATCH, budget - done))
            seconds += time.process_time() - clock
            if not len(configs):
                break
            values = cost(configs)
            done, best = done + len(configs), min(best, values.min())
            clock = time.process_time()
            player.tell(configs, values)
            seconds += time.process_time() - clock
        return seconds, best, done

    play(3 * BATCH)  # what is compiled, and imported late, is no cost of a candidate
    seconds, best, done = play(BUDGET)
    if seconds < 1:  # short enough to be disturbed by others
        seconds = min(seconds, *(play(BUDGET)[0] for _ in range(4)))
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    relative = best / cost(task.default[None])[0]
    micros = 1e6 * seconds / done
    return {"seconds": seconds, "microseconds": micros, "megabytes": kilobytes / 1024, "cost": float(relative)}


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], int(sys.argv[2]))))
