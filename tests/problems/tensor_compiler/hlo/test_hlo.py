from __future__ import annotations

import gzip
import re
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax._src.lib import xla_client

from bbo_problems.tensor_compiler.hlo.module import Shape
from bbo_problems.tensor_compiler.hlo.parser import parse_hlo
from bbo_problems.tensor_compiler.hlo.reader import parse, read
from bbo_suite.errors import UserError

DATA = Path(__file__).parents[5] / "shared/data/hlo"
FILES = sorted(DATA.glob("*.hlo.gz"))

SMALL = """HloModule small, entry_computation_layout={(f32[2]{0})->f32[2]{0}}, frontend_attributes={a="}"}

FileNames
1 "x{.py"

StackFrames
1 {file_location_id=1 parent_frame_id=1}


%add.2 (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum-3 = f32[] add(f32[] %a, f32[] %b), metadata={op_name="jit(\\"}{)"}
}, execution_thread="host"

/* an untyped one */
region_0.4 {
  t = (f32[<=4,8]{1,0:T(8,128)S(1)}, /*index=1*/(s32[], token[]), ()) parameter(0)
  ROOT c = weird9[3] constant({1,
    2, /*i=2*/ 3})
}

ENTRY %main (x: f32[2], t: (f32[4,8], (s32[], token[]), ())) -> f32[2] {
  %x = f32[2]{0} parameter(0), sharding={devices=[8,1]<=[8]}
  %t = (f32[4,8]{1,0}, (s32[], token[]), ()) parameter(1) // the second
  %y = f32[2] made-up(%late, f32[2]{0} %x,/*index=2*/ (f32[4,8]{1,0}, (s32[], token[]), ()) %t), opaque="a\\"}, b=c{",
    branch_computations={%region_0.4, %add.2}, dim_labels=b01f_01io->b01f, to_apply=%add.2
  ROOT %late = f32[2]{0} iota(), iota_dimension=0
}

FileNames
1 "y"
"""


def model(x, w):
    def step(carry, _):
        return jnp.sin(carry @ carry), carry.sum()

    image = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME")
    carry, sums = jax.lax.scan(step, image[0, 0], None, length=7)
    chosen = jax.lax.cond(sums.sum() > 0, lambda v: v + 1, lambda v: v * jnp.arange(8.0), carry)
    return jnp.sort(chosen), jnp.argmax(chosen), chosen.at[jnp.array([1, 2])].add(1.0)


@pytest.fixture(scope="module")
def lowered():
    return jax.jit(model).lower(jnp.ones((1, 2, 8, 8)), jnp.ones((3, 2, 3, 3)))


def printed(shape):
    """The shape as XLA prints it."""
    if shape.dtype == "tuple":
        return "(" + ", ".join(map(printed, shape.elements)) + ")"
    order = shape.layout or range(len(shape.dims))[::-1]
    layout = "{" + ",".join(map(str, order)) + "}" if shape.dims else ""
    return f"{shape.dtype}[{','.join(map(str, shape.dims))}]{layout}"


def assert_agrees_with_xla(text):
    ours = parse(text)
    module = xla_client.hlo.hlo_module_from_text(text)
    theirs = {each.name: each for each in module.computations()}
    assert set(ours.computations) == set(theirs)
    roots = {each.instructions[each.root].name for each in ours.computations.values()}
    assert roots == set(re.findall(r"^ *ROOT %(\S+) =", module.to_string(), re.MULTILINE))
    assert re.findall(r"^ENTRY %(\S+)", module.to_string(), re.MULTILINE) == [ours.entry]
    for name, computation in ours.computations.items():
        expected = {each.name: each for each in theirs[name].instructions()}
        assert {each.name for each in computation.instructions} == set(expected)
        for instruction in computation.instructions:
            operands = [computation.instructions[operand].name for operand in instruction.operands]
            assert operands == [operand.name for operand in expected[instruction.name].operands()]
            assert_prints_alike(instruction, expected[instruction.name].to_string())


def bare(text):
    """The text without comments, `%` and the spaces that comments leave."""
    return re.sub(r" +", " ", re.sub(r"/[*].*?[*]/", "", text)).replace("%", "")


def assert_prints_alike(instruction, text):
    """XLA prints the same name, shape, opcode and attributes; operands are left to the caller."""
    text = bare(text)
    assert text.startswith(f"{instruction.name} = {printed(instruction.shape)} {instruction.opcode}(")
    for key, value in instruction.attributes.items():
        assert f", {key}={bare(value)}" in text
    if instruction.literal is not None:
        assert f"constant({instruction.literal}" in text
    if instruction.parameter_number is not None:
        assert f"parameter({instruction.parameter_number})" in text


@pytest.mark.skipif(not FILES, reason="the HLO files are not here")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_files_agree_with_xla(path):
    assert_agrees_with_xla(gzip.decompress(path.read_bytes()).decode())


def test_lowered_modules_agree_with_xla(lowered):
    module = lowered.compiler_ir("hlo").as_hlo_module()
    assert_agrees_with_xla(lowered.compiler_ir("hlo").as_hlo_text())
    assert_agrees_with_xla(module.to_string())  # with types of parameters and tables of source positions
    assert_agrees_with_xla(module.to_string(xla_client.hlo.HloPrintOptions.short_parsable()))


def test_a_compiled_module_agrees_with_xla(lowered):
    assert_agrees_with_xla(lowered.compile().as_text())


def test_other_calls_agree_with_xla():
    assert_agrees_with_xla("""HloModule calls
    %t { ROOT %a.1 = f32[2]{0} parameter(0) }
    %less { %l = f32[] parameter(0)
      %r = f32[] parameter(1)
      ROOT %c = pred[] compare(%l, %r), direction=GE }
    %plus { %x.1 = f32[] parameter(0)
      %y.1 = f32[] parameter(1)
      ROOT %z.1 = f32[] add(%x.1, %y.1) }
    ENTRY %e {
      %p = pred[] parameter(0)
      %x = f32[2]{0} parameter(1)
      %zero = f32[] constant(0)
      %q = f32[2]{0} conditional(%p, %x, %x), true_computation=%t, false_computation=%t
      %s = f32[1]{0} custom-call(%x), custom_call_target="a{\\"(", called_computations={%t, %plus}
      %v = f32[2]{0} select-and-scatter(%q, %s, %zero), window={size=2}, select=%less, scatter=%plus
      ROOT %o = (f32[2]{0}, (f32[2]{0}, ())) custom-call(%v), custom_call_target="b", api_version=API_VERSION_TYPED_FFI
    }""")


def test_every_print_style_is_the_same_module(lowered):
    module = lowered.compiler_ir("hlo").as_hlo_module()
    options = xla_client.hlo.HloPrintOptions()
    options.print_operand_shape = True
    options.print_large_constants = True
    assert parse(module.to_string(options)) == parse(module.to_string())


@pytest.mark.slow
def test_stablehlo_is_converted(lowered):
    def structure(module):
        """All but the names, which StableHLO text does not carry."""
        return [
            (each.opcode, each.shape, each.operands, each.literal, each.parameter_number)
            for computation in module.computations.values()
            for each in computation.instructions
        ]

    expected = structure(parse(lowered.compiler_ir("hlo").as_hlo_text()))
    assert structure(parse(lowered.as_text())) == expected
    assert structure(parse("// a comment\n" + lowered.as_text(debug_info=True))) == expected


def test_all_parts_of_a_module_are_read():
    module = parse(SMALL)
    assert (module.name, module.entry, list(module.computations)) == ("small", "main", ["add.2", "region_0.4", "main"])
    main = module.computations["main"]
    assert [each.name for each in main.instructions] == ["x", "t", "y", "late"]
    assert main.root == 3
    assert main.instructions[0].attributes == {"sharding": "{devices=[8,1]<=[8]}"}
    assert main.instructions[0].literal is None
    assert main.instructions[1].parameter_number == 1
    assert main.instructions[2].opcode == "made-up"
    assert main.instructions[2].operands == (3, 0, 1)
    assert main.instructions[2].attributes == {
        "opaque": '"a\\"}, b=c{"',
        "branch_computations": "{region_0.4, add.2}",
        "dim_labels": "b01f_01io->b01f",
        "to_apply": "add.2",
    }
    assert main.instructions[2].called_computations == ("add.2", "region_0.4", "add.2")
    assert module.computations["add.2"].instructions[2].attributes == {}


def test_shapes_and_constants_are_read():
    parameter, constant = parse(SMALL).computations["region_0.4"].instructions
    array, inner, empty = parameter.shape.elements
    assert array == Shape("f32", (4, 8))
    assert parse(SMALL.replace("{1,0:T", "{0,1:T")).computations["region_0.4"].instructions[0].shape.elements[
        0
    ] == Shape("f32", (4, 8), layout=(0, 1))
    assert inner == Shape("tuple", elements=(Shape("s32"), Shape("token")))
    assert empty == Shape("tuple")
    assert constant.shape == Shape("weird9", (3,))
    assert constant.literal == "{1,\n    2,   3}"


def test_plain_text_and_gzip_are_read_whatever_the_suffix(tmp_path):
    (tmp_path / "plain.gz").write_text(SMALL)
    (tmp_path / "packed.txt").write_bytes(gzip.compress(SMALL.encode()))
    assert read(tmp_path / "plain.gz") == read(str(tmp_path / "packed.txt")) == parse(SMALL)


@given(st.integers(0, len(SMALL)))
def test_text_cut_anywhere_gives_a_module_or_a_user_error(length):
    complete = SMALL.index("ROOT %late")
    try:
        parse_hlo(SMALL[:length], "test")
    except UserError:
        return
    assert length > complete


@given(st.integers(0, len(SMALL) - 1), st.text(max_size=3))
def test_damaged_text_gives_a_module_or_a_user_error(position, damage):
    try:
        parse_hlo(SMALL[:position] + damage + SMALL[position + 1 :], "test")
    except UserError as error:
        assert "; " in str(error)


BODY = "x = f32[2]{0} parameter(0)\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello", "line 1: expected a module that begins with `HloModule <name>`"),
        ("HloModule m", "line 1: the module has 0 ENTRY computations"),
        (f"HloModule m\nENTRY e {{\n{BODY}}}\nENTRY f {{\n{BODY}}}", "the module has 2 ENTRY"),
        (f"HloModule m\nENTRY e {{\n{BODY}}}\ne {{\n{BODY}}}", "line 5: the computation 'e' is defined twice"),
        ("HloModule m\nENTRY e {\n}", "the computation 'e' has no instruction"),
        (f"HloModule m\nENTRY e {{\n{BODY}", "line 2: the text ends within the computation 'e'"),
        (f"HloModule m\nENTRY e {{\n{BODY}y = f32[2] negate(x", r"line 4: the '\(' is not closed"),
        (f"HloModule m\nENTRY e {{\n{BODY}y = f32[2] f(x), a={{(}})", "line 4: the '{' is not closed"),
        (f'HloModule m\nENTRY e {{\n{BODY}y = f32[2] f(x), a="', "line 4: the '\"' is not closed"),
        (f"HloModule m\nENTRY e {{\n{BODY}y = f32[2]", "line 4: the text ends where it should have an opcode"),
        (f"HloModule m\nENTRY e {{\n{BODY}y =\n negate(x)}}", "line 5: expected a shape"),
        (f"HloModule m\nENTRY e {{\n{BODY}y = )\n}}", "line 4: a tuple shape closes that was not open"),
        (f"HloModule m\nENTRY e {{\n{BODY}y = f32[?] negate(x)}}", r"line 4: 'f32\[\?\]' is not a shape with bounded"),
        (f"HloModule m\nENTRY e {{\n{BODY}y = f32[{','.join('1' * 3000)}] negate(x)}}", "a shape with .*, at most 32,"),
        (f"HloModule m\nENTRY e {{\n{BODY}y = f32[2] negate(z)}}", "line 4: the operand 'z' of instruction 'y' is not"),
        (f"HloModule m\nENTRY e {{\n{BODY}{BODY}}}", "line 4: the instruction 'x' is defined twice"),
        (f"HloModule m\nENTRY e {{\nROOT {BODY}ROOT y = f32[] f()\n}}", "more than one ROOT"),
        (f"HloModule m\nENTRY e {{\n{BODY}y = f32[2] negate(y)}}", "line 3: instructions of computation 'e' use each"),
        (f"HloModule m\nENTRY e {{\n{BODY}y = f32[2] call(x), to_apply=e}}", "call each other in a circle"),
        (
            f"HloModule m\nENTRY e {{\n{BODY}y = f32[2] call(x), to_apply=%g}}",
            "line 4: the called computation 'g' is not",
        ),
        ("HloModule m\nENTRY e {\nx = f32[] parameter(-1)}", "line 3: the parameter 'x' has no number"),
        ("HloModule m\nENTRY e {\nx = f32[] parameter(1)}", "parameters of the computation 'e' are not numbered 0, 1"),
        ("HloModule m\nENTRY e {\nx = f32[] parameter(0)\ny = f32[] parameter(0)}", "are not numbered 0, 1 and so on"),
    ],
)
def test_mistakes_in_the_text_are_named_with_their_place(text, message):
    fails(lambda: parse_hlo(text, "HLO text"), message)


ATTRIBUTES = {
    "f32[8,8] convolution(x, x), dim_labels=bf_io->bf, feature_group_count=1, batch_group_count=1": [
        ("bf_io->bf", "bf_io-bf"), ("bf_io->bf", "bx_io->bf"), ("count=1", "count=a"), ("count=1", "count={1}"),
    ],
    "f32[4,8] reduce-window(x, z), window={size=2x3 stride=2x1 pad=0_0x1_-1 lhs_dilate=1x2}, to_apply=plus": [
        ("1_-1", "a_1"), ("1_-1", "1_"), ("0_0x", "0_0_0x"), ("2x3", "2xa"), ("2x3", "-2x3"), ("stride", "strides"),
        ("{size", "size"), ("lhs_dilate=1x2", "lhs_dilate"), ("2x1", "2,1"), ("2x1", ""), ("=1x2}", "=1x2 7}"),
    ],
    "f32[11,8] pad(x, z), padding=1_1_0x0_-0": [("1_1_0", "1_1_a"), ("1_1_0", "1"), ("0x0", "0_0"), ("-0", "-a")],
    "f32[4,8] slice(x), slice={[0:8:2], [0:8]}": [("[0:8]", "[0]"), ("[0:8]", "[0:b]"), ("[0:8]", "0:8"), ("{", "")],
    "f32[8] reduce(x, z), dimensions={1}, to_apply=plus": [("{1}", "1"), ("{1}", "{1.5}"), ("1}", "1,}")],
    "f32[4,8] dynamic-slice(x, i, i), dynamic_slice_sizes={4,8}": [("4,8", "4 8"), ("4,8", "4,,8"), ("4,8", "4x8")],
    "f32[8,8] all-reduce(x), channel_id=1, replica_groups={{0,1},{2,3}}, to_apply=plus": [
        ("{{0,1},{2,3}}", "{0,1}"), ("{{0,1},{2,3}}", "{{0,1},2}"), ("2,3", "2,a"), ("id=1", "id=a"),
    ],
    "f32[8,8] all-reduce(x), channel_id=1, replica_groups=[2,2]<=[2,2]T(1,0), to_apply=plus": [
        ("T(1,0)", "T(1"), ("<=[2,2]", "<=2,2"), ("=[2,2]", "=[2,a]"),
    ],
    "f32[8,8] all-reduce(x), channel_id=1, replica_groups=mesh['a'=2,'b'=2] {'b'}, to_apply=plus": [("mesh", "mash")],
    "f32[8,8] collective-permute(x), source_target_pairs={{0,1},{1,0}}": [("{0,1}", "{0,1,2}"), ("{0,1}", "{0}")],
    "pred[8,8] compare(x, x), direction=LT": [("LT", "LS"), ("LT", "{LT}")],
    "f32[8,8] sort(x), dimensions={0}, is_stable=true, to_apply=less": [("true", "True"), ("true", "{true}")],
    "f32[8,8] iota(), iota_dimension=1": [("=1", "=a"), ("=1", "={1}")],
}  # fmt: skip
PARTS = """HloModule m
plus { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }
less { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = pred[] compare(a, b), direction=LT }
ENTRY e { x = f32[8,8] parameter(0)
 i = s32[] parameter(1)
 z = f32[] constant(0)
 ROOT r = """


LACKING = [
    ("f32[8,8] add(x)", "has 1 operands where it should have 2"),
    ("f32[8,8] tanh(x, x)", "has 2 operands where it should have 1"),
    ("f32[8,8] select(x, x)", "has 2 operands where it should have 3"),
    ("f32[8,8] transpose(x)", "has no dimensions"),
    ("f32[8] reduce(x, z), to_apply=plus", "has no dimensions"),
    ("f32[8] reduce(x, z), dimensions={1}", "has no to_apply"),
    ("f32[4,8] slice(x)", "has no slice"),
    ("f32[8,8] pad(x, z)", "has no padding"),
    ("f32[8,8] fusion(x), kind=kLoop", "has no calls"),
    ("f32[8,8] custom-call(x)", "has no custom_call_target"),
    ("f32[8,8] gather(x, i)", "has no offset_dims"),
    ("pred[8,8] compare(x, x)", "has no direction"),
    ("f32[8,8] convolution(x, x)", "has no dim_labels"),
]


@pytest.mark.parametrize(("instruction", "message"), LACKING)
def test_an_instruction_that_xla_finds_incomplete_is_named(instruction, message):
    with pytest.raises(RuntimeError):
        xla_client.hlo.hlo_module_from_text(f"{PARTS}{instruction} }}")
    fails(lambda: parse_hlo(f"{PARTS}{instruction} }}", "test"), rf"line 11: the instruction 'r' .* {message}; ")


@pytest.mark.parametrize("instruction", ATTRIBUTES)
def test_an_attribute_that_xla_cannot_read_is_named(instruction):
    xla_client.hlo.hlo_module_from_text(f"{PARTS}{instruction} }}")
    assert parse_hlo(f"{PARTS}{instruction} }}", "test").instructions()[-1].name == "r"
    for right, wrong in ATTRIBUTES[instruction]:
        assert right in instruction
        text = f"{PARTS}{wrong.join(instruction.rsplit(right, 1))} }}"
        with pytest.raises(RuntimeError):
            xla_client.hlo.hlo_module_from_text(text)
        fails(lambda: parse_hlo(text, "HLO text"), "HLO text, line 11: ")  # noqa: B023


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "HLO text is empty"),
        (f"HloModule m\nENTRY e {{\n{BODY}y = negate(z)}}", r"line 4: expected a shape .*line 4: cannot parse"),
        (f"HloModule m\nENTRY e {{\n{BODY}y = f32[?] negate(x)}}", "as XLA prints it, line 5: 'f32.*bounded"),
        ("HloModule m\nENTRY e { x = " + "(" * 100_000, "XLA.s reader says: the process died"),
        ("module @m {", "HLO text is StableHLO that jaxlib cannot convert"),
        ("func.func @f() { return }", r"convert \(conversion requires module with `main` function"),
        (
            'func.func @main(%i: tensor<i32> {jax.global_constant = "_platform_index"}) -> tensor<i32> {'
            ' %0 = "stablehlo.case"(%i) ({ stablehlo.return %i : tensor<i32> }) : (tensor<i32>) -> tensor<i32>'
            " return %0 : tensor<i32> }",
            "is a module for several platforms, of which one runs; print its text with jax.export",
        ),
        ("module @m { func.func private @main(%a: tensor<f32>) -> tensor<f32> }", "the process died of"),
        (
            "module @m { func.func public @main(%a: tensor<?xf32>) -> tensor<?xf32> { return %a : tensor<?xf32> } }",
            r"HLO text as HLO, line 3: 'f32\[\?\]' is not a shape",
        ),
    ],
)
def test_text_that_xla_cannot_read_either_is_refused(text, message):
    fails(lambda: parse(text), message)


def fails(read, message):
    with pytest.raises(UserError, match=message) as caught:
        read()
    assert "\n" not in str(caught.value)
    assert re.search(r"; (give|print) .*\.$", str(caught.value))


@pytest.mark.parametrize("depth", [64, 10_000])
def test_deep_tuples_are_refused(depth):
    text = f"HloModule m\nENTRY e {{\nx = {'(' * depth}f32[]{')' * depth} parameter(0)}}"
    with pytest.raises(UserError, match="line 3: a tuple shape nests"):
        parse_hlo(text, "test")


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["/*", '"', '"/*', '"\\', "{", "(", ", a=", "\\", "//", "=", "x = f32[] f(", "ROOT "])
def test_hostile_text_is_parsed_in_linear_time(piece):
    start = time.process_time()
    for head in ("", "HloModule m ", "HloModule m\nENTRY e { x = f32[] f(", 'HloModule m\nENTRY e { x = f32[] f("'):
        for tail in ("", '")}'):
            with pytest.raises(UserError):
                parse_hlo(head + piece * 100_000 + tail, "test")
    assert time.process_time() - start < 5


@pytest.mark.slow
def test_unreadable_files_give_one_sentence(tmp_path):
    def fails(path, message):
        with pytest.raises(UserError, match=message) as caught:
            read(path)
        assert str(caught.value).startswith(str(path))

    fails(tmp_path / "missing.hlo", "cannot be read .No such file")
    fails(tmp_path, "cannot be read .Is a directory")
    fails("a\0b", "cannot be read")
    contents = {
        "is empty": b"",
        "is not text": b"\x80\x81\xff",
        "is MLIR bytecode, not text; print its text with jax.export": b"ML\xefR\x0dStableHLO",
        "a gzip file that is truncated or damaged": gzip.compress(SMALL.encode())[:-20],
        "truncated or damaged; copy it again": b"\x1f\x8bjunk",
        "line 3: the parameter": b"HloModule m\nENTRY e {\nx = f32[] parameter()}",
    }
    for message, content in contents.items():
        (tmp_path / "bad").write_bytes(content)
        fails(tmp_path / "bad", message)


STABLEHLO = """#loc1 = loc("jit(f)/dot_general"(callsite("f"("a.py":4:13) at "<module>"("a.py":9:4))))
module @jit_f {
  func.func public @main(%arg0: tensor<8x8xf32> loc("x")) -> tensor<8x8xf32> {
    %0 = stablehlo.dot_general %arg0, %arg0, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc(#loc1)
    %sum = stablehlo.add %0, %arg0 : tensor<8x8xf32> loc("loc(deep)")
    %2 = call @relu(%sum) : (tensor<8x8xf32>) -> tensor<8x8xf32> loc(unknown)
    return %2 : tensor<8x8xf32>
  }
  func.func private @relu(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %0 = stablehlo.abs %arg0 : tensor<8x8xf32>
    return %0 : tensor<8x8xf32>
  }
}
"""  # noqa: E501


@pytest.mark.slow
def test_instructions_have_the_names_of_the_stablehlo_text():
    module = parse(STABLEHLO)
    names = {each.opcode: each.name for c in module.computations.values() for each in c.instructions}
    assert {opcode: names[opcode] for opcode in ("dot", "add", "call", "abs")} == {
        "dot": "%0", "add": "%sum", "call": "%2", "abs": "@relu/%0",
    }  # fmt: skip
