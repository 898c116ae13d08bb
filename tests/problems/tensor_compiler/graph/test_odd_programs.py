"""Programs unlike neural networks: no product, disconnected, scalar, empty, huge, unknown or not well-formed."""

from __future__ import annotations

import numpy as np
import pytest

from bbo_problems.tensor_compiler.fusion.fusion_pass import Fusion
from bbo_problems.tensor_compiler.fusion.state import Tally
from bbo_problems.tensor_compiler.graph.build import build, read_graph
from bbo_problems.tensor_compiler.hardware.machine import MACHINES
from bbo_problems.tensor_compiler.hlo import reader as hlo
from bbo_problems.tensor_compiler.hlo.opcodes import Kind, unknown
from bbo_problems.tensor_compiler.layout.layout_pass import LayoutPass
from bbo_problems.tensor_compiler.tasks.programs import program
from bbo_suite import UserError

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
    body = "\n".join(f"  {line}".replace("S ", f"{shape} ").replace("(S,", f"({shape},") for line in lines)
    body = body.replace(", S)", f", {shape})")
    text = f"HloModule m\n\nENTRY main {{\n  p = {shape} parameter(0)\n{body}\n}}\n"
    layout = LayoutPass(build(hlo.parse(text), "test"), MACHINES["v5e"])
    return Fusion(layout.apply(layout.default()), MACHINES["v5e"])


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
    layout = LayoutPass(read_graph(program("rnn")), MACHINES["v5e"])
    made = Fusion(layout.apply(layout.default()), MACHINES["v5e"])
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


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("add(d, d)", "while(d)", "'r' .while."),
        ("lhs_contracting_dims={1}", "lhs_contracting_dims={7}", r"'d' \(dot\)"),
        ("add(d, d)", "transpose(d), dimensions={5,6}", r"'r' \(transpose\)"),
        ("add(d, d)", "dynamic-slice()", r"'r' \(dynamic-slice\)"),
    ],
)
def test_an_instruction_that_is_not_well_formed_is_named(old: str, new: str, name: str) -> None:
    with pytest.raises(UserError, match=rf"{name} is not well-formed"):
        build(hlo.parse(ODD.replace(old, new)), "test")
