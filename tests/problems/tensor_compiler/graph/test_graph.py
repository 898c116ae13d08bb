"""From text to graph: what is inlined and counted, and work against XLA's own analysis; layouts of single arrays."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax._src.lib import xla_client

from bbo_problems.tensor_compiler.graph import flatten
from bbo_problems.tensor_compiler.graph.build import build
from bbo_problems.tensor_compiler.graph.graph import ProgramGraph
from bbo_problems.tensor_compiler.graph.layouts import compact, layouts, minor_dims, padded_bytes
from bbo_problems.tensor_compiler.hardware.machine import MACHINES
from bbo_problems.tensor_compiler.hlo import reader as hlo
from bbo_problems.tensor_compiler.hlo.module import Shape
from bbo_problems.tensor_compiler.hlo.opcodes import Kind
from bbo_problems.tensor_compiler.layout.layout_pass import LayoutPass
from bbo_suite import UserError

from ..small_programs import laid_out, opcodes


def text_of(function, *arguments) -> str:
    return jax.jit(function).lower(*arguments).compiler_ir("hlo").as_hlo_text()


def graph_of(function, *arguments) -> ProgramGraph:
    return build(hlo.parse(text_of(function, *arguments)), "test")


def xla_flops(text: str) -> float:
    module = xla_client.hlo.hlo_module_from_text(text)
    return xla_client._xla.hlo_module_cost_analysis(jax.devices("cpu")[0].client, module)["flops"]


def ones(*shape: int, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


def convolve(padding="VALID", **arguments):
    def function(x, w):
        numbers = ("NHWC", "HWIO", "NHWC")
        strides = arguments.get("window_strides", (1, 1))
        rest = {k: v for k, v in arguments.items() if k != "window_strides"}
        return jax.lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=numbers, **rest)

    return function


PRODUCTS = {
    "dot": (jnp.dot, ones(64, 32), ones(32, 48)),
    "batched dot": (lambda a, b: jnp.einsum("bij,bkj->bik", a, b), ones(3, 8, 16), ones(3, 24, 16)),
    "two contracting": (lambda a, b: jnp.einsum("ijk,jkl->il", a, b), ones(4, 5, 6), ones(5, 6, 7)),
    "matrix-vector": (jnp.dot, ones(64, 32), ones(32)),
    "convolution": (convolve(), ones(2, 16, 16, 8), ones(3, 3, 8, 24)),
    "strided": (convolve(window_strides=(2, 2)), ones(2, 17, 17, 8), ones(3, 3, 8, 24)),
    "pointwise": (convolve(), ones(2, 16, 16, 8), ones(1, 1, 8, 24)),
    "grouped": (convolve(feature_group_count=4), ones(2, 16, 16, 8), ones(3, 3, 2, 24)),
    "depthwise": (convolve(feature_group_count=8), ones(2, 16, 16, 8), ones(3, 3, 1, 8)),
    "dilated window": (convolve(rhs_dilation=(2, 2)), ones(2, 16, 16, 8), ones(3, 3, 8, 24)),
}


@pytest.mark.parametrize("case", PRODUCTS)
def test_matrix_work_equals_that_of_xla(case: str) -> None:
    function, *arguments = PRODUCTS[case]
    graph = graph_of(function, *arguments)
    assert 2 * graph.matrix.prod(axis=1).sum() == pytest.approx(xla_flops(text_of(function, *arguments)), rel=1e-6)


@pytest.mark.parametrize(
    ("batch", "features", "channels", "window", "product"),
    [
        (32, 6, 96, 3, (16 * 8, 32, 128, 9)),  # 6 features pass through 32 images, in rows of 8
        (64, 6, 96, 3, (16 * 16, 64, 128, 9)),  # to load 64 images takes as long as 16 rows
        (128, 16, 3, 3, (16 * 16, 128, 128, 7)),  # 9 taps of 3 channels side by side
        (8, 6, 96, 3, (16 * 8, 6, 96, 9)),  # no fewer features, in rows of 8, than images: pixels pass
        (32, 256, 96, 3, (16 * 32, 256, 96, 9)),
    ],
)
def test_the_smaller_side_of_a_convolution_passes_through_the_matrix_unit(
    batch: int, features: int, channels: int, window: int, product: tuple[float, ...]
) -> None:
    image, weights = ones(batch, 4, 4, channels), ones(window, window, channels, features)
    made = graph_of(convolve("SAME"), image, weights).matrix
    assert tuple(made[made[:, 0] > 0][0]) == (1, *product)


def test_the_gradient_of_a_filter_by_channel_is_work_of_the_vector_unit() -> None:
    def gradient(x, w):
        return jax.grad(lambda w: convolve("SAME", feature_group_count=40)(x, w).sum())(w)

    graph = graph_of(gradient, ones(16, 8, 8, 40), ones(3, 3, 1, 40))
    heavy = graph.kind == Kind.MATRIX
    assert tuple(graph.matrix[heavy][0]) == (1, 9, 40, 16 * 8 * 8, 1)
    work = graph.tables.work[graph.tables.first[graph.signature[heavy]]]
    assert work == 2 * 9 * 128 * 16 * 8 * 8


def test_calls_are_inlined_and_dead_code_is_dropped() -> None:
    def function(x):
        jnp.sin(x)
        return jax.nn.relu(x) + jax.nn.relu(2 * x)

    graph = graph_of(function, ones(64, 128))
    assert "call" not in graph.opcodes
    assert "sine" not in graph.opcodes
    assert graph.opcodes.count("maximum") == 2


def test_changes_of_shape_that_move_nothing_are_not_operations() -> None:
    moved = graph_of(lambda x: jnp.sin(x.reshape(1, 64, 128)).reshape(8, 8, 128), ones(64, 128))
    assert opcodes(laid_out(moved)) == ["parameter", "sine"]
    really = graph_of(lambda x: jnp.sin(x.reshape(128, 64)), ones(64, 128))
    assert "reshape" in opcodes(laid_out(really))


def test_loop_bodies_are_multiplied_by_their_trip_counts() -> None:
    def function(x):
        return jax.lax.fori_loop(0, 7, lambda i, s: jnp.sin(s) @ s, x)

    graph = graph_of(function, ones(64, 64))
    assert graph.weight[graph.opcodes.index("sine")] == 7
    nested = graph_of(lambda x: jax.lax.fori_loop(0, 3, lambda i, s: function(s), x), ones(64, 64))
    assert nested.weight[nested.opcodes.index("sine")] == 21


def test_trip_counts_noted_by_xla_are_read() -> None:
    compiled = jax.jit(lambda x: jax.lax.fori_loop(0, 9, lambda i, s: jnp.sin(s) @ s, x)).lower(ones(64, 64)).compile()
    graph = build(hlo.parse(compiled.as_text()), "test")
    assert graph.weight.max() == 9


def test_branches_are_assumed_to_run_equally_often() -> None:
    graph = graph_of(lambda p, x: jax.lax.cond(p, jnp.sin, jnp.cos, x), ones(dtype=jnp.bool_), ones(64, 128))
    assert graph.weight[graph.opcodes.index("sine")] == 0.5
    assert graph.weight[graph.opcodes.index("cosine")] == 0.5


def attend(x, w):
    """Return a loop of products in several orders of dimensions, whose results are written into an array."""

    def step(c, _):
        heads = jnp.einsum("btd,dhe->bthe", c, w)
        return jnp.einsum("bthe,hed->btd", heads, w.transpose(1, 2, 0)), c[:, 0]

    return jax.lax.scan(step, x, None, length=3)


def test_text_after_optimizations_has_the_same_products() -> None:
    lowered = jax.jit(attend).lower(ones(2, 16, 32), ones(32, 4, 8))
    before = build(hlo.parse(lowered.compiler_ir("hlo").as_hlo_text()), "test")
    after = build(hlo.parse(lowered.compile().as_text()), "test")
    work = [graph.matrix.prod(axis=1) @ graph.weight for graph in (before, after)]
    assert work[0] == work[1] == 3 * 2 * (2 * 16 * 32 * 32)


@pytest.mark.parametrize(
    ("bitcast", "opcodes"),
    [
        ("f32[4,8]{1,0} bitcast(p)", ["parameter", "negate"]),
        ("f32[4,1,8]{2,1,0} bitcast(p)", ["parameter", "reshape", "negate"]),
        ("f32[8,4]{0,1} bitcast(p)", ["parameter", "transpose", "negate"]),
        ("f32[2,16]{1,0} bitcast(p)", ["parameter", "reshape", "negate"]),
    ],
)
def test_a_bitcast_is_the_operation_that_it_was_before_layouts_were_chosen(bitcast: str, opcodes: list[str]) -> None:
    shape = bitcast.partition(" ")[0]
    lines = f"  p = f32[4,8]{{1,0}} parameter(0)\n  b = {bitcast}\n  ROOT n = {shape} negate(b)\n"
    assert build(hlo.parse(f"HloModule m\nENTRY e {{\n{lines}}}"), "test").opcodes == opcodes


@pytest.mark.parametrize("several", [False, True])
def test_nothing_is_fused_across_a_barrier(several: bool) -> None:
    def chain(x, barrier):
        y = x * 2
        made = barrier((y, y + 1)) if several else (barrier(y), y)
        return made[0] + 3 * made[1]

    barred = graph_of(lambda x: chain(x, jax.lax.optimization_barrier), ones(512, 512))
    plain = graph_of(lambda x: chain(x, lambda value: value), ones(512, 512))
    assert "opt-barrier" not in barred.opcodes
    assert len(LayoutPass(barred, MACHINES["v5e"]).fused) < len(LayoutPass(plain, MACHINES["v5e"]).fused)


def test_a_program_that_computes_nothing_is_refused() -> None:
    with pytest.raises(UserError, match="computes nothing"):
        build(hlo.parse("HloModule m\n\nENTRY e {\n  ROOT p = f32[2]{0} parameter(0)\n}\n"), "test")


def doubling_calls(first: str) -> str:
    """Return a program whose computations call one another twice, forty deep."""
    calls = [f"HloModule bomb\nc0 {{\n  p = f32[8] parameter(0)\n  ROOT r = f32[8] {first}(p)\n}}"]
    for i in range(1, 40):
        body = f"  p = f32[8] parameter(0)\n  a = f32[8] call(p), to_apply=c{i - 1}\n"
        calls.append(f"c{i} {{\n{body}  ROOT r = f32[8] call(a), to_apply=c{i - 1}\n}}")
    calls.append("ENTRY e {\n  p = f32[8] parameter(0)\n  ROOT r = f32[8] call(p), to_apply=c39\n}")
    return "\n".join(calls)


def doubling_tuples(first: str) -> str:
    """Return a program whose tuples hold one another twice, sixty deep."""
    tuples = [f"  t{i} = (f32[], f32[]) tuple(t{i - 1}, t{i - 1})" for i in range(1, 60)]
    lines = [
        "  p = f32[8] parameter(0)",
        f"  t0 = () tuple({first})",
        *tuples,
        '  ROOT r = f32[8] custom-call(t59), custom_call_target="f"',
    ]
    return "\n".join(["HloModule bomb\nENTRY e {", *lines, "}"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (doubling_calls("negate"), "more than 4,000,000 instructions after inlining"),
        (doubling_calls("copy"), "more than 4,000,000 instructions after inlining"),
        (doubling_calls("negate").replace("call(", "fusion(").replace("to_apply", "calls"), "after inlining"),
        (doubling_tuples("p"), "tuples has more than 20,000 parts"),
        (doubling_tuples(""), "tuples has more than 20,000 parts"),
    ],
)
def test_a_program_that_doubles_again_and_again_is_refused(
    monkeypatch: pytest.MonkeyPatch, text: str, words: str
) -> None:
    monkeypatch.setattr(flatten, "LARGEST_GRAPH", 20_000)
    with pytest.raises(UserError, match=words):
        build(hlo.parse(text), "test")


def test_a_graph_with_too_many_operations_or_operands_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "".join(f"  n{i} = f32[8] negate(p)\n" for i in range(9))
    text = f"HloModule m\nENTRY e {{\n  p = f32[8] parameter(0)\n{lines}  ROOT r = f32[8] add(n0, n1)\n}}"
    monkeypatch.setattr(flatten, "MOST_USES", 10)
    with pytest.raises(UserError, match="more than 10 operands"):
        build(hlo.parse(text), "test")
    monkeypatch.setattr(flatten, "LARGEST_GRAPH", 5)
    with pytest.raises(UserError, match="more than 5 operations"):
        build(hlo.parse(text), "test")


def test_tuples_and_calls_that_are_deep_and_small_are_read() -> None:
    tuples = "".join(f"  t{i} = (f32[]) tuple(t{i - 1})\n" for i in range(1, 3000))
    call = 'custom-call(t2999), custom_call_target="f"'
    text = f"HloModule m\nENTRY e {{\n  t0 = f32[8] parameter(0)\n{tuples}  ROOT r = f32[8] {call}\n}}"
    assert build(hlo.parse(text), "test").opcodes == ["parameter", "custom-call"]


def test_each_user_has_its_own_copy_of_a_broadcast():
    def function(v, *arrays):
        wide = jnp.broadcast_to(v, (8, 128))
        return [each * wide for each in arrays]

    graph = graph_of(function, jnp.ones(128), *[jnp.ones((8, 128))] * 20)
    users = [graph.user_starts[i + 1] - graph.user_starts[i] for i, c in enumerate(graph.opcodes) if c == "broadcast"]
    assert users == [1] * 20


def test_scalars_from_scalars_in_memory_need_no_kernel():
    graph = graph_of(lambda n, x: (n * 3 + 1, x.sum() * 2, x + n), jnp.int32(4), jnp.ones((8, 128)))
    kinds = {(opcode, bool(kind > Kind.FREE)) for opcode, kind in zip(graph.opcodes, graph.kind, strict=True)}
    assert kinds >= {("multiply", False), ("multiply", True), ("convert", False), ("add", False), ("add", True)}


SHAPES = st.builds(
    Shape,
    st.sampled_from(["f32", "bf16", "s8", "pred", "s4"]),
    st.lists(st.sampled_from([0, 1, 2, 3, 8, 100, 128, 200]), max_size=5).map(tuple),
)


@pytest.mark.parametrize(
    "dtype, dims, layout, size",
    [
        ("f32", (10, 20), (1, 0), 16 * 128 * 4),
        ("f32", (10, 20), (0, 1), 128 * 24 * 4),
        ("bf16", (10, 20), (1, 0), 16 * 128 * 2),
        ("s8", (10, 20), (1, 0), 32 * 128),
        ("f32", (3, 8, 128), (2, 1), 3 * 8 * 128 * 4),
        ("f32", (3, 1, 128), (2, 0), 8 * 128 * 4),
        ("f32", (100,), (0,), 512),
        ("f32", (), (), 512),
        ("f32", (0, 128), (1, 0), 0),
    ],
)
def test_the_two_minor_dimensions_are_padded_to_tiles(dtype: str, dims: tuple, layout: tuple, size: int) -> None:
    assert padded_bytes(Shape(dtype, dims), layout) == size


def test_a_layout_in_the_text_is_read_as_its_two_minor_dimensions() -> None:
    assert minor_dims(Shape("f32", (2, 1, 3, 4)), (1, 3, 0, 2)) == (3, 0)


@given(SHAPES)
def test_layouts_are_distinct_and_the_compact_one_pads_least(shape: Shape) -> None:
    found = layouts(shape)
    assert len(set(found)) == len(found)
    assert padded_bytes(shape, compact(shape)) == min(padded_bytes(shape, layout) for layout in found)
    row_major = tuple(d for d in reversed(range(len(shape.dims))) if shape.dims[d] != 1)[:2]
    assert found[0] == row_major


def graph(*lines: str) -> ProgramGraph:
    body = "\n".join(f"  {line}" for line in lines)
    return build(hlo.parse(f"HloModule m\n\nENTRY e {{\n{body}\n}}\n"), "test")


def choices(made: ProgramGraph, name: str) -> tuple[str, ...]:
    return made.choices[made.signature[made.names.index(name)]]


def test_a_dot_streams_an_operand_whose_contracted_dimension_is_minor() -> None:
    made = graph(
        "a = f32[256,512]{1,0} parameter(0)",
        "b = f32[512,1024]{1,0} parameter(1)",
        "ROOT d = f32[256,1024]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    )
    texts = choices(made, "d")
    assert texts[0] == "{1,0} from {1,0} {1,0}"
    first = made.tables.first[made.signature[2]]
    work = dict(zip(texts, made.tables.work[first:], strict=False))
    assert work["{1,0} from {1,0} {1,0}"] == work["{1,0} from {1,0} {0,1}"] == 0
    assert work["{1,0} from {0,1} {1,0}"] == 16 * 256 * 512
    assert work["{0,1} from {1,0} {0,1}"] == work["{0,1} from {0,1} {0,1}"] == 0
    assert work["{0,1} from {1,0} {1,0}"] == 16 * 512 * 1024


@pytest.mark.parametrize(
    "before, after, text, moves",
    [
        ("64,128", "8,8,128", "{2,1} from {1,0}", False),
        ("64,128", "16,4,128", "{2,0} from any", True),  # rows of tiles are cut
        ("8,8,128", "64,128", "{1,0} from {2,1}", False),
        ("4,64,128", "4,8192", "{1,0} from any", True),
        ("8,16,256", "8,4096", "{1,0} from any", True),
    ],
)
def test_a_reshape_moves_nothing_if_tiles_stay_intact(before: str, after: str, text: str, moves: bool) -> None:
    made = graph(
        f"a = f32[{before}]{{{','.join(map(str, reversed(range(before.count(',') + 1))))}}} parameter(0)",
        f"r = f32[{after}]{{{','.join(map(str, reversed(range(after.count(',') + 1))))}}} reshape(a)",
        f"ROOT n = f32[{after}]{{{','.join(map(str, reversed(range(after.count(',') + 1))))}}} negate(r)",
    )
    assert text in choices(made, "r")
    assert text.endswith("any") == moves
