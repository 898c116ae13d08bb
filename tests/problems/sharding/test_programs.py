"""Sharding of our own programs: which loops may be split, and what collectives cost."""

import numpy as np
import pytest

from bbo_problems.sharding.mesh import BYTES_PER_NANOSECOND, LATENCY, Mesh
from bbo_problems.sharding.program import loops, strategies
from bbo_problems.tensor_compiler.graph.build import in_order
from bbo_problems.tensor_compiler.graph.flatten import Flattener
from bbo_problems.tensor_compiler.hlo.reader import parse
from bbo_suite import UserError
from bbo_suite.registry import Registry

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
