"""What describes parts knows no costs: another machine, on which every part costs something else, changes nothing."""

import numpy as np
import pytest

import bbo_suite
from bbo_suite.core.evaluation import evaluate


@pytest.mark.parametrize("family", ["fusion", "tile", "flags"])
def test_other_costs_leave_the_description_as_it_is(family):
    found, costs = [], []
    for machine in ("v3", "v4"):
        problem = bbo_suite.problem(f"{family}/rnn@{machine}")
        declared = problem.structure().parts
        rows = problem.space.sample(4, np.random.default_rng(0))
        described = declared.describe(rows)
        told = np.delete(described.features, [] if declared.estimate is None else [declared.estimate], axis=1)
        found.append((described.starts, described.keys, described.counts, told))
        costs.append(evaluate(problem, rows, with_parts=True).parts.costs)
    assert all(map(np.array_equal, *found))
    assert (costs[0] != costs[1]).mean() > 0.5
