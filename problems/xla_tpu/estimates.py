"""The compiler's estimate for a whole scheduled program, and its roofline. Loops count as often as they run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bbo_suite.supervised import PartRow

from ..tensor_compiler.calibration.flops import operations
from ..tensor_compiler.calibration.kernels import ENDLESS, PLACEHOLDER, buffers_of, window_of
from ..tensor_compiler.graph.flatten import trip_count
from ..tensor_compiler.hardware.machine import Machine
from ..tensor_compiler.hlo import reader as hlo
from ..tensor_compiler.hlo.module import Computation, Instruction, Shape
from .traffic import traffic

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
    schedule = _Schedule(text, machine)
    walked = list(schedule.walk(schedule.module.entry, 1))
    costs = [(trips, *schedule.costs(c, i)) for trips, c, i in walked]
    cycles, kernels, main = (sum(cost[0] * cost[i] for cost in costs) for i in (1, 2, 3))
    parts = tuple(_part(i, *cost[:2]) for (_, _, i), cost in zip(walked, costs, strict=True) if cost[1])
    return Estimates(cycles, max(kernels, main), memory, schedule.unknown_loops, parts)


def _part(instruction: Instruction, trips: float, cycles: float) -> PartRow:
    return f"{instruction.opcode} {_extents(instruction.shape)}", b"", float(trips), cycles


def _extents(shape: Shape) -> str:
    return ",".join(map(_extents, shape.elements)) if shape.elements else f"{shape.dtype}{list(shape.dims)}"


class _Schedule:
    def __init__(self, text: str, machine: Machine) -> None:
        self.module = hlo.parse(text, "scheduled HLO")
        self._buffers, self._machine, self.unknown_loops = buffers_of(text), machine, 0

    def walk(self, name: str, trips: int) -> Iterator[tuple[int, Computation, Instruction]]:
        """Yield every instruction that runs: how often, its computation, and the instruction."""
        computation = self.module.computations[name]
        for instruction in computation.instructions:
            idle = instruction.attributes.get("custom_call_target") in _NO_WORK
            if not idle and not _FREE.fullmatch(instruction.opcode):
                yield trips, computation, instruction
            times = trips * self._times(instruction)
            for inner in instruction.called_computations if instruction.opcode in _CALLS else ():
                if inner != instruction.attributes.get("condition", "").strip("%"):
                    yield from self.walk(inner, times)

    def _times(self, instruction: Instruction) -> int:
        if instruction.opcode != "while":
            return 1
        condition = self.module.computations[instruction.attributes["condition"].strip("%")]
        times = trip_count(instruction, condition)
        self.unknown_loops += times == 1
        return times

    def costs(self, computation: Computation, instruction: Instruction) -> tuple[float, float, float]:
        """Return the estimated cycles, those of the roofline, and those of main memory."""
        main, chip = traffic(self.module, computation, instruction, self._buffers)
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
