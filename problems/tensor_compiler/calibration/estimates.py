"""The compiler's estimate for a whole scheduled program, and its roofline. Loops count as often as they run."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from bbo_suite.supervised import PartRow

from ..graph.trips import starts, steps, trip_count
from ..hardware.machine import Machine
from ..hlo import reader as hlo
from ..hlo.module import Computation, Instruction, Module, Shape
from .flops import operations
from .kernels import ENDLESS, PLACEHOLDER, Buffer, buffers_of, window_of

_SLICES = ("dynamic-slice", "gather", "slice")
_UPDATES = {"dynamic-update-slice": 1, "scatter": 2}
"""Which operand holds the new elements."""
_FLAGS = 1024
"""Largest size in bytes of an array in a copy's result that is a flag, not data."""


def traffic(
    module: Module, computation: Computation, instruction: Instruction, buffers: dict[str, tuple[Buffer, ...]]
) -> tuple[float, float]:
    """Return the bytes that an instruction reads and writes in main memory, and on the chip.

    Args:
      buffers: of each instruction's result, by name.
    """
    parts = [*_parts(module, computation, instruction, buffers)]
    on_chip = [buffer.on_chip or buffer.common for _, buffer in parts]
    sizes = [share * buffer.bytes for share, buffer in parts]
    chip = sum(size for size, is_on_chip in zip(sizes, on_chip, strict=True) if is_on_chip)
    return sum(sizes) - chip, chip


def _parts(
    module: Module, computation: Computation, instruction: Instruction, buffers: dict[str, tuple[Buffer, ...]]
) -> Iterator[tuple[float, Buffer]]:
    """Yield the share of each array that is touched, and the array."""
    own = buffers[instruction.name]
    if instruction.opcode.endswith("-start"):  # the result has source and target; the smaller one is what moves
        sides = [buffer for buffer in own if buffer.bytes > _FLAGS]
        yield from ((min(s.bytes for s in sides) / side.bytes, side) for side in sides)
        return
    for place, operand in enumerate(instruction.operands):
        share = _used(module, computation, instruction, place)
        yield from ((share, buffer) for buffer in buffers[computation.instructions[operand].name])
    shares = _written(module, computation, instruction)
    yield from zip(shares if len(shares) == len(own) else [1.0] * len(own), own, strict=True)


def _called(module: Module, instruction: Instruction) -> Computation | None:
    return module.computations[instruction.called_computations[0]] if instruction.opcode == "fusion" else None


def _parameter(computation: Computation, number: int) -> int:
    return next(i for i, one in enumerate(computation.instructions) if one.parameter_number == number)


def _read(module: Module, computation: Computation, value: int) -> float:
    """Return the share of a value that its users read."""
    users = [one for one in computation.instructions if value in one.operands]
    return min(1.0, sum(_used(module, computation, user, user.operands.index(value)) for user in users))


def _used(module: Module, computation: Computation, user: Instruction, place: int) -> float:
    inner = _called(module, user)
    if inner:
        return _read(module, inner, _parameter(inner, place))
    if user.opcode == "bitcast":
        return _read(module, computation, computation.instructions.index(user))
    if place == 0 and user.opcode in _UPDATES:
        return 0.0
    if place == 0 and user.opcode in _SLICES:
        return _elements(user) / max(1, _elements(computation.instructions[user.operands[0]]))
    return 1.0


def _written(module: Module, computation: Computation, one: Instruction) -> list[float]:
    """Return for each array of a result the share that is written."""
    operands = [computation.instructions[place] for place in one.operands]
    if one.opcode == "tuple":
        return [share for operand in operands for share in _written(module, computation, operand)]
    if one.opcode == "bitcast":
        return _written(module, computation, operands[0])
    inner = _called(module, one)
    if inner:
        return _written(module, inner, inner.instructions[inner.root])
    if one.opcode in _UPDATES:
        return [_elements(operands[_UPDATES[one.opcode]]) / max(1, _elements(one))]
    return [1.0] * max(1, len(one.shape.elements))


def _elements(instruction: Instruction) -> int:
    return math.prod(instruction.shape.dims)


CHIP = 22.0
"""Bandwidth of the scratchpad divided by that of main memory: https://jax-ml.github.io/scaling-book/tpus."""
_FREE = re.compile(r"parameter|constant|tuple|get-tuple-element|bitcast|while|conditional|call|after-all|[\w-]+-done")
_NO_WORK = ('"AllocateBuffer"', '"ConcatBitcast"')
_CALLS = ("while", "call", "conditional")


@dataclass(frozen=True)
class Estimates:
    """The estimates of one compiled program.

    Attributes:
      cycles: the sum of the compiler's estimates of its kernels. A kernel without an estimate counts the time that main
        memory needs for what it reads and writes. Copies in the background do not count. All branches of a conditional
        count.
      roofline: cycles that the schedule needs at the machine's published peaks. Each kernel counts the longest of three
        times: for its floating point operations, for its traffic to main memory, and for its traffic on the chip. The
        total is at least the time of all traffic to main memory, copies in the background included.
      memory: bytes of memory at the peak, arguments and results included.
      unknown_loops: loops whose trip count is unknown; they count once.
      kernels: name, content, count and estimated cycles of each kernel that has any.
    """

    cycles: float
    roofline: float
    memory: float
    unknown_loops: int = 0
    kernels: tuple[PartRow, ...] = ()


def estimates(text: str, machine: Machine, memory: float) -> Estimates:
    """Return the estimates of a scheduled program in HLO text; `memory` is the compiler's own figure."""
    schedule = Schedule(text, machine)
    walked = list(schedule.walk(schedule.module.entry, 1))
    costs = [(trips, *schedule.costs(c, i)) for trips, c, i in walked]
    cycles, kernels, main = (sum(cost[0] * cost[i] for cost in costs) for i in (1, 2, 3))
    parts = tuple(_part(i, *cost[:2]) for (_, _, i), cost in zip(walked, costs, strict=True) if cost[1])
    return Estimates(cycles, max(kernels, main), memory, schedule.unknown_loops, parts)


def _part(instruction: Instruction, trips: float, cycles: float) -> PartRow:
    return f"{instruction.opcode} {_extents(instruction.shape)}", b"", float(trips), cycles


def _extents(shape: Shape) -> str:
    return ",".join(map(_extents, shape.elements)) if shape.elements else f"{shape.dtype}{list(shape.dims)}"


class Schedule:
    """A scheduled program in HLO text, and the machine whose peaks count."""

    def __init__(self, text: str, machine: Machine) -> None:
        self.module = hlo.parse(text, "scheduled HLO")
        self.buffers, self._machine, self.unknown_loops = buffers_of(text), machine, 0

    def walk(self, name: str, trips: int) -> Iterator[tuple[int, Computation, Instruction]]:
        """Yield every instruction that runs: how often, its computation, and the instruction."""
        computation = self.module.computations[name]
        for instruction in computation.instructions:
            idle = instruction.attributes.get("custom_call_target") in _NO_WORK
            if not idle and not _FREE.fullmatch(instruction.opcode):
                yield trips, computation, instruction
            times = trips * self._times(computation, instruction)
            for inner in instruction.called_computations if instruction.opcode in _CALLS else ():
                if inner != instruction.attributes.get("condition", "").strip("%"):
                    yield from self.walk(inner, times)

    def _times(self, computation: Computation, instruction: Instruction) -> int:
        if instruction.opcode != "while":
            return 1
        start = starts(self.module, computation, instruction)
        times = trip_count(self.module, instruction, start, steps(self.module, instruction, start))
        self.unknown_loops += times is None
        return 1 if times is None else times

    def costs(self, computation: Computation, instruction: Instruction) -> tuple[float, float, float]:
        """Return the estimated cycles, those of the roofline, and those of main memory."""
        main, chip = traffic(self.module, computation, instruction, self.buffers)
        main, chip = main / self._machine.memory, chip / self._machine.memory
        if instruction.opcode.endswith("-start"):
            return 0.0, 0.0, main
        cycles = float(window_of(instruction).get("estimated_cycles", 0))
        if not PLACEHOLDER < cycles < ENDLESS:
            cycles = main + chip
        return cycles, max(self._flops(computation, instruction) / self._machine.matrix, main, chip / CHIP), main

    def _flops(self, computation: Computation, instruction: Instruction) -> float:
        if instruction.opcode != "fusion":
            return operations(computation, instruction)
        inner = self.module.computations[instruction.called_computations[0]]
        return sum(self._flops(inner, one) for one in inner.instructions)
