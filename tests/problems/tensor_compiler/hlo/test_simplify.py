"""Users' programs after XLA's own passes: equal programs cost the same, names stay, and what cannot run says so."""

import gzip
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bbo_problems.tensor_compiler.hlo import reader
from bbo_problems.tensor_compiler.hlo.simplify import read_simplified
from bbo_suite.registry import Registry
from bbo_suite.supervised import Answer

pytestmark = pytest.mark.usefixtures("own_cache")

SCALED = """HloModule scaled

ENTRY main {
  x = bf16[8,512,1024]{2,1,0} parameter(0)
  g = bf16[1024]{0} parameter(1)
  w = bf16[1024,512]{1,0} parameter(2)
  %s
  grown = bf16[8,512,1024]{2,1,0} exponential(scaled)
  ROOT y = bf16[8,512,512]{2,1,0} dot(grown, w), lhs_contracting_dims={2}, rhs_contracting_dims={0}
}
"""
BY_EINSUM = SCALED % (
    "outer = bf16[1024,8,512]{2,1,0} dot(g, x), lhs_batch_dims={0}, rhs_batch_dims={2}\n"
    "  scaled = bf16[8,512,1024]{2,1,0} transpose(outer), dimensions={1,2,0}"
)
BY_PRODUCT = SCALED % (
    "wide = bf16[8,512,1024]{2,1,0} broadcast(g), dimensions={2}\n"
    '  scaled = bf16[8,512,1024]{2,1,0} multiply(x, wide), metadata={op_name="jit(f)/mul{1}" source_line=3}'
)
UNKNOWN_LOOP = """HloModule loop

body {
  p = (f32[256,256]{1,0}) parameter(0)
  x = f32[256,256]{1,0} get-tuple-element(p), index=0
  square = f32[256,256]{1,0} dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (f32[256,256]{1,0}) tuple(square)
}

cond {
  p = (f32[256,256]{1,0}) parameter(0)
  x = f32[256,256]{1,0} get-tuple-element(p), index=0
  corner = f32[1,1]{1,0} slice(x), slice={[0:1],[0:1]}
  f = f32[] reshape(corner)
  three = f32[] constant(3)
  ROOT c = pred[] compare(f, three), direction=LT
}

ENTRY main {
  a = f32[256,256]{1,0} parameter(0)
  t = (f32[256,256]{1,0}) tuple(a)
  many = (f32[256,256]{1,0}) while(t), condition=cond, body=body%s
  ROOT r = f32[256,256]{1,0} get-tuple-element(many), index=0
}
"""
OPTIMISED = """HloModule done

inner {
  p = f32[64] parameter(0)
  ROOT n = f32[64] negate(p)
}

ENTRY main {
  x = f32[64] parameter(0)
  ROOT f = f32[64] fusion(x), kind=kLoop, calls=inner
}
"""
STABLEHLO = """func.func public @main(%arg0: tensor<64xf32>) -> tensor<64xf32> {
  %twice = stablehlo.add %arg0, %arg0 : tensor<64xf32>
  %out = stablehlo.negate %twice : tensor<64xf32>
  return %out : tensor<64xf32>
}
"""


@pytest.fixture
def file(tmp_path):
    def write(text, name="m.hlo"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def default_cost(path, family="joint"):
    problem = Registry().problem(f"{family}:{path}")
    return problem.evaluate(problem.default_row()[None]).values[0]


@pytest.mark.slow
def test_a_product_without_contraction_costs_what_a_multiplication_costs(file):
    costs = [default_cost(file(text, name)) for text, name in ((BY_EINSUM, "a.hlo"), (BY_PRODUCT, "b.hlo"))]
    np.testing.assert_allclose(*costs, rtol=0.02)


@pytest.mark.slow
def test_decisions_have_the_names_of_the_file(file):
    problem = Registry().problem(f"fusion:{file(BY_PRODUCT)}")
    assert {problem.space.name(i) for i in range(len(problem.space))} >= {"scaled -> grown"}
    assert "XLA's passes" in problem.facts()


@pytest.mark.slow
@pytest.mark.parametrize(("config", "ratio"), [("", 1), (', backend_config={"known_trip_count":{"n":"50"}}', 50)])
def test_a_trip_count_that_only_the_file_knows_is_kept(file, config, ratio):
    once = default_cost(file(UNKNOWN_LOOP % "", "once.hlo"))
    assert default_cost(file(UNKNOWN_LOOP % config)) == pytest.approx(ratio * once)


def test_what_xla_has_optimised_is_left_alone(file):
    read = read_simplified(file(OPTIMISED))
    assert read.note == "not run: XLA has optimised this module already"
    assert [i.name for i in read.module.instructions()] == ["p", "n", "x", "f"]


@pytest.mark.slow
def test_values_of_stablehlo_keep_their_names(file):
    names = [i.name for i in read_simplified(file(STABLEHLO, "m.mlir")).module.instructions()]
    assert {"%out", "%twice"} <= set(names)


def test_where_xla_fails_the_program_is_compiled_as_written_and_says_so(file, monkeypatch):
    monkeypatch.setattr(reader, "ask_xla", lambda *_: Answer(failure="raised", reason="no such pass"))
    path = file(BY_PRODUCT)
    read = read_simplified(path)
    assert not read.ran and "as written: no such pass" in read.note
    assert [i.name for i in read.module.instructions()] == ["x", "g", "w", "wide", "scaled", "grown", "y"]
    problem = Registry().problem(f"fusion:{path}")
    assert "as written" in problem.assumptions()["XLA's passes"]
    assert "XLA's own passes did not run" in problem.usage()


@pytest.mark.slow
def test_a_program_is_simplified_once_and_a_damaged_answer_is_made_again(file, monkeypatch, tmp_path):
    path = file(BY_EINSUM)
    first = read_simplified(path)
    with monkeypatch.context() as patched:
        patched.setattr(reader, "ask_xla", None)
        assert read_simplified(path) == first
    (kept,) = (tmp_path / "cache").rglob("*.json.gz")
    for damage in (b"", kept.read_bytes()[:-9], gzip.compress(b"[1")):
        kept.write_bytes(damage)
        assert read_simplified(path) == first


NORMALISED = """HloModule normalised

ENTRY main {
  x = f32[32,64,8,8]{3,2,1,0} parameter(0)
  s = f32[64]{0} parameter(1)
  b = f32[64]{0} parameter(2)
  ROOT n = (f32[32,64,8,8]{3,2,1,0}, f32[64]{0}, f32[64]{0}) batch-norm-training(x, s, b), epsilon=0.1, feature_index=1
}
"""


@pytest.mark.slow
def test_batch_norms_are_what_they_compute(file):
    opcodes = {i.opcode for i in read_simplified(file(NORMALISED)).module.instructions()}
    assert {"reduce", "rsqrt", "multiply"} <= opcodes and not opcodes & {"batch-norm-training", "get-dimension-size"}


FIXED = """HloModule fixed, entry_computation_layout={(f32[256,1024]{%s}, f32[256,1024]{1,0})->f32[256,1024]{0,1}}

ENTRY main {
  p = f32[256,1024]{1,0} parameter(0)
  q = f32[256,1024]{1,0} parameter(1)
  n = f32[256,1024]{1,0} negate(p)
  ROOT t = f32[256,1024]{1,0} add(n, q)
}
"""


@pytest.mark.slow
def test_layouts_of_parameters_that_the_module_fixes_are_kept(file):
    plain, turned = (default_cost(file(FIXED % order, f"{order}.hlo"), "fusion") for order in ("1,0", "0,1"))
    assert turned > 1.1 * plain


STACKED = """HloModule stacked

body {
  p = (s32[], bf16[256,512]{1,0}, f32[8,512,512]{2,1,0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = bf16[256,512]{1,0} get-tuple-element(p), index=1
  w = f32[8,512,512]{2,1,0} get-tuple-element(p), index=2
  zero = s32[] constant(0)
  layer = f32[1,512,512]{2,1,0} dynamic-slice(w, i, zero, zero), dynamic_slice_sizes={1,512,512}
  narrow = bf16[1,512,512]{2,1,0} convert(layer)
  flat = bf16[512,512]{1,0} reshape(narrow)
  y = bf16[256,512]{1,0} dot(x, flat), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT t = (s32[], bf16[256,512]{1,0}, f32[8,512,512]{2,1,0}) tuple(next, y, w)
}

cond {
  p = (s32[], bf16[256,512]{1,0}, f32[8,512,512]{2,1,0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  eight = s32[] constant(8)
  ROOT c = pred[] compare(i, eight), direction=LT
}

ENTRY main {
  zero = s32[] constant(0)
  x = bf16[256,512]{1,0} parameter(0)
  %s
  t = (s32[], bf16[256,512]{1,0}, f32[8,512,512]{2,1,0}) tuple(zero, x, w)
  many = (s32[], bf16[256,512]{1,0}, f32[8,512,512]{2,1,0}) while(t), condition=cond, body=body
  ROOT r = bf16[256,512]{1,0} get-tuple-element(many), index=1
}
"""


@pytest.mark.slow
@pytest.mark.parametrize(("order", "bound"), [("1,0,2", 1.02), ("1,2,0", 1.1)])
def test_a_transpose_of_stacked_weights_before_a_loop_moves_nothing(file, order, bound):
    """The second order also swaps rows and columns, so that the products take the other layout."""
    given = (
        f"v = f32[512,8,512]{{2,1,0}} parameter(1)\n  w = f32[8,512,512]{{2,1,0}} transpose(v), dimensions={{{order}}}"
    )
    plain = default_cost(file(STACKED % "w = f32[8,512,512]{2,1,0} parameter(1)", "plain.hlo"))
    assert plain <= default_cost(file(STACKED % given)) <= bound * plain


@pytest.mark.slow
def test_that_a_busy_machine_ran_out_of_time_is_not_kept(file, monkeypatch):
    path = file(BY_PRODUCT)
    with monkeypatch.context() as patched:
        patched.setattr(reader, "ask_xla", lambda *_: Answer(failure="timeout", reason="took more than 60 s"))
        assert not read_simplified(path).ran
    assert read_simplified(path).ran


@pytest.mark.slow
def test_a_name_that_looks_like_a_fusion_is_none(file):
    named = 'negate(x), metadata={op_name="jit(f)/my fusion(x)"}'
    text = f"HloModule m\n\nENTRY main {{\n  x = f32[64]{{0}} parameter(0)\n  ROOT n = f32[64]{{0}} {named}\n}}\n"
    assert "operations became" in read_simplified(file(text)).note


@pytest.mark.slow
def test_passes_fold_large_constants_by_their_values(tmp_path):
    """An index that is known to be inside needs no test; XLA's reader makes up what a text leaves out."""
    rows, shape = np.arange(100, dtype=np.int32) % 50, jax.ShapeDtypeStruct((50, 64), "float32")
    lowered = jax.jit(lambda x: jnp.tanh(jnp.take(x, rows, axis=0, mode="fill"))).lower(shape)
    hlo = lowered.compiler_ir("hlo")
    full, short = hlo.as_hlo_text(print_large_constants=True), hlo.as_hlo_text()
    bare, found = re.sub(r"= \S+ tanh", "= tanh", full), []  # which XLA's reader alone understands
    for text in (lowered.as_text(), full, bare):
        (tmp_path / "program").write_text(text)
        found.append(read_simplified(tmp_path / "program"))
    assert [{i.opcode for i in one.module.instructions()} for one in found] == [
        {"parameter", "constant", "gather", "tanh"}
    ] * 3
    (tmp_path / "program").write_text(short)
    assert read_simplified(tmp_path / "program").note.endswith("as_hlo_text(print_large_constants=True)")
    assert not any("made up" in one.note for one in found)
