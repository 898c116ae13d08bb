"""XLA's own cost analysis of each kernel, next to ours.

The compiler notes flops and bytes of whole programs only. The analysis in jaxlib (xla/service/hlo_cost_analysis.cc)
takes any module, so each kernel is given to it as one. It counts the bytes of arrays without padding, in any memory,
and only the slice of a sliced operand; here ours are counted in the same way.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

import pandas as pd

from ..hardware.kernel_row import Kernel
from ..hlo.module import Shape
from ..hlo.opcodes import bytes_of
from . import flops
from .comparison import half
from .kernels import DEFINITION, PLACEHOLDER, Buffer, ScheduledKernel, kernels
from .rows import row

_COMPUTATION = re.compile(r"^%([\w.\-]+) \(.*\{\n(?:.*\n)*?\}$", re.MULTILINE)
_INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%([\w.\-]+) = (.*? [\w\-]+\(([^)]*)\).*)$", re.MULTILINE)
_NAME = re.compile(r"%([\w.\-]+)")
_BETWEEN = re.compile(r', (?:metadata|control-predecessors)=\{(?:[^}"]|"[^"]*")*\}')
"""Attributes that refer to instructions outside the kernel."""


def counts(machine: str, names: Iterable[str], text: Callable[[str, str], str]) -> pd.DataFrame:
    """Return a row for each kernel: program, half, kind, flops and bytes by our count and by XLA's own.

    Args:
      machine, names, text: as `comparison.compare` takes them.
    """
    lines = []
    for name in names:
        try:
            scheduled = text(name, machine)
        except RuntimeError:
            continue
        found = [kernel for kernel in kernels(scheduled) if kernel.cycles > PLACEHOLDER * kernel.steps]
        theirs = _analysed(alone(scheduled, {kernel.name for kernel in found}))
        for kernel in found:
            moved, kind = traffic(kernel)
            lines.append((name, half(name), kind, flops.of_kernel(kernel), moved, *theirs[kernel.name]))
    return pd.DataFrame(lines, columns=["program", "half", "kind", "flops", "bytes", "xla flops", "xla bytes"])


def traffic(kernel: ScheduledKernel) -> tuple[float, str]:
    """Return the bytes that a kernel would move without padding and with all arrays in memory, and its kind."""
    entry = kernel.module.computations[kernel.module.entry]
    taken = sorted((i for i in entry.instructions if i.opcode == "parameter"), key=lambda i: i.parameter_number or 0)
    operands = tuple(buffer for i in taken for buffer in _plain(i.shape))
    results = tuple(_plain(entry.instructions[entry.root].shape))
    numbers, kind = row(replace(kernel, operands=operands, results=results))
    return float(numbers[Kernel.READ : Kernel.WORK].sum() + numbers[Kernel.WRITTEN]), kind


def _plain(shape: Shape) -> list[Buffer]:
    if shape.dtype == "tuple":
        return [buffer for part in shape.elements for buffer in _plain(part)]
    return [Buffer(math.prod(shape.dims) * bytes_of(shape.dtype), False)]


def alone(text: str, names: Collection[str]) -> dict[str, str]:
    """Return for each named instruction of a scheduled program the text of a module that computes it alone."""
    text = _BETWEEN.sub("", text)
    shapes = dict(DEFINITION.findall(text))
    bodies = {match[1]: match[0] for match in _COMPUTATION.finditer(text)}
    modules = {}
    for match in _INSTRUCTION.finditer(text):
        name, definition, operands = match.groups()
        if name in names:
            called: dict[str, str] = {}
            _collect(definition, bodies, called)
            taken = enumerate(dict.fromkeys(_NAME.findall(operands)))
            parameters = [f"  %{operand} = {shapes[operand]} parameter({i})" for i, operand in taken]
            entry = ["ENTRY %alone {", *parameters, f"  ROOT %{name} = {definition}", "}\n"]
            modules[name] = "\n".join(["HloModule alone\n", *called.values(), *entry])
    return modules


def _collect(text: str, bodies: dict[str, str], called: dict[str, str]) -> None:
    """Add the computations that a text names, each after those that it names itself."""
    for name in _NAME.findall(text):
        if name in bodies and name not in called:
            _collect(bodies[name].partition("\n")[2], bodies, called)
            called[name] = bodies[name]


def _analysed(modules: dict[str, str]) -> dict[str, tuple[float, float]]:
    """Return flops and bytes of each module by XLA's analysis."""
    from jax._src.lib import xla_client

    client = xla_client.make_cpu_client()
    found = {}
    for name, text in modules.items():
        parsed = xla_client.hlo.hlo_module_from_text(text)
        totals = xla_client._xla.hlo_module_cost_analysis(client, parsed)
        found[name] = (totals.get("flops", 0.0), totals.get("bytes accessed", 0.0))
    return found
