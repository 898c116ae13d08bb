"""The kernels of the real compiler beside ours: cycles by both models, and counts of flops and bytes."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..hardware.kernel_row import Kernel
from ..hardware.kernel_settings import compile_kernels
from ..hardware.machine import Machine, one_core
from ..hardware.timing import kernel_cycles, shrink_tile
from ..hlo.module import Shape
from ..hlo.opcodes import bytes_of
from . import flops
from .kernels import DEFINITION, Buffer, ScheduledKernel, estimated_kernels, row, scheduled_programs

_COMPUTATION = re.compile(r"^%([\w.\-]+) \(.*\{\n(?:.*\n)*?\}$", re.MULTILINE)
_INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%([\w.\-]+) = (.*? [\w\-]+\(([^)]*)\).*)$", re.MULTILINE)
_NAME = re.compile(r"%([\w.\-]+)")
_BETWEEN = re.compile(r', (?:metadata|control-predecessors)=\{(?:[^}"]|"[^"]*")*\}')
"""Attributes that refer to instructions outside the kernel."""


def half(program: str) -> str:
    """Return the half that a program belongs to: the model's constants are fitted on one and reported on the other."""
    return "report" if zlib.crc32(f"split:{program}".encode()) % 2 else "fit"


def compare(machine: str, names: Iterable[str], text: Callable[[str, str], str]) -> pd.DataFrame:
    """Return a line for each kernel: program, half, kind, cycles of both, steps over tiles of both.

    Args:
      machine, names, text: as `scheduled_programs` takes them.
    """
    rows, records = [], []
    for name, scheduled in scheduled_programs(machine, names, text):
        for kernel in estimated_kernels(scheduled):
            numbers, kind = row(kernel)
            rows.append(numbers)
            records.append((name, half(name), kind, kernel.cycles, kernel.steps))
    frame = pd.DataFrame(records, columns=["program", "half", "kind", "xla cycles", "xla steps"])
    frame["cycles"], frame["steps"] = timed(np.array(rows).reshape(len(rows), -1), one_core(machine))
    return frame


def timed(rows: NDArray[np.float64], machine: Machine) -> tuple[list[float], list[float]]:
    """Return the cycles of each kernel with the tile that the compiler's analytical model chooses, and its steps."""
    settings, constants = compile_kernels(rows, np.ones(len(rows)), machine), machine.array()
    cycles = []
    for numbers, chosen in zip(rows, settings.chosen, strict=True):
        tile, flags = chosen[:3].copy(), chosen[3:].copy()
        found = kernel_cycles(constants, numbers, tile, flags)
        cycles.append(found if np.isfinite(found) else shrink_tile(constants, numbers, tile, flags))
    return cycles, [_steps(*pair) for pair in zip(rows, settings.chosen, strict=True)]


def _steps(numbers: NDArray[np.float64], chosen: NDArray[np.float64]) -> float:
    product = numbers[Kernel.TAPS] > 0
    extents = numbers[Kernel.ROWS : Kernel.TAPS] if product else numbers[Kernel.OUTER : Kernel.SIZE]
    return float(np.prod(np.ceil(extents / chosen[:3])))


def scores(frame: pd.DataFrame, launch: float = 0.0) -> pd.DataFrame:
    """Return a line for all kernels and for each kind: how well the model ranks and predicts them.

    Args:
      frame: from `compare`.
      launch: the machine's; `beyond launch` is Spearman's correlation over kernels that take 5 % more than that, since
        many kernels only start and end, and their estimates differ by single cycles.
    """
    lines = []
    for kind, group in [("all", frame), *frame.groupby("kind")]:
        ours, theirs = group["cycles"], group["xla cycles"]
        error, large = (ours / theirs - 1).abs(), theirs > 1.05 * launch
        ranks = ours.corr(theirs, method="spearman"), ours[large].corr(theirs[large], method="spearman")
        same = (group["steps"] == group["xla steps"]).mean()
        lines.append((kind, len(group), *ranks, error.median(), error.quantile(0.9), same))
    columns = ["kind", "kernels", "spearman", "beyond launch", "median error", "90 % error", "same steps"]
    return pd.DataFrame(lines, columns=columns)


def counts(machine: str, names: Iterable[str], text: Callable[[str, str], str]) -> pd.DataFrame:
    """Return a row for each kernel: program, half, kind, flops and bytes by our count and by XLA's own.

    Args:
      machine, names, text: as `scheduled_programs` takes them.
    """
    lines = []
    for name, scheduled in scheduled_programs(machine, names, text):
        found = list(estimated_kernels(scheduled))
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
