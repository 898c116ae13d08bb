"""Candidates of the tensor compiler for people: in words, by operation, and as a picture of their kernels."""

import numpy as np
import pytest

import bbo_suite
from bbo_problems.tensor_compiler.tasks.fusion_problem import FusionProblem
from bbo_suite.core.program import NO_CHANGE

from ...candidates import changed, names_of


@pytest.mark.parametrize(
    "family", ["fusion", *(pytest.param(n, marks=pytest.mark.slow) for n in ("layout", "tile", "flags", "joint"))]
)
def test_the_default_is_pasted_as_a_comment(family):
    problem = bbo_suite.problem(f"{family}/rnn")
    assert problem.paste(problem.default_row()) == NO_CHANGE


def test_decisions_are_listed_under_their_operation():
    problem = bbo_suite.problem("fusion/rnn")
    names = names_of(problem.space)
    producer = next(
        name.split(" -> ")[0] for name in names if sum(n.startswith(name.split(" -> ")[0] + " -> ") for n in names) > 1
    )
    own = [name for name in names if name.startswith(f"{producer} -> ")]
    row = changed(problem, {name: 1 - problem.default[names.index(name)] for name in own})
    first, *others = problem.paste(row).splitlines()
    assert first == producer
    assert others == [f"  fused into {n.split(' -> ')[1]} = {not problem.default[names.index(n)]}" for n in own]


OLDER = """HloModule jit_f
ENTRY main {
  x = f32[512,512] parameter(0)
  e = f32[512,512] exponential(x), metadata={op_name="jit(f)/exp" source_file="/home/me/model.py" source_line=12}
  ROOT s = f32[512,512] sine(e), metadata={op_name="jit(f)/sin"}
}
"""
NEWER = """HloModule jit_f

FileNames
1 "/home/me/model.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=12 end_line=12 column=4 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}

ENTRY main {
  x = f32[512,512] parameter(0)
  e = f32[512,512] exponential(x), metadata={op_name="jit(f)/exp" stack_frame_id=1}
  ROOT s = f32[512,512] sine(e), metadata={op_name="jit(f)/sin" stack_frame_id=7}
}
"""
LOCATED = """module @jit_f {
  func.func public @main(%x: tensor<512x512xf32>) -> tensor<512x512xf32> {
    %0 = stablehlo.exponential %x : tensor<512x512xf32> loc(#loc2)
    %1 = stablehlo.sine %0 : tensor<512x512xf32>
    return %1 : tensor<512x512xf32>
  }
}
#loc1 = loc("/home/me/model.py":12:4)
#loc2 = loc("jit(f)/exp"(#loc1))
"""


@pytest.mark.parametrize("text", [OLDER, NEWER, LOCATED])
def test_a_fusion_that_is_prevented_leads_to_its_line_in_jax(tmp_path, text):
    (tmp_path / "f.hlo").write_text(text)
    problem = bbo_suite.problem(f"fusion:{tmp_path / 'f.hlo'}")
    heading, *lines = problem.paste(problem.default_row() * 0).splitlines()
    assert heading.endswith("  (model.py:12, jit(f)/exp)")
    assert [line.partition("  (")[2] for line in lines] == ["both stay in one kernel, for which JAX has no word)"]


def test_a_fusion_that_a_barrier_prevents_says_so(tmp_path):
    product = "dot(e, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    (tmp_path / "f.hlo").write_text(NEWER.replace("sine(e)", product))
    problem = bbo_suite.problem(f"fusion:{tmp_path / 'f.hlo'}")
    (_, line) = problem.paste(problem.default_row() * 0).splitlines()
    assert line.endswith("(in JAX: an optimization_barrier there)")


@pytest.mark.slow
def test_layouts_and_tiles_are_given_by_their_labels():
    layout = bbo_suite.problem("layout/rnn")
    row = changed(layout, {"dot_general.15": 3})
    assert layout.paste(row) == f"dot_general.15\n  layout = {layout.space.values(0)[3]}"
    flags = bbo_suite.problem("flags/rnn")
    column = int(np.flatnonzero(flags.space.sizes > 1)[0])
    operation, slot = flags.space.name(column).split(": ")
    row = flags.default_row()
    row[column] = index = (row[column] + 1) % flags.space.sizes[column]
    assert flags.paste(row) == f"{operation}\n  {slot} = {flags.space.values(column)[index]}"


@pytest.mark.slow
def test_the_joint_task_leaves_out_decisions_without_effect_and_names_real_tiles():
    problem = bbo_suite.problem("joint/rnn")
    row, passes = problem.default_row(), problem.structure().passes
    tiles = passes.columns("tile")
    row[tiles] = np.minimum(1, problem.space.sizes[tiles] - 1)
    lines = problem.paste(row).splitlines()
    settings = [line for line in lines if line.startswith("  tile ")]
    assert 0 < len(settings) < (problem.space.sizes[tiles] > 1).sum()  # most operations get no kernel of their own
    assert all(float(line.split(" = ")[1]) >= 1 for line in settings)
    kernels = passes.apply("fusion", passes.apply("layout", passes.source, row), row)
    assert len(settings) == len(kernels.decisions["tile"].columns)


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
    names = names_of(problem.space)
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
