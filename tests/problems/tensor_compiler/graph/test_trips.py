"""How often loops run, against counts by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

import bbo_suite
from bbo_problems.tensor_compiler.graph.build import build
from bbo_problems.tensor_compiler.graph.graph import ProgramGraph
from bbo_problems.tensor_compiler.hlo import reader as hlo
from bbo_suite import UserError

LOOP = """HloModule m
less {{ x = {t}[] parameter(0)
 y = {t}[] parameter(1)
 ROOT z = pred[] compare(x, y), direction=LT }}
next {{ x = {t}[] parameter(0)
 one = {t}[] constant(1)
 ROOT z = {t}[] add(x, one) }}
cond {{ p = ({t}[], f32[64,128], {t}[]) parameter(0)
 i = {t}[] get-tuple-element(p), index=0
 k = {t}[] get-tuple-element(p), index=2
 n = {t}[] constant({bound})
 left = {t}[] subtract(n, i)
 zero = {t}[] constant(0)
 done = pred[] compare(i, n), direction=GE
 ROOT r = pred[] {test} }}
body {{ p = ({t}[], f32[64,128], {t}[]) parameter(0)
 i = {t}[] get-tuple-element(p), index=0
 x = f32[64,128] get-tuple-element(p), index=1
 k = {t}[] get-tuple-element(p), index=2
 c = {t}[] constant({step})
 j = {t}[] {change}
 h = {t}[] {other}
 y = f32[64,128] tanh(x)
 ROOT t = ({t}[], f32[64,128], {t}[]) tuple(j, y, h) }}
ENTRY main {{ x = f32[64,128] parameter(0)
 q = {t}[] parameter(1)
 five = {t}[] constant(5)
 minus = {t}[] negate(five)
 z = {t}[] {start}
 s = ({t}[], f32[64,128], {t}[]) tuple(z, x, five)
 w = ({t}[], f32[64,128], {t}[]) while(s), condition=cond, body=body{noted}
 v = f32[64,128] get-tuple-element(w), index=1
 ROOT r = f32[64,128] negate(v) }}
"""
USUAL = {"t": "s32", "bound": "50", "test": "compare(i, n), direction=LT", "step": "1", "change": "add(i, c)"}
USUAL |= {"other": "copy(k)", "start": "constant(0)", "noted": ""}
UNKNOWN = {"start": "copy(q)"}
DOWN = {"start": "constant(40)", "bound": "0", "test": "compare(i, n), direction=GT"}


def graph(**parts: str) -> ProgramGraph:
    return build(hlo.parse(LOOP.format(**USUAL | parts)), "test")


@pytest.mark.parametrize(
    ("parts", "trips"),
    [
        ({}, 50),
        ({"start": "constant(3)", "step": "2"}, 24),
        ({"start": "constant(-10)"}, 60),
        ({"test": "compare(i, n), direction=LE", "step": "7"}, 8),
        ({"test": "compare(n, i), direction=GT"}, 50),
        ({"test": "compare(n, i), direction=GE"}, 51),
        ({"test": "compare(i, n), direction=NE"}, 50),
        ({"test": "compare(i, n), direction=EQ", "start": "constant(50)"}, 1),
        ({"test": "compare(left, zero), direction=GT"}, 50),
        ({"test": "not(done)"}, 50),
        ({"test": "fusion(i, n), kind=kLoop, calls=less"}, 50),
        ({"change": "call(i), to_apply=next"}, 50),
        ({"change": "add(k, i)"}, 10),
        ({"test": "compare(i, k), direction=LT"}, 5),
        ({"test": "compare(i, k), direction=LT", "other": "subtract(k, c)"}, 3),
        ({"start": "negate(five)"}, 55),
        ({"start": "add(minus, minus)"}, 60),
        (DOWN | {"step": "-1"}, 40),
        (DOWN | {"step": "-3"}, 14),
        (DOWN | {"change": "subtract(i, c)"}, 40),
        (DOWN | {"step": "-1", "test": "compare(i, n), direction=NE"}, 40),
        (DOWN | {"step": "-2", "test": "compare(i, n), direction=GE"}, 21),
        (DOWN | {"step": "4294967295", "t": "u32"}, 40),
        ({"t": "s64", "bound": "5000000000"}, 5_000_000_000),
        (UNKNOWN | {"noted": ', backend_config={"known_trip_count":{"n":"7"},"known_init_step":{"init":"0"}}'}, 7),
        (UNKNOWN | {"noted": r', backend_config="{\"known_trip_count\":{\"n\":\"7\"}}"'}, 7),
        (UNKNOWN | {"noted": r', backend_config="{ \"known_trip_count\" : { \"n\" : 7 } }"'}, 7),
        ({"noted": ', backend_config={"known_trip_count":{"n":"0"}}'}, 50),
    ],
)
def test_loops_run_as_often_as_start_step_bound_and_direction_say(parts: dict[str, str], trips: int) -> None:
    made = graph(**parts)
    assert made.weight[made.opcodes.index("tanh")] == trips
    assert made.not_counted() == {}


@pytest.mark.parametrize(
    "parts",
    [
        UNKNOWN,
        {"step": "0"},
        {"step": "-1"},
        {"step": "3", "test": "compare(i, n), direction=NE"},
        {"change": "add(i, i)"},
        {"test": "custom-call(i), custom_call_target=\"more\""},
        {"t": "f32", "step": "0.3"},
    ],
)  # fmt: skip
def test_a_loop_of_unknown_length_counts_once_and_says_so(parts: dict[str, str]) -> None:
    made = graph(**parts)
    assert made.weight[made.opcodes.index("tanh")] == 1
    assert made.not_counted() == {"loops of unknown length": "w; each counts as if it ran once"}


@pytest.mark.parametrize(
    "parts", [{"start": "constant(50)"}, UNKNOWN | {"noted": ', backend_config={"known_trip_count":{"n":"0"}}'}]
)
def test_a_loop_that_never_runs_is_left_out_and_said(parts: dict[str, str]) -> None:
    made = graph(**parts)
    assert made.opcodes == ["parameter", "negate"]
    assert made.not_counted() == {"loops that never run": "w; left out"}


def test_a_program_of_loops_that_never_run_is_refused() -> None:
    text = LOOP.format(**USUAL | {"start": "constant(50)"}).replace("negate(v)", "copy(v)")
    with pytest.raises(UserError, match="the program computes nothing; w never run"):
        build(hlo.parse(text), "test")


def test_a_condition_that_works_on_arrays_runs_with_its_loop() -> None:
    """Such as one that stops at a small norm; a condition on numbers adds nothing."""
    large = "fusion(x), kind=kInput, calls=large"
    called = """large { x = f32[64,128] parameter(0)
 z = f32[] constant(0)
 n = f32[] reduce(x, z), dimensions={0,1}, to_apply=sum
 ROOT l = pred[] compare(n, z), direction=GT }
sum { x = f32[] parameter(0)
 y = f32[] parameter(1)
 ROOT z = f32[] add(x, y) }
cond {"""
    noted = {"noted": ', backend_config={"known_trip_count":{"n":"7"}}'}
    text = LOOP.format(**USUAL | noted | {"test": large}).replace("cond {", called, 1)
    text = text.replace(" k = s32[]", " x = f32[64,128] get-tuple-element(p), index=1\n k = s32[]", 1)
    made = build(hlo.parse(text), "test")
    assert made.weight[made.opcodes.index("reduce")] == 7
    assert "compare" not in graph(**noted).opcodes


def test_the_bound_of_an_inner_loop_may_come_through_the_outer_one() -> None:
    inner = LOOP.format(**USUAL | {"test": "compare(i, k), direction=LT"}).partition("ENTRY")
    outer = (
        inner[0]
        + """
cond.2 { p = (s32[], f32[64,128], s32[]) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 n = s32[] constant(3)
 ROOT r = pred[] compare(i, n), direction=LT }
body.2 { p = (s32[], f32[64,128], s32[]) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 x = f32[64,128] get-tuple-element(p), index=1
 k = s32[] get-tuple-element(p), index=2
 z = s32[] constant(0)
 one = s32[] constant(1)
 j = s32[] add(i, one)
 s = (s32[], f32[64,128], s32[]) tuple(z, x, k)
 w = (s32[], f32[64,128], s32[]) while(s), condition=cond, body=body
 y = f32[64,128] get-tuple-element(w), index=1
 ROOT t = (s32[], f32[64,128], s32[]) tuple(j, y, k) }
ENTRY main { x = f32[64,128] parameter(0)
 z = s32[] constant(0)
 five = s32[] constant(5)
 s = (s32[], f32[64,128], s32[]) tuple(z, x, five)
 ROOT w = (s32[], f32[64,128], s32[]) while(s), condition=cond.2, body=body.2 }
"""
    )
    made = build(hlo.parse(outer), "test")
    assert made.weight[made.opcodes.index("tanh")] == 15
    assert made.not_counted() == {}


def test_a_run_says_what_it_assumes_about_loops(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = LOOP.format(**USUAL | UNKNOWN)
    text = text.replace(" y = f32[64,128] tanh(x)", " g = f32[64,128] sine(x)\n y = f32[64,128] negate(g)")
    (tmp_path / "loop.hlo").write_text(text)
    bbo_suite.run("random", f"fusion:{tmp_path}/loop.hlo", budget=2, results=tmp_path)
    assert "loop.hlo: loops of unknown length: w; each counts as if it ran once" in capsys.readouterr().err


def test_all_branches_count_alike_and_that_is_said() -> None:
    branch = "{0} {{ x = f32[64,128] parameter(0)\n ROOT y = f32[64,128] {1}(x) }}\n"
    text = f"""HloModule m
{branch.format("a", "tanh")}{branch.format("b", "negate")}
ENTRY e {{ i = s32[] parameter(0)
 x = f32[64,128] parameter(1)
 ROOT q = f32[64,128] conditional(i, x, x), branch_computations={{a, b}} }}"""
    made = build(hlo.parse(text), "test")
    assert [made.weight[made.opcodes.index(opcode)] for opcode in ("tanh", "negate")] == [0.5, 0.5]
    assert made.not_counted() == {"conditionals": "q; all branches of one count as if they ran equally often"}


def test_a_weight_without_a_number_is_refused() -> None:
    loop = """b{0} {{ p = f32[64,128] parameter(0)
 ROOT w = f32[64,128] while(p), condition=c, body=b{1}, backend_config={{"known_trip_count":{{"n":"{2}"}}}} }}"""
    loops = "\n".join(loop.format(i, i - 1, 10**18 - 1) for i in range(1, 19))
    text = f"""HloModule m
c {{ p = f32[64,128] parameter(0)
 ROOT t = pred[] constant(true) }}
b0 {{ p = f32[64,128] parameter(0)
 ROOT y = f32[64,128] tanh(p) }}
{loops}
ENTRY e {{ p = f32[64,128] parameter(0)
 ROOT r = f32[64,128] call(p), to_apply=b18 }}"""
    with pytest.raises(UserError, match="y run too rarely or too often"):
        build(hlo.parse(text), "test")


@pytest.mark.parametrize(("state", "turned"), [("f32[8,8]", 6), ("(f32[8,8], s32[])", 1)])
def test_a_stack_is_turned_inside_a_loop_only_if_its_place_is_known(state: str, turned: int) -> None:
    """In nested tuples a transpose stays in front of the loop, and other stacks are left alone."""
    whole = f"(s32[], {state}, f32[6,8,8], f32[6,8,8])"
    text = f"""HloModule m
cond {{ p = {whole} parameter(0)
 i = s32[] get-tuple-element(p), index=0
 n = s32[] constant(6)
 ROOT l = pred[] compare(i, n), direction=LT }}
body {{ p = {whole} parameter(0)
 i = s32[] get-tuple-element(p), index=0
 x = {state} get-tuple-element(p), index=1
 v = f32[6,8,8] get-tuple-element(p), index=2
 w = f32[6,8,8] get-tuple-element(p), index=3
 one = s32[] constant(1)
 j = s32[] add(i, one)
 d = f32[1,8,8] dynamic-slice(v, i, one, one), dynamic_slice_sizes={{1,8,8}}
 e = f32[1,8,8] dynamic-slice(w, i, one, one), dynamic_slice_sizes={{1,8,8}}
 o = f32[1,8,8] add(d, e)
 u = token[] after-all(o)
 ROOT t = {whole} tuple(j, x, v, w) }}
ENTRY e {{ x = {state} parameter(0)
 a = f32[6,8,8] parameter(1)
 w = f32[6,8,8] parameter(2)
 v = f32[6,8,8] transpose(a), dimensions={{0,2,1}}
 z = s32[] constant(0)
 s = {whole} tuple(z, x, v, w)
 ROOT l = {whole} while(s), condition=cond, body=body }}"""
    made = build(hlo.parse(text), "test")
    slices = [made.producers[made.users == v].tolist() for v, op in enumerate(made.opcodes) if op == "dynamic-slice"]
    assert made.weight[made.opcodes.index("transpose")] == turned
    assert sum(made.opcodes[p] == "transpose" for found in slices for p in found) == (turned == 6)
