"""The layout pass with the fusion sweep behind it, on programs of many layers: `pytest tests/benchmarks -k layout`."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from bbo_problems.tensor_compiler.fusion.fusion_pass import Fusion
from bbo_problems.tensor_compiler.fusion.state import Counter, Known, StateBuffer
from bbo_problems.tensor_compiler.graph.build import build
from bbo_problems.tensor_compiler.hardware.machine import MACHINES
from bbo_problems.tensor_compiler.hlo import reader as hlo
from bbo_problems.tensor_compiler.layout.layout_pass import LayoutPass

V5E = MACHINES["v5e"]
ROWS, HEADS = "f32[512,1024]{1,0}", "f32[8,64,1024]{2,1,0}"
LAYER = f"""
  w# = f32[1024,1024]{{1,0}} parameter(#1)
  b# = f32[1024]{{0}} parameter(#2)
  s# = {ROWS} multiply(x#, x#)
  r# = f32[512]{{0}} reduce(s#, zero), dimensions={{1}}, to_apply=sum
  q# = f32[512]{{0}} rsqrt(r#)
  c# = {ROWS} broadcast(q#), dimensions={{0}}
  n# = {ROWS} multiply(x#, c#)
  d# = {ROWS} dot(n#, w#), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  e# = {ROWS} broadcast(b#), dimensions={{1}}
  a# = {ROWS} add(d#, e#)
  h# = {HEADS} reshape(a#)
  t# = f32[64,8,1024]{{2,1,0}} transpose(h#), dimensions={{1,0,2}}
  f# = f32[64,8,1024]{{2,1,0}} tanh(t#)
  u# = {HEADS} transpose(f#), dimensions={{1,0,2}}
  v# = {ROWS} reshape(u#)
  x#+ = {ROWS} add(x#, v#)"""


@cache
def layers(nodes: int) -> LayoutPass:
    """Return the pass on a program of normalised products with residuals and some moving about."""
    count = nodes // 16
    head = "HloModule m\n\nsum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n\n"
    body = [f"ENTRY e {{\n  x0 = {ROWS} parameter(0)\n  zero = f32[] constant(0)"]
    for i in range(count):
        text = LAYER.replace("#1", str(2 * i + 1)).replace("#2", str(2 * i + 2)).replace("x#+", f"x{i + 1}")
        body.append(text.replace("#", str(i)))
    return LayoutPass(
        build(hlo.parse(head + "".join(body).replace(f"  x{count} =", f"  ROOT x{count} =") + "\n}\n"), "m"), V5E
    )


@pytest.mark.parametrize("nodes", [1_000, 10_000, 100_000, 500_000])
@pytest.mark.parametrize("part", ["layout", "fusion", "both"])
def test_layout_and_fusion(benchmark, part: str, nodes: int) -> None:
    """One candidate whose layouts are drawn at random, with its default fusion."""
    layout = layers(nodes)
    config = np.random.default_rng(0).integers(0, layout.options)
    buffer = StateBuffer()  # as a task over layouts keeps it
    fusion = Fusion(layout.apply(config), V5E, buffer)
    row = fusion.default()[None]
    benchmark.extra_info["nodes"] = len(fusion.arrays.kind)

    def sweep() -> None:
        fusion.state.counter[Counter.KNOWN] = Known.NOTHING  # else nothing has changed
        fusion.seconds(row)

    run = {
        "layout": lambda: layout.apply(config),
        "fusion": sweep,
        "both": lambda: Fusion(layout.apply(config), V5E, buffer).seconds(row),
    }
    benchmark.pedantic(run[part], rounds=10, warmup_rounds=1)
