"""The picture of a candidate: its kernels with what they compute, and the data that goes through memory."""

import numpy as np
import pytest

import bbo_suite
from bbo_problems.tensor_compiler.tasks.fusion_problem import FusionProblem

SIZE = "f32[1024,1024]{1,0}"
DIAMOND = f"""HloModule diamond
ENTRY main {{
  p0 = {SIZE} parameter(0)
  e = {SIZE} exponential(p0)
  n = {SIZE} negate(e)
  m = {SIZE} multiply(e, p0)
  s = {SIZE} add(n, m)
  ROOT t = {SIZE} sine(s)
}}
"""


@pytest.fixture
def diamond(tmp_path):
    """Return a fusion task whose first producer has two users, and a function that draws a candidate of it."""
    (tmp_path / "diamond.hlo").write_text(DIAMOND)
    problem = FusionProblem.from_file(str(tmp_path / "diamond.hlo"))
    names = [problem.space.name(i) for i in range(len(problem.space))]
    return lambda *fused: problem.picture(np.array([name in fused for name in names], np.int8))


def drawn(program):
    kernels = {kernel.name: set(kernel.members) for kernel in program.kernels}
    edges = {(program.kernels[a].name, program.kernels[b].name) for a, b in program.edges.tolist()}
    return kernels, edges


def test_kernels_have_their_members_and_edges_lead_through_memory(diamond):
    e, n, m, s, t = "e (exponential)", "n (negate)", "m (multiply)", "s (add)", "t (sine)"
    kernels, edges = drawn(diamond())
    assert kernels == {e: {e, n, m, s, t}}  # it stores them all
    assert edges == set()
    kernels, edges = drawn(diamond("e -> n", "e -> m", "s -> t"))
    assert kernels == {n: {e, n}, m: {e, m, s, t}}
    assert edges == {(n, m)}
    kernels, edges = drawn(diamond("e -> n"))
    assert kernels == {e: {e, m}, n: {e, n}, s: {s, t}}
    assert edges == {(n, s), (e, s)}


@pytest.mark.slow
@pytest.mark.parametrize("family", ["fusion", "layout", "joint"])
def test_costs_of_kernels_add_up_to_that_of_the_candidate(family):
    problem = bbo_suite.problem(f"{family}/rnn")
    rng = np.random.default_rng(3)
    for config in (problem.default_row(), problem.space.sample(1, rng)[0]):
        if family == "joint":
            config[problem.structure().passes.columns("tile")] = 0  # a random tile overflows
        program = problem.picture(config)
        assert sum(kernel.cost for kernel in program.kernels) == pytest.approx(problem.evaluate(config[None]).values[0])
        assert all(kernel.members for kernel in program.kernels)
        assert program.edges.max() < len(program.kernels)
        assert (program.edges[:, 0] < program.edges[:, 1]).all()
