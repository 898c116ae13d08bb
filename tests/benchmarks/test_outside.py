"""What problems from outside cost, to read and to evaluate: `pytest tests/benchmarks/test_outside.py -s`."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import bbo_suite

REAL = Path(__file__).parents[3] / "shared/data/iopddl/asplos-2025-iopddl-B.json.gz"
NODES, EDGES, PAIRS = 65_000, 90_000, 20_000_000
LOAD = """
import resource, sys, time
import bbo_suite
began = time.process_time()
bbo_suite.problem(f"sharding:{sys.argv[1]}")
print(time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory) -> Path:
    """Return a file of 65,000 nodes and 20 million different pair costs, 250 MB."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(8, 23, NODES)
    first = rng.integers(0, NODES, EDGES)
    second = (first + rng.integers(1, 50, EDGES)) % NODES
    areas = sizes[first] * sizes[second]
    assert areas.sum() > PAIRS
    begins = np.sort(rng.integers(0, 10**6, NODES))
    nodes = {
        "intervals": np.column_stack([begins, begins + rng.integers(1, 3000, NODES)]).tolist(),
        "costs": [rng.integers(0, 10**9, size).tolist() for size in sizes],
        "usages": [rng.integers(0, 10**6, size).tolist() for size in sizes],
    }
    costs = [rng.integers(0, 10**9, area).tolist() for area in areas]
    edges = {"nodes": np.column_stack([first, second]).tolist(), "costs": costs}
    path = tmp_path_factory.mktemp("large") / "large.json"
    path.write_text(json.dumps({"problem": {"nodes": nodes, "edges": edges, "usage_limit": 10**15}}))
    return path


def microseconds(name: str, is_near: bool) -> float:
    """Return the CPU time of a candidate: one change of the default, or all drawn at random."""
    problem, rng = bbo_suite.problem(name), np.random.default_rng(0)
    rows = problem.space.sample(200, rng)
    if is_near:
        changed = np.arange(200), rng.integers(0, len(problem.space), 200)
        values, rows = rows[changed], np.repeat(problem.default_row()[None], 200, axis=0)
        rows[changed] = values
    problem.evaluate(rows)  # compiles
    began = time.process_time()
    problem.evaluate(rows)
    return (time.process_time() - began) / 200 * 1e6


def test_reading(large: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LOAD, str(large)], capture_output=True, text=True, check=True)
    seconds, gibibytes = map(float, done.stdout.split())
    print(f"20 million pair costs: {seconds:.1f} s, {gibibytes:.2f} GiB")
    assert seconds < 20 and gibibytes < 3


@pytest.mark.parametrize("is_near", [True, False])
def test_evaluation_of_65_000_nodes(large: Path, is_near: bool) -> None:
    took = microseconds(f"sharding:{large}", is_near)
    print(f"65,000 nodes, {'one change' if is_near else 'random'}: {took:.0f} us")
    assert took < 5_000


@pytest.mark.skipif(not REAL.exists(), reason="the contest's files are not here")
@pytest.mark.parametrize("is_near", [True, False])
def test_evaluation_of_816_nodes(is_near: bool) -> None:
    took = microseconds(f"sharding:{REAL}", is_near)
    print(f"816 nodes, {'one change' if is_near else 'random'}: {took:.1f} us")
    assert took < 60


@pytest.mark.parametrize("is_near", [True, False])
@pytest.mark.parametrize("name", ["bert@2MiB", "resnet@4MiB", "lstm@4MiB"])
def test_evaluation_of_networks(name: str, is_near: bool) -> None:
    took = microseconds(f"scratchpad/{name}", is_near)
    print(f"{name}, {'one change' if is_near else 'random'}: {took:.1f} us")
    assert took < (20 if is_near else 30)
