"""Operations with side effects, asynchronous pairs and bitcasts; programs unlike neural networks."""

from __future__ import annotations

import re

import numpy as np
import pytest
from jax._src.lib import xla_client

from bbo_problems.tensor_compiler.fusion.fusion_pass import Fusion
from bbo_problems.tensor_compiler.fusion.state import Tally
from bbo_problems.tensor_compiler.graph.build import build, read_graph
from bbo_problems.tensor_compiler.graph.graph import ProgramGraph
from bbo_problems.tensor_compiler.hlo import reader as hlo
from bbo_problems.tensor_compiler.hlo.opcodes import NAMED, Kind, is_type, unknown
from bbo_problems.tensor_compiler.hlo.parser import parse_hlo
from bbo_problems.tensor_compiler.tasks.programs import program
from bbo_suite import UserError

from ..small_programs import fusion_of, graph_of, laid_out, opcodes

COMPUTATIONS = """square { p = S parameter(0)
 ROOT g = S dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0} }
plus { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }
gather { p = S parameter(0)
 ROOT g = W all-gather(p), dimensions={0} }
own { p = S parameter(0)
 ROOT g = S custom-call(p), custom_call_target="f" }
part { p = S parameter(0)
 ROOT g = H slice(p), slice={[0:256], [0:512]} }
print { p = S parameter(0)
 o = () custom-call(p), custom_call_target="f", custom_call_has_side_effect=true
 ROOT c = S copy(p) }
same { ROOT p = S parameter(0) }
four { p = (s32[], S) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 n = s32[] constant(4)
 ROOT l = pred[] compare(i, n), direction=LT }
feed { p = (s32[], S) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 x = S get-tuple-element(p), index=1
 one = s32[] constant(1)
 j = s32[] add(i, one)
 t = token[] after-all()
 y = S cosine(x)
 o = token[] outfeed(y, t)
 ROOT q = (s32[], S) tuple(j, x) }
"""
START = (
    " a = S parameter(0)\n i = s32[] parameter(1)\n t = token[] after-all()\n e = S exponential(a)\n f = S sine(a)\n"
)
SHAPES = {"S": "f32[512,512]{1,0}", "W": "f32[1024,512]{1,0}", "H": "f32[256,512]{1,0}"}


def graph(*lines: str, header: str = "") -> ProgramGraph:
    """Return the graph of a program with these lines; S, W and H are shapes."""
    text = f"HloModule m{header}\n{COMPUTATIONS}ENTRY main {{\n{START} " + "\n ".join(lines) + " }"
    for name, shape in SHAPES.items():
        for after in " ),":
            text = text.replace(f"{name}{after}", f"{shape}{after}")
    module = hlo.parse(text)
    assert unknown(module) == {}
    return build(module, "test")


def seconds(made: ProgramGraph) -> float:
    fusion = fusion_of(made)
    return float(fusion.seconds(fusion.default()[None])[0])


PAIR = "source_target_pairs={{0,1}}"
EFFECT = 'custom_call_target="f", custom_call_has_side_effect=true'


@pytest.mark.parametrize(
    "lines",
    [
        ["o = token[] outfeed(e, t), outfeed_shape=S "],
        ["b = (S, S) tuple(e, a)", "o = token[] outfeed(b, t)"],
        ["s = (S, u32[], token[]) send(e, t), channel_id=1", "d = token[] send-done(s), channel_id=1"],
        [f"o = () custom-call(e), {EFFECT}"],
        [f"o = s32[] custom-call(e), {EFFECT}"],
        [f"o = token[] custom-call(e, t), {EFFECT}"],
        [f"o = (S, token[]) custom-call(e, t), {EFFECT}"],
        [f"s = ((S), s32[], s32[]) custom-call-start(e), {EFFECT}", "d = s32[] custom-call-done(s)"],
        ["o = S call(e), to_apply=print"],
        ["o = S conditional(i, e, e), branch_computations={print, same}"],
        ["o = token[] after-all(e)", "u = token[] outfeed(a, o)"],
        ["v = (S, token[]) infeed(t)", "u = token[] get-tuple-element(v), index=1", "o = token[] outfeed(e, u)"],
        ["z = s32[] constant(0)", "s = (s32[], S) tuple(z, e)", "w = (s32[], S) while(s), condition=four, body=feed"],
        ["s = (S, W) all-gather-start(e), dimensions={0}", "d = W all-gather-done(s)"],
        ["s = S all-reduce-start(e), to_apply=plus", "d = S all-reduce-done(s)"],
        [f"s = (S, S, u32[], u32[]) collective-permute-start(e), {PAIR}", "d = S collective-permute-done(s)"],
        [f"d = S collective-permute(e), channel_id=1, {PAIR}"],
        ["d = S all-reduce(e), channel_id=1, to_apply=plus"],
        ["d = W all-gather(e), constrain_layout=true, dimensions={0}"],
        ["d = S collective-broadcast(e), replica_groups={{0,1}}"],
    ],
)
def test_an_operation_with_a_side_effect_is_kept_with_what_feeds_it(lines: list[str]) -> None:
    root = "ROOT r = S negate(a)"
    assert "exponential" in graph(*lines, root).opcodes
    assert seconds(graph(*lines, root)) > seconds(graph(root)) + 2e-6  # two kernels with a launch of 1.2 µs


def test_a_collective_that_xla_may_remove_is_left_out_if_nothing_uses_it() -> None:
    unused = ["d = S all-reduce(e), to_apply=plus", "ROOT r = S negate(a)"]
    assert "all-reduce" not in graph(*unused).opcodes
    unused[0] += ", channel_id=1"  # all partitions run this program, and so none waits
    assert "all-reduce" not in graph(*unused, header=", num_partitions=2").opcodes
    unused[0] += ", use_global_device_ids=true"
    assert "all-reduce" not in graph(*unused).opcodes


@pytest.mark.parametrize(
    ("product", "sizes"),
    [
        ("r = f32[96,64] ragged-dot(x, w, n), lhs_contracting_dims={1}, rhs_contracting_dims={1}", (1, 96, 64, 128, 1)),
        ("r = f32[4,128,64] ragged-dot(x, y, n), lhs_contracting_dims={0}, rhs_contracting_dims={0}", (1, 128, 64, 96)),
        ("r = f32[96,32] scaled-dot(x, z, s, u), lhs_contracting_dims={1}, rhs_contracting_dims={1}", (1, 96, 32, 128)),
    ],
)
def test_ragged_and_scaled_products_have_the_work_of_a_product(product: str, sizes: tuple[int, ...]) -> None:
    shapes = {"x": "f32[96,128]", "w": "f32[4,128,64]", "y": "f32[96,64]", "z": "f8e4m3fn[32,128]", "n": "s32[4]"}
    shapes |= {"s": "f8e8m0fnu[96,4]", "u": "f8e8m0fnu[32,4]"}
    lines = [f"{name} = {shape} parameter({i + 2})" for i, (name, shape) in enumerate(shapes.items())]
    ragged = ", lhs_ragged_dims={0}" if "ragged" in product else ""
    groups = ", rhs_group_dims={0}" if "w, n" in product else ""
    made = graph(*lines, f"ROOT {product}{ragged}{groups}")
    assert tuple(made.matrix[made.names.index("r")])[: len(sizes)] == sizes


@pytest.mark.parametrize(
    ("dtype", "attribute", "passes", "times"),  # XLA:TPU's own estimates on v5e are so many times as large
    [
        ("f32", ", operand_precision={high,high}", 3, 3.02),
        ("f32", ", operand_precision={highest,highest}", 6, 5.78),
        ("f32", ", operand_precision={default,high}", 2, 1.95),
        ("f32", ", operand_precision={high,highest}", 5, 4.84),
        ("f32", ", algorithm=dot_bf16_bf16_f32_x3", 3, 3.02),
        ("bf16", ", operand_precision={highest,highest}", 1, 1.0),
    ],
)
def test_an_exact_product_passes_several_times_through_the_matrix_unit(dtype, attribute, passes, times) -> None:
    size = f"{dtype}[4096,4096]"
    given = f"x = {size} parameter(2)", f"w = {size} parameter(3)"
    plain, exact = f"r = {size} dot(x, w), {CONTRACT}", f"ROOT q = {size} dot(x, r), {CONTRACT}"
    made, usual = graph(*given, plain, exact + attribute), graph(*given, plain, exact)
    products = [made.matrix[made.names.index(name)].prod() for name in "rq"]
    assert products[1] == passes * products[0]
    assert 2 * seconds(made) / seconds(usual) - 1 == pytest.approx(times, rel=0.2)


def test_a_complex_product_is_three_real_ones() -> None:
    def product(dtype: str) -> np.ndarray:
        made = graph(f"x = {dtype}[2048,2048] parameter(2)", f"ROOT r = {dtype}[2048,2048] dot(x, x), {CONTRACT}")
        return made.matrix[made.names.index("r")]

    assert product("c64").prod() == 3 * product("f32").prod()


@pytest.mark.parametrize(
    ("image", "result", "window", "taps"),
    [
        ("8,2,2,32", "8,2,2,16", "size=2x2 stride=2x2 pad=1_1x1_1", 1),  # a batch of 2 x 2 products
        ("8,32,32,32", "8,17,17,16", "size=2x2 stride=2x2 pad=1_1x1_1", 4),
        ("8,32,32,32", "8,63,63,16", "size=2x2 stride=1x1 lhs_dilate=2x2 pad=1_0x0_1", 1),
    ],
)
def test_a_window_that_is_as_large_as_its_stride_is_a_batch_only_if_it_covers_the_image(
    image: str, result: str, window: str, taps: int
) -> None:
    made = graph(
        f"x = f32[{image}] parameter(2)",
        "w = f32[2,2,32,16] parameter(3)",
        f"ROOT r = f32[{result}] convolution(x, w), window={{{window}}}, dim_labels=b01f_01io->b01f",
    )
    elements = np.prod([int(size) for size in result.split(",")])
    assert made.matrix[made.names.index("r")].prod() == elements * 32 * taps


OWN_KERNELS = """HloModule m
two { a = f32[] parameter(0)
 b = f32[] parameter(1)
 c = f32[] parameter(2)
 d = f32[] parameter(3)
 ROOT t = (f32[], f32[]) tuple(a, b) }
ENTRY e { x = f32[512,512] parameter(0)
 y = f32[512,16] parameter(1)
 z = f32[] constant(0)
 c = c64[8,1024] parameter(2)
 ROOT r = """


@pytest.mark.parametrize(
    ("operation", "work"),
    [
        ("f32[512,512] cholesky(x), lower=true", 512**3 / 3),
        ("f32[512,16] triangular-solve(x, y), left_side=true, lower=true", 512 * 512 * 16),
        ("c64[8,1024] fft(c), fft_type=FFT, fft_length={1024}", 8 * 1024 * 5 * 10),
        ("c64[8,1024] fft(c), fft_type=FFT, fft_length={8,1024}", 8 * 1024 * 5 * 13),
        (
            "(f32[512,512], f32[512,512]) reduce-window(x, x, z, z), window={size=1x64 pad=0_0x63_0}, to_apply=two",
            2 * 64 * 512 * 512,
        ),
    ],
)
def test_a_kernel_of_its_own_has_the_work_that_its_size_needs(operation: str, work: float) -> None:
    made = build(parse_hlo(f"{OWN_KERNELS}{operation} }}", "test"), "test")
    row = made.tables.first[made.signature[made.names.index("r")]]
    assert made.tables.work[row] == pytest.approx(work)


def test_memory_that_is_only_allocated_costs_nothing() -> None:
    made = [
        graph(f"b = W {buffer}", "ROOT r = W dynamic-update-slice(b, e, i, i)")
        for buffer in ("parameter(2)", 'custom-call(), custom_call_target="AllocateBuffer"')
    ]
    assert seconds(made[0]) == seconds(made[1])


def test_weights_that_are_constants_of_the_program_are_read_from_memory() -> None:
    def product(size: int, weights: str) -> float:
        given = f"x = f32[8,{size}] parameter(2)", f"w = f32[{size},{size}] {weights}"
        return seconds(graph(*given, f"ROOT r = f32[8,{size}] dot(x, w), {CONTRACT}"))

    assert product(1024, "constant({...})") == product(1024, "parameter(3)")
    assert product(32, "constant({...})") < product(32, "parameter(3)")  # one tile


@pytest.mark.parametrize(
    "names", [("SPMDFullToShard", "SPMDShardToFull"), ("xla.sdy.GlobalToLocal", "xla.sdy.LocalToGlobal")]
)
def test_the_part_of_an_array_on_one_device_is_where_the_array_is(names: tuple[str, str]) -> None:
    target = 'custom_call_target="{}Shape", custom_call_has_side_effect=true, sharding={{manual}}'.format
    part, whole = map(target, names)
    alone = graph("ROOT r = S negate(a)")
    mapped = ["p = H custom-call(a), " + part, "n = H negate(p)", "ROOT r = S custom-call(n), " + whole]
    made = graph(*mapped)
    assert [opcode for opcode in made.opcodes if opcode != "get-tuple-element"] == ["parameter", "negate"]
    assert 0 < seconds(made) < seconds(alone)
    pair = ["p = (H, H) custom-call(a, e), " + part, "q = H get-tuple-element(p), index=1", "ROOT r = H negate(q)"]
    assert "exponential" in graph(*pair).opcodes


def test_what_is_received_or_drawn_is_kept_and_a_loop_repeats_its_effects() -> None:
    kept = graph("v = (S, token[]) infeed(t)", "g = u64[2]{0} rng-get-and-update-state()", "ROOT r = S negate(a)")
    assert {"infeed", "rng-get-and-update-state"} <= set(kept.opcodes)
    state = ["z = s32[] constant(0)", "s = (s32[], S) tuple(z, e)"]
    loop = graph(*state, "w = (s32[], S) while(s), condition=four, body=feed", "ROOT r = S negate(a)")
    assert loop.weight[loop.opcodes.index("outfeed")] == loop.weight[loop.opcodes.index("cosine")] == 4


# The shape of the start, the shape of the result, and the synchronous operation.
PAIRS = [
    ("(S, W)", "W", "all-gather(e), dimensions={0}"),
    ("((S, S), (W, W))", "(W, W)", "all-gather(e, f), dimensions={0}"),
    ("S", "S", "all-reduce(e), to_apply=plus"),
    ("(S, S)", "(S, S)", "all-reduce(e, f), to_apply=plus"),
    ("(S, S, u32[], u32[])", "S", "collective-permute(e), source_target_pairs={{0,1}}"),
    ("((S, S), (S, S))", "(S, S)", "collective-permute(e, f), source_target_pairs={{0,1}}"),
    ("((S), H, s32[])", "H", "reduce-scatter(e), dimensions={0}, to_apply=plus"),
    ("((S, S), (S, S))", "(S, S)", "all-to-all(e, f)"),
    ("((S), S, s32[])", "S", "collective-broadcast(e)"),
    ("((S), S, s32[])", "S", "call(e), to_apply=square"),
    ("((S), S, s32[])", "S", "fusion(e), kind=kOutput, calls=square"),
    ("((S), S, s32[])", "S", 'custom-call(e), custom_call_target="f"'),
    ("(S, S, u32[])", "S", "copy(e)"),
    ("((S), H, s32[])", "H", "slice(e), slice={[0:256], [0:512]}"),
    ("((S, s32[], s32[]), H, s32[])", "H", "dynamic-slice(e, i, i), dynamic_slice_sizes={256,512}"),
    ("((S, S, s32[], s32[]), S, s32[])", "S", "dynamic-update-slice(e, f, i, i)"),
]
WRAPPED = {
    "gather": ("((S), W)", "W", "all-gather(e), dimensions={0}"),
    "own": ("((S), S, s32[])", "S", 'custom-call(e), custom_call_target="f"'),
    "part": ("((S), H, s32[])", "H", "slice(e), slice={[0:256], [0:512]}"),
    "square": ("((S), S, s32[])", "S", "call(e), to_apply=square"),
}


def ends(shape: str) -> list[str]:
    if shape[0] != "(":
        return [f"ROOT r = {shape} tanh(d)"]
    return [f"d1 = {shape[1]} get-tuple-element(d), index=1", f"ROOT r = {shape[1]} tanh(d1)"]


@pytest.mark.parametrize(("started", "shape", "operation"), PAIRS)
def test_a_start_and_a_done_are_one_operation(started: str, shape: str, operation: str) -> None:
    name, _, rest = operation.partition("(")
    start, done = f"s = {started} {name}-start({rest}", f"d = {shape} {name}-done(s)"
    assert graph(start, done, *ends(shape)).digest() == graph(f"d = {shape} {operation}", *ends(shape)).digest()


@pytest.mark.parametrize("name", WRAPPED)
@pytest.mark.parametrize("calls", ["", ", calls="])
def test_an_asynchronous_computation_is_entered(name: str, calls: str) -> None:
    started, shape, operation = WRAPPED[name]
    lines = [f"s = {started} async-start(e), calls={name}", f"u = {started} async-update(s)"]
    done = f"d = {shape} async-done(u){calls and calls + name}"
    assert graph(*lines, done, *ends(shape)).digest() == graph(f"d = {shape} {operation}", *ends(shape)).digest()


def test_what_a_loop_starts_it_may_finish_in_its_next_trip() -> None:
    text = """HloModule m
    less { p = (s32[], (f32[64,128], f32[128,128], u32[])) parameter(0)
     i = s32[] get-tuple-element(p), index=0
     n = s32[] constant(4)
     ROOT l = pred[] compare(i, n), direction=LT }
    body { p = (s32[], (f32[64,128], f32[128,128], u32[])) parameter(0)
     i = s32[] get-tuple-element(p), index=0
     s = (f32[64,128], f32[128,128], u32[]) get-tuple-element(p), index=1
     one = s32[] constant(1)
     j = s32[] add(i, one)
     d = f32[128,128] all-gather-done(s)
     h = f32[64,128] slice(d), slice={[0:64], [0:128]}
     y = f32[64,128] tanh(h)
     n = (f32[64,128], f32[128,128], u32[]) all-gather-start(y), dimensions={0}
     ROOT q = (s32[], (f32[64,128], f32[128,128], u32[])) tuple(j, n) }
    ENTRY main { a = f32[64,128] parameter(0)
     z = s32[] constant(0)
     s = (f32[64,128], f32[128,128], u32[]) all-gather-start(a), dimensions={0}
     t = (s32[], (f32[64,128], f32[128,128], u32[])) tuple(z, s)
     w = (s32[], (f32[64,128], f32[128,128], u32[])) while(t), condition=less, body=body
     l = (f32[64,128], f32[128,128], u32[]) get-tuple-element(w), index=1
     ROOT d = f32[128,128] all-gather-done(l) }"""
    made = build(hlo.parse(text), "test")
    gathers = [w for opcode, w in zip(made.opcodes, made.weight.tolist(), strict=True) if opcode == "all-gather"]
    assert sorted(gathers) == [1, 4]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f32[80,8,128]{2,1,0:T(8,128)}", "f32[76,1024]{1,0:T(8,128)}"),
        ("f32[64,128]{1,0}", "bf16[64,256]{1,0}"),
        ("f32[64,128]{1,0}", "s8[32768]{0}"),
        ("f32[5,7]{1,0}", "f32[1,5,8]{2,1,0}"),
        ("f32[]", "f32[128]{0}"),
    ],
)
def test_a_bitcast_of_another_size_moves_nothing(before: str, after: str) -> None:
    lines = f"a = {before} parameter(0)", f"n = {before} negate(a)", f"b = {after} bitcast(n)"
    assert opcodes(laid_out(graph_of(*lines, f"ROOT r = {after} tanh(b)"))) == ["parameter", "negate", "tanh"]


CONTRACT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
CASES = {
    "one instruction": ("f32[64,128]{1,0}", ["ROOT r = S negate(p)"]),
    "no product": ("f32[64,128]{1,0}", ["a = S negate(p)", "b = S exponential(a)", "ROOT r = S add(a, b)"]),
    "disconnected": (
        "f32[64,128]{1,0}",
        ["q = S parameter(1)", "a = S negate(p)", "b = S negate(a)", "c = S negate(q)", "ROOT r = (S, S) tuple(b, c)"],
    ),
    "single elements": ("f32[1]{0}", ["a = S negate(p)", "b = S exponential(a)", "ROOT r = S add(a, b)"]),
    "zero-sized": ("f32[0,128]{1,0}", ["a = S negate(p)", "b = S exponential(a)", "ROOT r = S add(a, b)"]),
    "larger than memory": ("f32[1000000,1000000]{1,0}", ["a = S negate(p)", "ROOT r = S exponential(a)"]),
    "many dimensions": ("f32[2,3,2,3,2,3,2]{6,5,4,3,2,1,0}", ["a = S negate(p)", "ROOT r = S exponential(a)"]),
    "sub-byte": ("s4[64,128]{1,0}", ["a = S negate(p)", "ROOT r = S add(a, a)"]),
    "empty product": (
        "f32[0,64]{1,0}",
        ["w = f32[64,8]{1,0} parameter(1)", "a = S negate(p)", f"ROOT r = f32[0,8]{{1,0}} dot(a, w), {CONTRACT}"],
    ),
}


def fusion(shape: str, lines: list[str]) -> Fusion:
    body = [
        line.replace("S ", f"{shape} ").replace("(S,", f"({shape},").replace(", S)", f", {shape})") for line in lines
    ]
    return fusion_of(graph_of(f"p = {shape} parameter(0)", *body))


@pytest.mark.parametrize("case", CASES)
def test_odd_programs_have_finite_costs_whatever_is_fused(case: str) -> None:
    made = fusion(*CASES[case])
    d = len(made.columns)
    rows = np.random.default_rng(0).integers(0, 2, (20, d), np.int8)
    costs = made.seconds(np.vstack([rows, np.zeros((1, d), np.int8), np.ones((1, d), np.int8), made.default()[None]]))
    assert np.isfinite(costs).all()
    assert (costs > 0).all()


def test_every_output_is_computed_whatever_is_fused() -> None:
    """What kernels and their guests store always includes the outputs."""
    made = fusion_of(read_graph(program("rnn")))
    rng = np.random.default_rng(1)
    computed = made.arrays.kind > Kind.FREE
    for share in (0.1, 0.5, 0.9):
        made.seconds((rng.random((1, len(made.columns))) < share).astype(np.int8))
        assert (made.state.tally[:, Tally.FUSED] > 0)[made.arrays.output & computed].all()


ODD = """HloModule m

ENTRY main {
  p = f32[4,8]{1,0} parameter(0)
  w = f32[8,4]{1,0} parameter(1)
  d = f32[4,4]{1,0} dot(p, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[4,4]{1,0} add(d, d)
}
"""


@pytest.mark.parametrize("name", ["resnet50", "mobilenet", "rnn", "transformer"])
def test_the_shipped_programs_have_no_unknown_opcode(name: str) -> None:
    assert unknown(hlo.read(program(name))) == {}


def test_every_opcode_and_type_that_xla_reads_is_known() -> None:
    short = {"kClz": "count-leading-zeros", "kCos": "cosine", "kSin": "sine", "kExp": "exponential", "kTopK": "topk"}
    short |= {"kExpm1": "exponential-minus-one", "kLog1p": "log-plus-one", "kPopulationCount": "popcnt"}
    short |= {"kOptimizationBarrier": "opt-barrier"}
    members = [name for name in dir(xla_client.hlo.HloOpcode) if re.fullmatch("k[A-Z].*", name)]
    opcodes = [short.get(name) or re.sub("(?<!^)(?=[A-Z])", "-", name[1:]).lower() for name in members]
    assert set(opcodes) - NAMED == set()
    types = [name for name in dir(xla_client.PrimitiveType) if re.fullmatch("[A-Z][A-Z0-9]*", name)]
    assert {name.lower() for name in types if not is_type(name.lower())} == {"tuple"}


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("lhs_contracting_dims={1}", "lhs_contracting_dims={7}", r"'d' \(dot\)"),
        ("add(d, d)", "transpose(d), dimensions={5,6}", r"'r' \(transpose\)"),
        ("add(d, d)", "dynamic-slice(), dynamic_slice_sizes={4,4}", r"'r' \(dynamic-slice\)"),
    ],
)
def test_an_instruction_that_is_not_well_formed_is_named(old: str, new: str, name: str) -> None:
    with pytest.raises(UserError, match=rf"{name} is not well-formed"):
        build(hlo.parse(ODD.replace(old, new)), "test")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("call(d), to_apply=two", "computation 'two' is given 1 operand and has no operand 1; print it again"),
        ("while(d)", "the instruction 'r' (while) has no condition; print the whole module again"),
        ("reshape(p)", "'r' (reshape) is not well-formed: it changes the number of elements"),
        (
            "dynamic-slice(), dynamic_slice_sizes={4,4}",
            "well-formed: an operand, an attribute or a dimension does not fit",
        ),
        ("transpose(d), dimensions={5,6}", "{5,6} are not different dimensions of an array that has 2"),
        ("transpose(d), dimensions={0}", "dimensions={0} should name 2"),
        ("broadcast(d), dimensions={0,9}", "{0,9} are not different dimensions of an array that has 2"),
        ("reduce(d, d), dimensions={2}, to_apply=two", "{2} are not different dimensions of an array that has 2"),
        ("reduce(d, d), dimensions={1,1}, to_apply=two", "{1,1} are not different dimensions of an array that has 2"),
        ("concatenate(d, d), dimensions={}", "dimensions={} should name 1"),
        ("reverse(d), dimensions={3}", "{3} are not different dimensions of an array that has 2"),
        ("sort(d), dimensions={7}, to_apply=two", "{7} are not different dimensions of an array that has 2"),
        ("dot(p, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "that it contracts, or those of its batch"),
        (
            "dot(d, d), lhs_contracting_dims={1}, rhs_contracting_dims={-1}",
            "`rhs_contracting_dims={-1}` of instruction",
        ),
        ("convolution(d, d), dim_labels=b0f_0io->b0f", "dim_labels=b0f_0io->b0f are not those of its operands and"),
        (
            "convolution(d, d), dim_labels=bf_io->fb, window={size=2}",
            "its window is of rank 1 where it should be of rank 0",
        ),
        ("reduce-window(d, d), window={size=3}, to_apply=two", "its window is of rank 1 where it should be of rank 2"),
        ("reduce-window(d, d), window={size=3x3 pad=1_1}, to_apply=two", "its window has fields of different lengths"),
    ],
)
def test_what_does_not_fit_is_said_in_words(call: str, message: str) -> None:
    two = "two { x = f32[4,4] parameter(0)\n y = f32[4,4] parameter(1)\n ROOT z = f32[4,4] add(x, y) }\n\nENTRY"
    with pytest.raises(UserError, match=re.escape(message)):
        build(parse_hlo(ODD.replace("ENTRY", two).replace("add(d, d)", call), "test"), "test")


APPLIED = """two { x = f32[] parameter(0)
 y = f32[] parameter(1)
 ROOT z = f32[] add(x, y) }
ge { x = f32[] parameter(0)
 y = f32[] parameter(1)
 ROOT z = pred[] compare(x, y), direction=GE }
pair { x = f32[] parameter(0)
 y = f32[] parameter(1)
 v = f32[] parameter(2)
 w = f32[] parameter(3)
 ROOT z = (f32[], f32[]) tuple(x, y) }
same { ROOT x = f32[4,8] parameter(0) }
flat { ROOT x = f32[32] parameter(0) }
less { x = (f32[], f32[4]) parameter(0)
 ROOT z = pred[] constant(true) }
tall { x = (f32[], f32[4]) parameter(0)
 y = f32[] get-tuple-element(x), index=0
 w = f32[4] get-tuple-element(x), index=1
 v = f32[8] concatenate(w, w), dimensions={0}
 ROOT z = (f32[], f32[8]) tuple(y, v) }

ENTRY"""
SHAPED = """s=f32[] v=f32[4] i=s32[] x=f32[1,6,4] k=f32[3,2,2] h=f32[1,4,2]
    j=s32[3,1] y=f32[3,8] z=c64[4,4] q=f32[4,2] f=f32[4,8] o=f32[8]"""


@pytest.mark.parametrize(
    ("result", "call", "follows"),
    [
        ("f32[4,5]", "add(d, d)", "[4,4]"),
        ("f32[4]", "negate(d)", "[4,4]"),
        ("f32[9]", "exponential(s)", "[]"),
        ("f32[4,1]", "multiply(d, d)", "[4,4]"),
        ("pred[4,8]", "compare(d, d), direction=LT", "[4,4]"),
        ("f16[4,8]", "convert(d)", "[4,4]"),
        ("f32[4,8]", "copy(d)", "[4,4]"),
        ("f32[4,8]", "transpose(p), dimensions={1,0}", "[8,4]"),
        ("f32[8,4]", "broadcast(v), dimensions={0}", "[4,4]"),
        ("f32[4,9]", "concatenate(d, d), dimensions={1}", "[4,8]"),
        ("f32[8]", "reduce(p, s), dimensions={1}, to_apply=two", "[4]"),
        ("f32[4,8]", "dot(p, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "[4,4]"),
        ("f32[3,3]", "slice(p), slice={[0:2], [0:8:3]}", "[2,3]"),
        ("f32[4,9]", "slice(p), slice={[0:4], [0:9]}", "[4,8]"),
        ("f32[3,3]", "dynamic-slice(p, i, i), dynamic_slice_sizes={2,3}", "[2,3]"),
        ("f32[8,4]", "dynamic-update-slice(p, d, i, i)", "[4,8]"),
        ("f32[4,9]", "pad(d, s), padding=0_0x1_2_1", "[4,10]"),
        ("f32[8]", "reverse(v), dimensions={0}", "[4]"),
        ("f32[8]", "get-tuple-element(t), index=1", "[4]"),
        ("f32[4,4]", "convolution(d, p), dim_labels=bf_io->fb", "[8,4]"),
        (
            "f32[1,1,4,2]",
            "convolution(x, k), window={size=3 stride=2 pad=1_2 lhs_dilate=2 rhs_dilate=2}, dim_labels=b0f_0oi->fb0, "
            "feature_group_count=2",
            "[2,1,5]",
        ),
        ("f32[2,6,4]", "convolution(x, h), window={size=2}, dim_labels=f0b_io0->b0f, batch_group_count=2", "[2,5,4]"),
        ("f32[4,8]", "reduce-window(p, s), window={size=2x3 stride=1x2 rhs_dilate=3x1}, to_apply=two", "[1,3]"),
        ("f32[2,3]", "select-and-scatter(p, d, s), window={size=1x2 stride=1x2}, select=ge, scatter=two", "[4,8]"),
        (
            "f32[3,5,2]",
            "gather(p, j), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
            "slice_sizes={1,5}",
            "[3,5]",
        ),
        (
            "f32[3,9]",
            "gather(p, j), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
            "slice_sizes={1,9}",
            "[3,8]",
        ),
        (
            "f32[4,9]",
            "scatter(p, j, y), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
            "index_vector_dim=1, to_apply=two",
            "[4,8]",
        ),
        ("f32[4,9]", "sort(p), dimensions={1}, to_apply=ge", "[4,8]"),
        ("c64[4,8]", "fft(p), fft_type=RFFT, fft_length={8}", "[4,5]"),
        ("f32[4,8]", "fft(z), fft_type=IRFFT, fft_length={6}", "[4,6]"),
        ("f32[4,8]", "cholesky(d), lower=true", "[4,4]"),
        ("f32[4,4]", "triangular-solve(d, p), left_side=true, lower=true", "[4,8]"),
        ("f32[8,8]", "all-reduce(p), to_apply=two", "[4,8]"),
        ("f32[7,8]", "all-gather(p), dimensions={0}", "[8,8]"),
        ("f32[4,3]", "reduce-scatter(p), dimensions={1}, to_apply=two", "[4,2]"),
        ("bf16[4,8]", "bitcast-convert(p)", "[4,8,2]"),
        ("f64[4,8]", "bitcast-convert(q)", "[4]"),
        ("s32[4]", "get-dimension-size(p), dimensions={0}", "[]"),
        ("f32[8,4]", "call(p), to_apply=same", "[4,8]"),
    ],
)
def test_a_result_that_contradicts_its_operands_is_refused(result: str, call: str, follows: str) -> None:
    with pytest.raises(UserError, match=re.escape(f"but its operands and attributes give {follows}; print")):
        built_with(result, call)
    built_with(f"{result.partition('[')[0]}{follows}", call)


@pytest.mark.parametrize(
    ("result", "call", "message"),
    [
        ("(f32[4], f32[8])", "reduce(p, p, s, s), dimensions={1}, to_apply=pair", "is [8], but its operands and"),
        (
            "f32[4,8]",
            "sort(p, p), dimensions={1}, to_apply=pair",
            "is [4,8], but its operands and attributes give 2 values",
        ),
        ("(f32[4,3], s32[4,4])", "topk(p), k=3, largest=true", "is [4,4], but its operands and attributes give [4,3]"),
        ("f32[4,8]", "call(p), to_apply=flat", "its operands are [4,8], but computation 'flat' takes [32]"),
        ("f32[32]", "conditional(i, f), branch_computations={flat}", "its operands are [4,8], but computation 'flat'"),
        ("f32[32]", "conditional(i, p), branch_computations={same}", "is [32], but computation 'same' returns [4,8]"),
        ("(f32[], f32[4])", "while(t), condition=less, body=tall", "is [4], but computation 'tall' returns [8]"),
        ("f32[4,16]", "concatenate(p, w), dimensions={1}", "its operands have different sizes: [4,8], [8,4]"),
        ("f32[4,4]", "dynamic-update-slice(d, p, i, i)", "its update is [4,8], larger than its operand, [4,4]"),
        ("f32[4,8]", "convolution(p, p), dim_labels=bf_io->bf", "its input has 8 features where its filter takes 4"),
        (
            "f32[1,6,2]",
            "convolution(x, k), window={size=1}, dim_labels=b0f_0oi->b0f, feature_group_count=2",
            "its window is [1], but its filter is [3]",
        ),
        (
            "f32[1,5,4]",
            "convolution(x, h), window={size=2}, dim_labels=f0b_io0->b0f, batch_group_count=3",
            "its groups do not divide its batch, or the features of its result",
        ),
    ],
)
def test_parts_that_contradict_one_another_are_refused(result: str, call: str, message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        built_with(result, call)


@pytest.mark.parametrize(
    ("result", "call"),
    [
        ("(f32[4], f32[4])", "reduce(p, p, s, s), dimensions={1}, to_apply=pair"),
        ("(f32[3,8], f32[3,8])", "reduce-window(p, p, s, s), window={size=2x1}, to_apply=pair"),
        ("(f32[4,8], f32[4,8])", "sort(p, p), dimensions={1}, to_apply=pair"),
        (
            "(f32[4,8], f32[4,8])",
            "scatter(p, p, j, y, y), update_window_dims={1}, inserted_window_dims={0}, "
            "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=pair",
        ),
        ("(f32[4,3], s32[4,3])", "topk(p), k=3, largest=true"),
        ("(f32[8,8], f32[8])", "all-gather(p, v), dimensions={0}"),
        ("(f32[4,8])", "all-to-all(p), replica_groups={{0}}"),
        ("(f32[4], u32[7])", "rng-bit-generator(v), algorithm=rng_default"),
        ("(f32[4,8], f32[8], f32[8])", "batch-norm-training(p, o, o), epsilon=0.1, feature_index=1"),
        ("f32[4,8]", "collective-permute(p), source_target_pairs={{0,1}}"),
    ],
)
def test_operations_on_several_arrays_have_the_results_of_each(result: str, call: str) -> None:
    built_with(result, call)


def built_with(result: str, call: str) -> None:
    """Build a program with a call that has this result."""
    more = "".join(f"  {shape.replace('=', ' = ')} parameter({n})\n" for n, shape in enumerate(SHAPED.split(), 2))
    more += f"  t = (f32[], f32[4]) tuple(s, v)\n  r = {result} {call}\n  ROOT u = f32[4,4] negate(d)"
    build(parse_hlo(ODD.replace("ENTRY", APPLIED).replace("  ROOT r = f32[4,4]{1,0} add(d, d)", more), "test"), "test")


@pytest.mark.parametrize(
    "call", ["add(d, s)", "clamp(s, d, s)", "add(d, c)", "select(q, d, d)", "map(d), to_apply=one"]
)
def test_scalars_and_dimensions_of_size_one_fit_any_array(call: str) -> None:
    one = "one { x = f32[] parameter(0)\n ROOT z = f32[] negate(x) }\n\nENTRY"
    more = "  s = f32[] parameter(2)\n  c = f32[4,1] parameter(3)\n  q = pred[] parameter(4)\n  ROOT"
    build(parse_hlo(ODD.replace("ENTRY", one).replace("  ROOT", more).replace("add(d, d)", call), "test"), "test")
