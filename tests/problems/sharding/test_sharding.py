"""Costs and parts against a plain walk; errors in files; our own programs, stored optima, and real files."""

import gzip
import itertools
import json

import numpy as np
import pytest

from bbo_problems.sharding.known import optima
from bbo_problems.sharding.make_optima import MESHES, solved
from bbo_problems.sharding.make_optima import row as stored_row
from bbo_problems.sharding.mesh import BYTES_PER_NANOSECOND, LATENCY, Mesh
from bbo_problems.sharding.program import loops, strategies
from bbo_problems.sharding.sharding_problem import ShardingProblem
from bbo_problems.tensor_compiler.graph.build import in_order
from bbo_problems.tensor_compiler.graph.flatten import Flattener
from bbo_problems.tensor_compiler.hlo.reader import parse
from bbo_suite import Status, UserError
from bbo_suite.core.evaluation import evaluate
from bbo_suite.registry import Registry

from .conftest import BIG, REAL


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


@pytest.mark.parametrize("limit", [None, 2**63 - 1, 5])
def test_a_node_that_never_lives_may_leave_an_impossible_cost(write, document, limit):
    document["problem"]["nodes"] = {"intervals": [[4, 4], [0, 9]], "costs": [[BIG, 7], [1, 2]], "usages": [[5, 60]] * 2}
    document["problem"] |= {"edges": {"nodes": [], "costs": []}, "usage_limit": limit}
    assert Registry().load(f"sharding:{write(document)}").default.tolist() == [1, 0]


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


MESH = Mesh((2, 4))
TEXT = """HloModule small
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY main {
  x = f32[16,8] parameter(0)
  w = f32[8,12] parameter(1)
  y = f32[16,12] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[12,16] transpose(y), dimensions={1,0}
  r = f32[3,4,16] reshape(t)
  z = f32[] constant(0)
  ROOT s = f32[3,16] reduce(r, z), dimensions={1}, to_apply=add
}""".replace("  b = ", "\n  b = ").replace("  ROOT c", "\n  ROOT c")


@pytest.fixture(scope="module")
def nodes():
    return {node.name: node for node in in_order(*Flattener(parse(TEXT)).entry())}


def test_loops_of_operations(nodes):
    found = {name: [(loop.extent, loop.result, loop.operands) for loop in loops(node)] for name, node in nodes.items()}
    assert found["y"] == [(16, 0, {0: 0}), (12, 1, {1: 1}), (8, -1, {0: 1, 1: 0})]
    assert found["t"] == [(12, 0, {0: 1}), (16, 1, {0: 0})]
    assert found["r"] == [(3, 0, {0: 0}), (4, 1, {}), (16, 2, {0: 1})]
    assert found["s"] == [(3, 0, {0: 0}), (4, -1, {0: 1}), (16, 1, {0: 2})]


def test_axes_split_loops_that_they_divide(nodes):
    splits = [s.split for s in strategies(nodes["r"], loops(nodes["r"]), MESH)]
    assert splits == [(-1, -1), (-1, 1), (-1, 2), (1, -1), (1, 2), (2, -1), (2, 1), (2, 2)]
    product = {s.split: s for s in strategies(nodes["y"], loops(nodes["y"]), MESH)}
    assert product[0, 2].result == (0, -1)
    assert product[0, 2].operands == ((0, 1), (-1, 0))


def moved(*sizes):
    return sum(LATENCY + size / BYTES_PER_NANOSECOND for size in sizes)


@pytest.mark.parametrize(
    ("have", "want", "nanoseconds"),
    [
        ((0, -1), (0, -1), 0.0),
        ((-1, -1), (0, 1), 0.0),
        ((-1, 0), (-1, -1), moved(800 / 4 * 3)),
        ((0, 1), (-1, -1), moved(800 / 8, 800 / 4 * 3)),
        ((0, -1), (1, -1), moved(800 / 2 / 2)),
        ((0, 1), (-1, 0), moved(800 / 8 * 3 / 4, 800 / 8)),
    ],
)
def test_collectives(have, want, nanoseconds):
    assert MESH.reshard(800.0, have, want) == pytest.approx(nanoseconds)


@pytest.mark.slow
def test_a_program_on_a_mesh():
    registry = Registry()
    small, large = registry.load("sharding/rnn"), registry.load("sharding/rnn@4x8")
    assert registry.load("sharding/rnn@2x4").fingerprint() == small.fingerprint() != large.fingerprint()
    costs = [problem.evaluate(problem.default[None]).values[0] for problem in (small, large)]
    assert np.isfinite(costs).all()
    assert costs[1] < costs[0]
    replicated = small.evaluate(np.zeros((1, len(small.space)), int))
    assert "bytes at time" in replicated.reasons[0]
    assert np.isfinite(registry.load("sharding/rnn@4x8@penalty").evaluate(np.zeros((1, len(large.space)), int)).values)


@pytest.mark.parametrize("variant", ["v4", "0x4", "2x4x2", "2x4@4x8", "1000x4"])
def test_an_unknown_variant_is_named(variant):
    with pytest.raises(UserError, match=variant.split("@")[0]):
        Registry().load(f"sharding/rnn@{variant}")


HUGE = [[2**63 - 1] * k for k in (2, 3, 2, 2, 1)]
CASES = {
    "no problem": ([], "problem", ..., "its JSON has no object 'problem'"),
    "an unknown key beside the problem": ([], "more", 1, "the file has the unknown key 'more'"),
    "an unknown key": (["problem"], "mesh", [2, 4], "problem has the unknown key 'mesh'"),
    "an unknown key of nodes": (["problem", "nodes"], "names", [], "nodes has the unknown key 'names'"),
    "no edges": (["problem"], "edges", ..., "problem has no key 'edges'"),
    "nodes that are a list": (["problem"], "nodes", [], "nodes is a list, not an object"),
    "no nodes": (["problem", "nodes"], "costs", [], "it has no nodes"),
    "fewer intervals": (["problem", "nodes"], "intervals", [[0, 1]], "nodes.intervals has 1 pairs for 5 nodes"),
    "half an interval": (["problem", "nodes", "intervals"], 1, [5], "nodes.intervals[1] has 1 numbers, not 2"),
    "fewer usages": (["problem", "nodes"], "usages", [[1, 2]], "nodes.usages has 1 lists for 5"),
    "a usage too few": (["problem", "nodes", "usages"], 1, [1, 5], "nodes.usages[1] has 2 numbers, not 3"),
    "a node without strategies": (["problem", "nodes", "costs"], 3, [], "nodes.costs[3] has 0 numbers"),
    "a cost too many": (["problem", "edges", "costs"], 2, [0] * 5, "edges.costs[2] has 5 numbers, not 4"),
    "an edge to nowhere": (["problem", "edges", "nodes"], 1, [2, 5], "edges.nodes[1] is [2, 5], not two different"),
    "an edge to itself": (["problem", "edges", "nodes"], 1, [2, 2], "edges.nodes[1] is [2, 2], not two different"),
    "a negative cost": (["problem", "nodes", "costs", 1], 2, -1, "nodes.costs[1] holds -1; numbers must be from 0"),
    "a huge cost": (["problem", "nodes", "costs", 1], 2, 2**63, "nodes.costs[1] holds 9223372036854775808"),
    "a huge time": (["problem", "nodes", "intervals", 0], 1, 2**70, "nodes.intervals[0] holds 1180591620717411303424"),
    "a negative edge": (["problem", "edges", "nodes", 0], 0, -1, "edges.nodes[0] holds -1"),
    "a fraction": (["problem", "nodes", "costs", 1], 2, 1.5, "nodes.costs[1] holds 1.5; it must hold integers"),
    "a truth value": (["problem", "nodes", "usages", 1], 2, True, "nodes.usages[1] holds True; it must hold integers"),
    "text": (["problem", "edges", "costs", 1], 2, "7", "edges.costs[1] holds text; it must hold integers"),
    "a number for a list": (["problem", "edges", "costs"], 1, 7, "edges.costs[1] is 7, not a list"),
    "a limit in words": (["problem"], "usage_limit", "30", "usage_limit holds text"),
    "a limit too low": (["problem"], "usage_limit", 13, "at time 5 the least usages add up to 14, and the limit is 13"),
    "costs that overflow": (
        ["problem", "nodes"],
        "costs",
        [[2**63 - 1] * k for k in (2, 3, 2, 2, 1)],
        "costs may add up to more than 2^63",
    ),
    "usages that overflow": (["problem", "nodes", "usages"], 0, [2**63 - 1] * 2, "usages may add up to more than 2^63"),
    "no way through": (["problem", "edges", "costs"], 2, [10**18] * 4, "impossible cost: all of edges.costs[2] are"),
    "no way for a node": (["problem", "nodes", "costs"], 4, [10**18], "impossible cost: all of nodes.costs[4] are"),
    "an interval backwards": (["problem", "nodes", "intervals"], 1, [15, 5], "[1] is [15, 5], which ends before it"),
}


@pytest.mark.parametrize("case", CASES)
def test_one_sentence(case, write, document):
    parents, key, value, words = CASES[case]
    target = document
    for parent in parents:
        target = target[parent]
    if value is ...:
        del target[key]
    else:
        target[key] = value
    path = write(document)
    with pytest.raises(UserError) as caught:
        Registry().load(f"sharding:{path}")
    assert words in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_key_that_occurs_twice_is_refused_and_the_last_does_not_win(write, document):
    text = json.dumps(document).replace('"usage_limit": 30', '"usage_limit": 30, "usage_limit": 3000')
    with pytest.raises(UserError, match="'usage_limit' occurs twice"):
        Registry().load(f"sharding:{write(text.encode())}")


def test_the_remedy_is_no_limit_where_there_is_none(write, document):
    document["problem"]["edges"] = {"nodes": [[0, 1]] * 2, "costs": [[0, 0, 0] + [BIG] * 3, [BIG] * 3 + [0, 0, 0]]}
    for limit, remedy in ((None, "lower a cost"), (30, "raise the limit")):
        document["problem"]["usage_limit"] = limit
        with pytest.raises(UserError, match=f"no candidate without an impossible cost was found; {remedy}"):
            Registry().load(f"sharding:{write(document)}")


def test_cut_files(write, document):
    text = json.dumps(document).encode()
    packed = gzip.compress(text)
    for name, whole in (("a.json", text), ("b.json", packed)):
        for length in (0, 1, 2, len(whole) // 2, len(whole) - 1):
            path = write(whole[:length], name)
            with pytest.raises(UserError, match=r"cannot use .* (JSON|damaged)"):
                Registry().load(f"sharding:{path}")


def test_no_file(tmp_path):
    with pytest.raises(UserError, match=r"cannot read .*none.json"):
        Registry().load(f"sharding:{tmp_path / 'none.json'}@penalty")


NAMES = sorted(known.name for known in optima().values())


def named(name):
    return next(known for known in optima().values() if known.name == name)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_stored_candidate_costs_what_is_stored(name):
    problem, known = ShardingProblem(name), named(name)
    assert problem.bound == known.bound
    assert problem.optimum == known.optimum
    assert optima()[problem.graph.digest] is known
    cost = problem.evaluate(problem.space.unpack(known.candidate)[None]).values[0]
    default = problem.evaluate(problem.default[None]).values[0]
    assert known.bound <= cost == known.cost < default
    assert problem.baselines() == ({} if known.optimum else {"exact solver": cost})


@pytest.mark.slow
def test_only_instances_are_known():
    assert set(NAMES) <= {program + mesh for program in ShardingProblem.instances for mesh in MESHES}
    assert len(NAMES) >= 6


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param("rnn@4x8", marks=pytest.mark.thorough), "resnet50@4x8"])
def test_the_solver_finds_the_stored_optimum_again(name):
    problem = ShardingProblem(name)
    made = stored_row(name, problem, solved(problem))
    assert made["cost"] == made["bound"] == problem.optimum


@pytest.mark.slow
def test_a_file_and_another_mesh_have_no_optimum():
    problem = ShardingProblem("rnn@2x2")
    assert problem.optimum is None
    assert problem.bound is None
    assert np.isfinite(problem.evaluate(problem.default[None]).values[0])


needs_files = pytest.mark.skipif(not REAL.is_dir(), reason="the real files are not here")


REAL_KNOWN = {"B": (816, 730, 1096, 532843), "G": (816, 769, 1023, None)}


@needs_files
@pytest.mark.parametrize("name", REAL_KNOWN)
def test_a_file_of_the_contest_is_known_by_its_content(name):
    problem = Registry().load(f"sharding:{REAL / f'asplos-2025-iopddl-{name}.json.gz'}")
    nodes, free, edges, optimum = REAL_KNOWN[name]
    assert problem.graph.sizes.shape == (nodes,)
    assert (problem.graph.sizes > 1).sum() == free
    assert problem.graph.edges.shape == (edges, 2)
    assert problem.optimum == optimum
    assert problem.facts()["program"].startswith(name)
    assert problem.baselines()["XLA"] < problem.baselines()["median team"]
    assert problem.evaluate(problem.default[None]).status[0] == 0


@needs_files
def test_the_contest_s_example():
    problem = Registry().load(f"sharding:{REAL / 'example.json'}")
    assert problem.optimum is None
    assert problem.evaluate(problem.default[None]).values[0] >= 0
