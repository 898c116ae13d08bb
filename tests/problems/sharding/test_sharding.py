"""Costs, failures, memory and parts of a small graph, against a plain walk over the file."""

import itertools

import numpy as np
import pytest

from bbo_suite import Status
from bbo_suite.core.evaluation import evaluate
from bbo_suite.registry import Registry


def plain(document, config):
    """Return the sum of possible costs, the number of impossible ones, and the most bytes at once."""
    problem = document["problem"]
    nodes, edges = problem["nodes"], problem["edges"]
    costs = [table[v] for table, v in zip(nodes["costs"], config, strict=True)]
    for (a, b), table in zip(edges["nodes"], edges["costs"], strict=True):
        costs.append(table[config[a] * len(nodes["costs"][b]) + config[b]])
    impossible = [c for c in costs if c >= 10**18]
    used = [table[v] for table, v in zip(nodes["usages"], config, strict=True)]
    alive = [sum(u for u, (a, b) in zip(used, nodes["intervals"], strict=True) if a <= t < b) for t in range(30)]
    return sum(costs) - 10**18 * len(impossible), len(impossible), max(alive)


def every(problem):
    return np.array(list(itertools.product(*map(range, problem.space.sizes))))


@pytest.fixture(params=["ring.json", "ring.json.gz"])
def problem_id(request, write, document):
    return f"sharding:{write(document, request.param)}"


def test_every_candidate_costs_what_the_file_says(problem_id, document):
    problem = Registry().load(problem_id)
    rows = every(problem)
    result = evaluate(problem, rows)
    for row, value, status in zip(rows.tolist(), result.values, result.status, strict=True):
        cost, impossible, memory = plain(document, row)
        fails = impossible > 0 or memory > 30
        assert (status != Status.OK) == fails
        assert value == (np.inf if fails else cost)
    assert result.reasons[0] == "1 of its costs mean impossible"
    row = rows.tolist().index([1, 2, 0, 0, 0])
    assert result.reasons[row] == "it needs 32 bytes at time 5, and the limit is 30"


def test_the_variant_pays_for_what_fails(problem_id, document):
    problem = Registry().load(f"{problem_id}@penalty")
    rows = every(problem)
    result = evaluate(problem, rows, with_parts=True)
    assert not result.status.any()
    assert result.parts is None
    for row, value in zip(rows.tolist(), result.values, strict=True):
        cost, impossible, memory = plain(document, row)
        assert value == cost + 1e18 * (impossible + max(0, memory - 30) / 30)


def test_the_default_is_feasible_where_least_memory_is_impossible(problem_id, document):
    problem = Registry().load(problem_id)
    assert plain(document, [0, 0, 1, 0, 0])[1] == 1
    assert problem.default.tolist() == [1, 0, 1, 0, 0]


def test_equal_tables_are_the_same_part(problem_id, document):
    problem = Registry().load(problem_id)
    result = evaluate(problem, problem.default[None], with_parts=True)
    nodes, edges = document["problem"]["nodes"]["costs"], document["problem"]["edges"]["costs"]
    assert len(problem.graph.tables) == sum(map(len, nodes)) + sum(map(len, edges[:-1]))
    assert result.parts.sums()[0] == result.values[0]


def test_structure_names_neighbours_and_the_memory_limit(problem_id):
    structure = Registry().load(problem_id).structure()
    near = np.split(structure.neighbours, structure.starts[1:-1])
    assert [sorted(row.tolist()) for row in near] == [[1, 3], [0, 2], [1, 3], [0, 2], []]
    capacity = structure.capacity
    assert capacity.limit == 30
    assert capacity.usages[capacity.firsts[1] : capacity.firsts[2]].tolist() == [1, 5, 9]


def test_without_a_limit_only_impossible_costs_fail(write, document):
    del document["problem"]["usage_limit"]
    problem = Registry().load(f"sharding:{write(document)}")
    rows = every(problem)
    assert (evaluate(problem, rows).status != Status.OK).tolist() == [plain(document, r)[1] > 0 for r in rows.tolist()]
    assert problem.structure().capacity is None


def test_costs_above_2_to_the_53_are_summed_exactly(write, document):
    big = 2**60
    document["problem"]["nodes"]["costs"][1] = [big // 2 + 1, big // 2 + 2, big // 2 + 3]
    problem = Registry().load(f"sharding:{write(document)}")
    rows = every(problem)
    result = evaluate(problem, rows)
    wanted = [float(plain(document, row)[0]) for row in rows.tolist()]
    assert [v for v in result.values.tolist() if v < np.inf] == [
        w for w, s in zip(wanted, result.status, strict=True) if s == Status.OK
    ]
