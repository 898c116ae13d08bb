"""Floating point operations of a scheduled program, counted as XLA's own cost analysis does.

A tap of a convolution that falls on padding, or between elements of a dilated input, does not count; a loop's body
counts once (xla/service/hlo_cost_analysis.cc, `HandleConvolution`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable

import numpy as np

from ..hlo import reader as hlo
from ..hlo.module import Computation, Instruction, Module
from .kernels import ScheduledKernel, scheduled_programs

_LIGHT = [
    "abs",
    "add",
    "and",
    "ceil",
    "clamp",
    "compare",
    "convert",
    "divide",
    "floor",
    "maximum",
    "minimum",
    "multiply",
    "negate",
    "not",
    "or",
    "remainder",
    "round-nearest-afz",
    "select",
    "shift-left",
    "shift-right-arithmetic",
    "shift-right-logical",
    "sign",
    "subtract",
    "xor",
]
_COMBINING = ("reduce", "reduce-window", "scatter", "select-and-scatter")
"""Operations that apply a function of two elements many times."""


def ratios(machine: str, names: Iterable[str], text: Callable[[str, str], str]) -> dict[str, float]:
    """Return for each program our count divided by the compiler's own, which exists for whole programs only.

    Args:
      machine, names, text: as `scheduled_programs` takes them.
    """
    found = {}
    for name, scheduled in scheduled_programs(machine, names, text):
        total = json.loads(scheduled.partition("\n")[0].removeprefix("//"))["flops"]
        if total > 0:
            found[name] = counted(scheduled) / total
    return found


def counted(text: str) -> float:
    """Return our count of a scheduled program."""
    module = hlo.parse(text, "scheduled HLO")
    every = list(module.computations.values())
    combining = (i for c in every for i in c.instructions if i.opcode in _COMBINING)
    combiners = {name for instruction in combining for name in instruction.called_computations}
    parts = ((c, i) for c in every if c.name not in combiners for i in c.instructions)
    return float(sum(_alone(module, computation, instruction) for computation, instruction in parts))


def of_kernel(kernel: ScheduledKernel) -> float:
    """Return our count of one kernel."""
    return _nested(kernel.module, kernel.module.computations[kernel.module.entry])


def _nested(module: Module, computation: Computation) -> float:
    fusions = (i for i in computation.instructions if i.opcode == "fusion")
    inside = sum(_nested(module, module.computations[i.called_computations[0]]) for i in fusions)
    return inside + sum(_alone(module, computation, instruction) for instruction in computation.instructions)


def _alone(module: Module, computation: Computation, instruction: Instruction) -> float:
    """Return our count of an instruction without its fused ones; a combiner counts each operation of its function."""
    if instruction.opcode not in _COMBINING or instruction.shape.dtype == "tuple":
        return operations(computation, instruction)
    called = [module.computations[name] for name in instruction.called_computations]
    light = [sum(operations(c, i) for i in c.instructions) for c in called]
    shapes = [computation.instructions[i].shape for i in instruction.operands]
    match instruction.opcode:
        case "reduce":
            return light[0] * (math.prod(shapes[0].dims) - math.prod(instruction.shape.dims))
        case "reduce-window":
            return light[0] * _windowed(instruction)
        case "scatter":
            return light[0] * math.prod(shapes[-1].dims)
        case _:
            taps = math.prod(map(int, instruction.window["size"]))
            return (light[0] * (taps - 1) + light[1]) * math.prod(shapes[1].dims)


def _windowed(instruction: Instruction) -> float:
    """Return how often a function is applied to all windows.

    If the window covers a whole line from each of its places, the line is reduced once and the result is broadcast.
    """
    dims, window = instruction.shape.dims, instruction.window
    sizes = list(map(int, window["size"]))
    line = int(np.argmax(sizes))
    around = [f"{dims[line] - 1}_{dims[line] - 1}" if axis == line else "0_0" for axis in range(len(dims))]
    if math.prod(sizes) == 2 * dims[line] - 1 and window.get("pad") == around:
        return math.prod(dims) / dims[line] + dims[line] - 1
    return (math.prod(sizes) - 1) * math.prod(dims)


def operations(computation: Computation, instruction: Instruction) -> float:
    """Return the count of one instruction: a product, an elementwise operation, or a reduction."""
    if instruction.opcode == "convolution":
        return 2 * _multiply_adds(computation, instruction)
    if instruction.opcode == "reduce":
        whole = computation.instructions[instruction.operands[0]].shape
        return math.prod(whole.dims) - math.prod(instruction.shape.dims)
    return math.prod(instruction.shape.dims) if instruction.opcode in _LIGHT else 0


def _multiply_adds(computation: Computation, convolution: Instruction) -> float:
    left, right = (computation.instructions[i].shape.dims for i in convolution.operands[:2])
    labels, _, result = convolution.attributes["dim_labels"].partition("->")
    inputs, kernel = labels.split("_")
    groups = int(convolution.attributes.get("batch_group_count", 1))
    features = convolution.shape.dims[result.index("f")] * right[kernel.index("i")]
    count = features * left[inputs.index("b")] / groups
    window = convolution.window
    for axis in range(len(inputs) - 2):
        sides = (left, inputs), (right, kernel), (convolution.shape.dims, result)
        size, taps, places = (dims[of.index(str(axis))] for dims, of in sides)
        count *= _inside(size, taps, places, {key: values[axis] for key, values in window.items()})
    return count


def _inside(size: int, taps: int, places: int, window: dict[str, str]) -> int:
    """Return how many pairs of a tap and a place of the result along one dimension meet an element of the input."""
    stride, spread, apart = (int(window.get(key, 1)) for key in ("stride", "lhs_dilate", "rhs_dilate"))
    before = int(window.get("pad", "0_0").partition("_")[0])
    at = np.arange(places)[:, None] * stride - before + np.arange(taps) * apart
    return int(((at >= 0) & (at < (size - 1) * spread + 1) & (at % spread == 0)).sum())
