"""A strategy that ignores the costs of parts pays nothing for them: `pytest tests/benchmarks -k overhead_of_parts`.

The same random candidates of a large fusion task are evaluated with and without parts. `-s` prints both times.
"""

from __future__ import annotations

import time

import numpy as np

import bbo_suite
from bbo_suite.core.evaluation import evaluate

CANDIDATES, ROUNDS = 20, 15


def seconds(problem: bbo_suite.Problem, rows: np.ndarray, asked: bool) -> float:
    """Return the least CPU time of a batch, of several rounds."""
    took = []
    for _ in range(ROUNDS):
        started = time.process_time()
        evaluate(problem, rows, with_parts=True) if asked else evaluate(problem, rows)
        took.append(time.process_time() - started)
    return min(took)


def test_evaluations_without_parts_take_as_long_as_those_of_a_problem_that_has_none(monkeypatch):
    problem = bbo_suite.problem("fusion/resnet50")
    rows = problem.space.sample(CANDIDATES, np.random.default_rng(0))
    ignored, asked = (seconds(problem, rows, with_parts) for with_parts in (False, True))
    monkeypatch.delattr(type(problem), "evaluate_parts")
    without = seconds(problem, rows, False)
    print(f"ms for {CANDIDATES}: parts ignored {1e3 * ignored:.2f}, told {1e3 * asked:.2f}, none {1e3 * without:.2f}")
    assert ignored < 1.2 * without
