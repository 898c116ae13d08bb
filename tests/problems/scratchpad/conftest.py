import json

import pytest

from bbo_problems.scratchpad.problem import ScratchpadProblem


def squares(inputs, outputs, kinds, costs, side=128, capacity=35_000):
    """Return the content of a file whose tensors are squares."""
    count = 1 + max(t for tensors in [*inputs, *outputs] for t in tensors)
    return {
        "widths": [side] * count,
        "heights": [side] * count,
        "inputs": inputs,
        "outputs": outputs,
        "base_costs": costs,
        "op_types": kinds,
        "fast_memory_capacity": capacity,
        "slow_memory_bandwidth": 10,
        "native_granularity": [128, 128],
    }


@pytest.fixture
def contents():
    """Small graphs with the shapes of those that the contest's text explains."""
    chain = ([[0], [1]], [[1], [2]], ["Pointwise"] * 2, [1000, 100])
    return {
        "chain": squares(*chain),
        "large chain": squares(*chain, side=256, capacity=25_000),
        "diamond": squares([[0], [1], [1, 2]], [[1], [2], [3]], ["Pointwise"] * 3, [1500] * 3, capacity=50_000),
        "product": squares([[0, 1]], [[2]], ["MatMul"], [1500], capacity=25_000),
        "two products": squares([[0, 1], [3, 2]], [[3], [4]], ["MatMul"] * 2, [2000] * 2, capacity=45_000),
    }


@pytest.fixture
def load(tmp_path):
    """Write a file and return its problem."""

    def make(content):
        path = tmp_path / "graph.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return ScratchpadProblem.from_file(str(path))

    return make
