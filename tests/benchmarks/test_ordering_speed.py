"""Made-up problems of order, 1,000 random candidates a call: `pytest tests/benchmarks -k ordering`.

Microseconds a candidate, of CPU time on one core: small 1.4, 40x50 3.4, 100x60 11, Ehrlich 2 to 3.
"""

from __future__ import annotations

import numpy as np
import pytest

import bbo_suite


@pytest.mark.parametrize(
    "problem_id", ["ordering/small-a", "ordering/40x50-a", "ordering/100x60-a", "ehrlich/32x32-a", "ehrlich/128x32-a"]
)
def test_evaluation(benchmark, problem_id: str) -> None:
    problem = bbo_suite.problem(problem_id)
    benchmark(problem.evaluate, problem.space.sample(1000, np.random.default_rng(0)))
