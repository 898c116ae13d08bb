"""What `graybox` costs: seconds of ask and tell in a run of 200 candidates.

`pytest tests/benchmarks/test_graybox.py -s` prints a line for each task.
"""

from __future__ import annotations

import time

import numpy as np
import pytest

import bbo_suite
from bbo_strategies.graybox import GrayBox, GrayBoxOptions
from bbo_suite import Told
from bbo_suite.core.evaluation import evaluate

BUDGET = 200


def own_milliseconds(name: str) -> float:
    """Return the CPU time of a candidate, without that of its evaluation."""
    problem = bbo_suite.problem(name)
    strategy = GrayBox(problem.task(bbo_suite.Level.PARTS), BUDGET, np.random.default_rng(0), GrayBoxOptions())
    used, seconds = 0, 0.0
    while used < BUDGET:
        started = time.process_time()
        configs = strategy.ask(min(20, BUDGET - used))
        seconds += time.process_time() - started
        told = evaluate(problem, configs, with_parts=True)
        started, used = time.process_time(), used + len(configs)
        strategy.receive(Told(configs, told.values, told.parts))
        seconds += time.process_time() - started
    return 1000 * seconds / BUDGET


@pytest.mark.parametrize(("name", "most"), [("fusion/resnet_v2-50-infer-b64", 15), ("tile/ssd-resnet34-infer-b32", 15)])
def test_own_time(name, most):
    own_milliseconds(name)  # compiles
    took = own_milliseconds(name)
    print(f"{name}: {took:.1f} ms a candidate")
    assert took < most
