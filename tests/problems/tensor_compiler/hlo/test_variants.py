"""One program in many forms of text: each form that XLA's own reader takes gives the same graph."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import partial

import pytest
from jax._src.lib import xla_client

from bbo_problems.tensor_compiler.graph.build import build
from bbo_problems.tensor_compiler.hlo import reader, xla
from bbo_problems.tensor_compiler.hlo.parser import parse_hlo
from bbo_suite.errors import UserError

HEAD = "HloModule whole\n\n"
PLUS = """%plus.1 (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum-1 = f32[] add(f32[] %a, f32[] %b)
}

"""
TEXT = f"""{HEAD}{PLUS}%fused (p: f32[8,128], q: f32[8,128]) -> f32[8,128] {{
  %p = f32[8,128]{{1,0}} parameter(0)
  %q = f32[8,128]{{1,0}} parameter(1)
  %m = f32[8,128]{{1,0}} multiply(%p, %q)
  ROOT %l = f32[8,128]{{1,0}} logistic(%m)
}}

%body (s: (s32[], f32[8,128], (f32[8], s32[]))) -> (s32[], f32[8,128], (f32[8], s32[])) {{
  %s = (s32[], f32[8,128]{{1,0}}, (f32[8]{{0}}, s32[])) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %x = f32[8,128]{{1,0}} get-tuple-element(%s), index=1
  %e = f32[8,128]{{1,0}} exponential(%x)
  %inner = (f32[8]{{0}}, s32[]) get-tuple-element(%s), index=2
  ROOT %t = (s32[], f32[8,128]{{1,0}}, (f32[8]{{0}}, s32[])) tuple(%next, %e, %inner)
}}

%until (s: (s32[], f32[8,128], (f32[8], s32[]))) -> pred[] {{
  %s.1 = (s32[], f32[8,128]{{1,0}}, (f32[8]{{0}}, s32[])) parameter(0)
  %i.1 = s32[] get-tuple-element(%s.1), index=0
  %bound = s32[] constant(12)
  ROOT %less = pred[] compare(%i.1, %bound), direction=LT
}}

%yes (y: f32[8,128]) -> f32[8,128] {{
  %y = f32[8,128]{{1,0}} parameter(0)
  ROOT %yn = f32[8,128]{{1,0}} negate(%y)
}}

%no (z: (f32[8,128], f32[])) -> f32[8,128] {{
  %z = (f32[8,128]{{1,0}}, f32[]) parameter(0)
  %z0 = f32[8,128]{{1,0}} get-tuple-element(%z), index=0
  %z1 = f32[] get-tuple-element(%z), index=1
  %zb = f32[8,128]{{1,0}} broadcast(%z1), dimensions={{}}
  ROOT %za = f32[8,128]{{1,0}} add(%z0, %zb)
}}

ENTRY %main (x: f32[8,128], image: f32[1,9,9,4], n: s32[]) -> (f32[8,128], f32[8,8], f32[8]) {{
  %x.1 = f32[8,128]{{1,0}} parameter(0)
  %image = f32[1,9,9,4]{{3,2,1,0}} parameter(1)
  %n = s32[] parameter(2)
  %zero = f32[] constant(0)
  %w = f32[3,3,4,8]{{3,2,1,0}} constant({{...}})
  %conv = f32[1,9,9,8]{{3,2,1,0}} convolution(%image, %w), window={{size=3x3 pad=1_1x1_1}}, dim_labels=b01f_01io->b01f
  %cut = f32[1,1,1,8]{{3,2,1,0}} slice(%conv), slice={{[0:1], [0:9:9], [2:3], [0:8]}}
  %flat = f32[8]{{0}} reshape(%cut)
  %rows = f32[8]{{0}} reduce(%x.1, %zero), dimensions={{1}}, to_apply=%plus.1
  %both = f32[8]{{0}} add(%flat, %rows)
  %start = s32[] constant(2)
  %few = (f32[8]{{0}}, s32[]) tuple(%both, %n)
  %first = (s32[], f32[8,128]{{1,0}}, (f32[8]{{0}}, s32[])) tuple(%start, %x.1, %few)
  %loop = (s32[], f32[8,128]{{1,0}}, (f32[8]{{0}}, s32[])) while(%first), condition=%until, body=%body
  %last = f32[8,128]{{1,0}} get-tuple-element(%loop), index=1
  %table = f32[3]{{0}} constant({{1, -2.5, 3e+08}})
  %pick = f32[1]{{0}} dynamic-slice(%table, %n), dynamic_slice_sizes={{1}}
  %one.1 = f32[] reshape(%pick)
  %pair = (f32[8,128]{{1,0}}, f32[]) tuple(%last, %one.1)
  %limit = s32[] constant(7)
  %test = pred[] compare(%n, %limit), direction=GE
  %either = f32[8,128]{{1,0}} conditional(%test, %last, %pair), true_computation=%yes, false_computation=%no
  %f = f32[8,128]{{1,0}} fusion(%either, %last), kind=kLoop, calls=%fused
  %square = f32[8,8]{{1,0}} dot(%f, %x.1), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
  %call = f32[8]{{0}} custom-call(%both, %square), custom_call_target="\\"{{(/*%//\\" b", literal=s32[] 1
  %turned = f32[8,8]{{1,0}} transpose(%square), dimensions={{1,0}}
  %again = f32[8,8]{{1,0}} add(%turned, %square)
  ROOT %result = (f32[8,128]{{1,0}}, f32[8,8]{{1,0}}, f32[8]{{0}}) tuple(%f, %again, %call)
}}
"""

POSITIONS = """
FileNames
1 "<embedded {module>"

FunctionNames
1 "main, %a"

FileLocations
1 {file_name_id=1 function_name_id=1 line=153 end_line=153 column=2 end_column=31}

StackFrames
1 {file_location_id=1 parent_frame_id=1}

"""
STRING = r'"(?:\\.|[^"\\])*"'
TOKEN = re.compile(rf"{STRING}|\w+_\w+->\w+|->|<=|\.\.\.|-?%?\w[\w.+]*(?:-[\w.]+)*[=:]?|\S|\s+")
SOME = r"^(  .*(?:add|negate|tuple|dot|while)\(.*)$"
INFERRED = (
    "add|multiply|negate|exponential|logistic|tuple|get-tuple-element|compare|dot|reduce|conditional|while|convolution"
)


def spaced(space: str, text: str) -> str:
    """Return the text with this after every token."""
    return "".join(token if token.isspace() else token + space for token in TOKEN.findall(text))


def outside(pattern: str, new: str, text: str) -> str:
    """Return the text with replacements outside strings."""
    return "".join(
        part if place % 2 else re.sub(pattern, new, part) for place, part in enumerate(re.split(f"({STRING})", text))
    )


def printed(text: str, **options: bool) -> str:
    style = xla_client.hlo.HloPrintOptions()
    for name, value in options.items():
        setattr(style, name, value)
    return xla_client.hlo.hlo_module_from_text(text).to_string(style)


def styled(style: str, text: str) -> str:
    return xla_client.hlo.hlo_module_from_text(text).to_string(getattr(xla_client.hlo.HloPrintOptions, style)())


def edited(pattern: str, new: str) -> Callable[[str], str]:
    return lambda text: re.sub(pattern, new, text, flags=re.MULTILINE)


def nested_constants(text: str) -> str:
    text = re.sub(r".*%(?:one|zero) = .*\n", "", text)
    return text.replace("add(%i, %one)", "add(%i, s32[] constant(1))").replace("%x.1, %zero", "%x.1, f32[] constant(0)")


def inlined(text: str) -> str:
    body = "{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }"
    return text.replace(PLUS, "").replace("to_apply=%plus.1", f"to_apply={body}")


FORMS: dict[str, Callable[[str], str]] = {
    "as XLA prints it": printed,
    "shapes of operands": partial(printed, print_operand_shape=True),
    "canonical": partial(styled, "canonical"),
    "short": partial(styled, "short_parsable"),
    "no ENTRY": lambda text: text.replace("ENTRY ", ""),
    "no ROOT": lambda text: text.replace("ROOT ", ""),
    "no %": partial(outside, "%", ""),
    "no layouts": edited(r"\]\{[\d,]*\}", "]"),
    "no result shapes": edited(rf" = (?:\([^=]*?\)|\S+) ((?:{INFERRED})\()", r" = \1"),
    "no program shapes": edited(r"^((?:ENTRY )?%\S+) \(.*-> .*\{$", r"\1 {"),
    "one line": partial(outside, r"\s+", " "),
    "CRLF": edited("\n", "\r\n"),
    "tabs": partial(outside, " ", "\t"),
    "new lines": partial(spaced, "\n"),
    "spaces": partial(spaced, "  "),
    "comments": partial(spaced, "/*, %b {( */"),
    "line comments": partial(spaced, ' // x, %a = f32[] add(%b, %c), "{(\n'),
    "comments around": lambda text: f'/* a "comment */ // another "\n{text}// end "{{',
    "attributes turned round": edited(r", (\w+=[^=\n]*), (\w+=[^=\n]*)$", r", \2, \1"),
    "metadata": edited(SOME, r'\1, metadata={op_name="f/{(\\"%a" source_line=3}, frontend_attributes={a="}",b="{"}'),
    "configuration": edited(SOME, r'\1, backend_config={"x":{"y":["1","//"]},"z":3}'),
    "escaped configuration": edited(SOME, r'\1, backend_config="{\\"x\\":{\\"y\\":[\\"1\\"]}}"'),
    "sharding": edited(r"^(  %(?:square|again) .*)$", r"\1, sharding={devices=[2,1]<=[2]}"),
    "statistics": edited(r"^(  %again .*)$", r"\1, statistics={visualizing_index=0,a=3}, control-predecessors={%f}"),
    "nested constants": nested_constants,
    "nested operations": lambda text: re.sub(r".*%m = .*\n", "", text).replace("%m)", "multiply(%p, %q))"),
    "inlined computations": inlined,
    "tiles": edited(r"f32\[8,128\]\{1,0\}", "f32[8,128]{1,0:T(8,128)S(1)}"),
    "literals in a tuple": edited("literal=s32.*", "literal=( s32[2]{0} {1, 2}, ( f32[] 0.5, pred[1]{0} {1} ) )"),
    "replication": edited(r"^(  %n = .*)$", r"\1, parameter_replication={true}"),
    "accuracy": edited(r"^(  %e = .*)$", r"\1, result_accuracy={tolerance={rtol=0.5, atol=1.0, ulps=2}}"),
    "origins": edited(r"^(  %(?:again|e) .*)$", r'\1, origin={{"a {(%b"}}'),
    "source positions": lambda text: text.replace("whole\n", f"whole\n{POSITIONS}"),
    "dynamic sizes": edited(r"f32\[8,128\]", "f32[<=8,128]"),
    "threads": edited(r"\}\n\n%fused", '}, execution_thread="main"\n\n%fused'),
    "header": edited("^HloModule whole$", 'HloModule w, is_scheduled=true, frontend_attributes={a="}"}'),
    "buffers": edited(r"(%pick = )(f32\[1\]\{0\}) ", r'%kept = b(\2) custom-call(%n), custom_call_target="P"\n  \1\2 '),
}  # fmt: skip


def digest(text: str) -> str:
    """Return the digest of the graph, read by XLA's reader first where `reader.parse` would ask it."""
    try:
        module = parse_hlo(text, "test")
    except UserError:
        module = parse_hlo(xla.printed(text), "test")
    return build(module, "test").digest()


@pytest.fixture(scope="module")
def right() -> str:
    return build(parse_hlo(TEXT, "test"), "test").digest()


@pytest.mark.parametrize("form", FORMS)
def test_a_form_that_xla_reads_is_the_same_program(form: str, right: str) -> None:
    text = FORMS[form](TEXT)
    assert text != TEXT
    xla_client.hlo.hlo_module_from_text(text)
    assert digest(text) == right


@pytest.mark.slow
def test_several_forms_at_once_are_the_same_program(right: str) -> None:
    rng, read = random.Random(0), 0
    while read < 30:
        text = TEXT
        try:
            for form in rng.sample(sorted(FORMS), 3):
                text = FORMS[form](text)
            xla_client.hlo.hlo_module_from_text(text)
        except RuntimeError:  # two changes that do not fit together
            continue
        read += 1
        assert digest(text) == right


SMALL = "main { a = f32[64,128] parameter(0)\n e = exponential(a)\n ROOT t = tuple(negate(e), /*c*/ e) }"


@pytest.mark.slow
@pytest.mark.parametrize("text", [f"HloModule m\n{SMALL}", f"ENTRY {SMALL}", SMALL.replace("main", "module")])
def test_text_beyond_our_grammar_is_read_by_xla_in_a_process_of_its_own(text: str) -> None:
    assert build(reader.parse(text), "test").opcodes == ["parameter", "exponential", "negate"]


FUNCTION = """func.func @main(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = stablehlo.exponential %a : tensor<4x8xf32>
  %1 = stablehlo.negate %0 : tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}"""
GENERIC = """"func.func"() <{function_type = (!t) -> !t, sym_name = "main"}> ({
  ^bb0(%a: !t):
    %0 = "stablehlo.exponential"(%a) : (!t) -> !t
    %1 = "stablehlo.negate"(%0) : (!t) -> !t
    "func.return"(%1) : (!t) -> ()
  }) : () -> ()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        FUNCTION,
        f"// a comment\n#loc = loc(unknown)\n{FUNCTION.replace('@main', 'public @main')}",
        f"module {{ {FUNCTION} }}",
        f"builtin.module @m attributes {{x.a = 1 : i32}} {{ {FUNCTION} }}",
        f"!t = tensor<4x8xf32>\n{GENERIC}",
        f'!t = tensor<4x8xf32>\n"builtin.module"() ({{\n{GENERIC}}}) : () -> ()',
        f'sdy.mesh @mesh = <["x"=2]>\n{FUNCTION}',
    ],
)
def test_every_form_of_stablehlo_is_read_with_its_names(text: str) -> None:
    made = build(reader.parse(text), "test")
    assert made.opcodes == ["parameter", "exponential", "negate"]
    assert made.names[1:] == ["%0", "%1"]
