"""Small programs of HLO text, and the passes on them with the compiler's own layout."""

from __future__ import annotations

from bbo_problems.tensor_compiler.fusion.fusion_pass import Fusion
from bbo_problems.tensor_compiler.graph.build import build
from bbo_problems.tensor_compiler.graph.graph import ProgramGraph
from bbo_problems.tensor_compiler.hardware.machine import MACHINES
from bbo_problems.tensor_compiler.hlo import reader as hlo
from bbo_problems.tensor_compiler.layout.layout_pass import LaidOutProgram, LayoutPass

V5E = MACHINES["v5e"]
_ADD = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n"


def graph_of(*lines: str) -> ProgramGraph:
    """Return the graph of a program by the lines of its entry; `to_apply=add` adds two numbers."""
    body = "\n".join(f"  {line}" for line in lines)
    return build(hlo.parse(f"HloModule test\n\n{_ADD}\nENTRY main {{\n{body}\n}}\n"), "test")


def laid_out(graph: ProgramGraph) -> LaidOutProgram:
    layout = LayoutPass(graph, V5E)
    return layout.apply(layout.default())


def opcodes(laid: LaidOutProgram) -> list[str]:
    return [laid.opcode(v) for v in range(len(laid.origin))]


def fusion_of(graph: ProgramGraph) -> Fusion:
    return Fusion(laid_out(graph), V5E)
