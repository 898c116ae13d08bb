"""A candidate's program as kernels with names, settings and seconds."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

from bbo_suite.core.program import Kernel, Program

from ..fusion.fusion_pass import Fusion
from ..hardware.machine import Machine, Rate
from ..layout.layout_pass import LaidOutProgram

Settings = Mapping[int, Mapping[str, str]]
"""What is chosen for nodes of the first graph, by name."""


def picture(laid: LaidOutProgram, fusion: Fusion, machine: Machine, settings: Settings) -> Program:
    """Return the program that a fusion pass has evaluated last.

    Args:
      laid: the program that the pass has fused.
      fusion: the pass.
      machine: what it runs on.
      settings: what is chosen for nodes; a kernel has those of all nodes that it computes.
    """
    fused, hertz = fusion.last_program(), float(machine.array()[Rate.HERTZ])
    names, kernels = _names(laid), []
    for i, (result, cycles) in enumerate(zip(fused.result.tolist(), fused.cycles.tolist(), strict=True)):
        nodes = fused.members[fused.starts[i] : fused.starts[i + 1]].tolist()
        chosen = {name: text for v in nodes for name, text in settings.get(int(laid.origin[v]), {}).items()}
        members = tuple(names[v] for v in nodes)
        kernels.append(Kernel(names[result], cycles / hertz, members, chosen))
    return Program(tuple(kernels), fused.edges)


def _names(laid: LaidOutProgram) -> list[str]:
    """Return a different name for each node, with the opcode where the name does not begin with it."""
    names: dict[str, None] = {}
    for node in range(len(laid.origin)):
        name, opcode = laid.name(node), laid.opcode(node)
        shown = name if name.startswith(opcode) else f"{name} ({opcode})"
        copies = (shown if number == 1 else f"{name}~{number} ({opcode})" for number in count(1))
        names[next(copy for copy in copies if copy not in names)] = None
    return list(names)
