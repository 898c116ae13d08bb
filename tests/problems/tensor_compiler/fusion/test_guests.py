"""Kernels with several results: which kernels join the one that makes what they read, and what that saves."""

from __future__ import annotations

import numpy as np
import pytest

from bbo_problems.tensor_compiler.fusion.fusion_pass import Fusion, Kernels
from bbo_problems.tensor_compiler.hardware.kernel_row import Kernel

from ..small_programs import V5E, graph_of, laid_out

WIDE, ROWS, COLUMNS = "f32[512,1024]{1,0}", "f32[512]{0}", "f32[1024]{0}"
BYTES = 512 * 1024 * 4
EXP = f"e = {WIDE} exponential(p)"
DOT = f"e = {WIDE} dot(left, right), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
SUM = f"s = {ROWS} reduce(e, z), dimensions={{1}}, to_apply=add"


def unfused(*lines: str) -> tuple[list[str], Kernels]:
    """Return the names of the results of kernels when nothing is fused, and the kernels; the last line is a tuple."""
    given = [f"p = {WIDE} parameter(0)", "left = f32[512,256]{1,0} parameter(1)"]
    given += ["right = f32[256,1024]{1,0} parameter(2)", f"bias = {COLUMNS} parameter(3)", "z = f32[] constant(0)"]
    laid = laid_out(graph_of(*given, *lines))
    fusion = Fusion(laid, V5E)
    kernels = fusion.kernels(np.zeros(len(fusion.columns), np.int8))
    return [laid.name(v) for v in kernels.result], kernels


@pytest.mark.parametrize(
    "guest",
    [
        SUM,
        f"s = {COLUMNS} reduce(e, z), dimensions={{0}}, to_apply=add",
        f"s = {WIDE} tanh(e)",
        f"s = {WIDE} add(e, p)",
    ],
)
@pytest.mark.parametrize("host", [EXP, DOT])
def test_what_reads_an_array_element_by_element_joins_the_kernel_that_makes_it(host: str, guest: str) -> None:
    shape = guest.split()[2]
    names, kernels = unfused(host, guest, f"ROOT t = ({WIDE}, {shape}) tuple(e, s)")
    assert names == ["e"]
    assert kernels.operations[0] == 2
    assert kernels.rows[0, Kernel.WRITTEN] == BYTES + BYTES // {WIDE: 1, ROWS: 1024, COLUMNS: 512}[shape]
    reads = (host == EXP) + (host == DOT and "p)" in guest)  # what its host reads is on the chip
    assert kernels.rows[0, Kernel.READ] == reads * BYTES


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([SUM, f"r = {ROWS} sqrt(s)"], id="a function of a reduction"),
        pytest.param([f"r = {WIDE} reverse(e), dimensions={{1}}"], id="another order"),
        pytest.param(["r = f32[512,512]{1,0} slice(e), slice={[0:512], [0:512]}"], id="a part"),
        pytest.param(
            [SUM, f"b = {WIDE} broadcast(s), dimensions={{0}}", f"r = {WIDE} subtract(e, b)"], id="a finished sum"
        ),
        pytest.param(
            ["r = f32[512,512]{1,0} dot(e, e), lhs_contracting_dims={1}, rhs_contracting_dims={1}"], id="a product"
        ),
    ],
)
def test_what_needs_more_than_the_tile_at_hand_has_a_kernel_of_its_own(lines: list[str]) -> None:
    shape = lines[-1].split()[2]
    names, kernels = unfused(EXP, *lines, f"ROOT t = ({WIDE}, {shape}) tuple(e, r)")
    assert "r" in names or names == ["e", "b"]  # r may join b
    assert kernels.rows[0, Kernel.WRITTEN] < 1.5 * BYTES


def test_a_guest_waits_for_nothing_that_its_host_feeds() -> None:
    far = f"far = {WIDE} reverse(e), dimensions={{1}}"
    names, _ = unfused(EXP, far, f"both = {WIDE} add(e, far)", f"ROOT t = ({WIDE}, {WIDE}) tuple(e, both)")
    assert names == ["e", "far", "both"]


def test_guests_of_guests_have_the_same_host() -> None:
    more = f"f = {WIDE} tanh(e)", f"s = {ROWS} reduce(f, z), dimensions={{1}}, to_apply=add"
    names, kernels = unfused(EXP, *more, f"ROOT t = ({WIDE}, {WIDE}, {ROWS}) tuple(e, f, s)")
    assert names == ["e"]
    assert kernels.rows[0, Kernel.READ] == BYTES


def test_a_product_has_no_room_for_many_guests() -> None:
    lines = [f"g{i} = {WIDE} {name}(e)" for i, name in enumerate(("tanh", "sqrt", "log", "sine", "cosine", "floor"))]
    shapes, results = ", ".join([WIDE] * 7), ", ".join(["e", *(f"g{i}" for i in range(6))])
    assert len(unfused(DOT, *lines, f"ROOT t = ({shapes}) tuple({results})")[0]) == 2
    assert len(unfused(EXP, *lines, f"ROOT t = ({shapes}) tuple({results})")[0]) == 1
