"""What the compiler estimates of a whole scheduled program, loops times their trips, and what a roofline allows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..tensor_compiler.calibration.flops import operations
from ..tensor_compiler.calibration.kernels import ENDLESS, PLACEHOLDER, buffers_of, window_of
from ..tensor_compiler.graph.flatten import trip_count
from ..tensor_compiler.hardware.machine import Machine
from ..tensor_compiler.hlo import reader as hlo
from ..tensor_compiler.hlo.module import Computation, Instruction
from .traffic import moved

CHIP = 22.0
"""How many times as fast as main memory the scratchpad is: https://jax-ml.github.io/scaling-book/tpus."""
_FREE = re.compile(r"parameter|constant|tuple|get-tuple-element|bitcast|while|conditional|call|after-all|[\w-]+-done")
_NO_WORK = ('"AllocateBuffer"', '"ConcatBitcast"')
_CALLS = ("while", "call", "conditional")


@dataclass(frozen=True)
class Estimates:
    """Of one compiled program.

    Attributes:
      cycles: the sum of the compiler's estimates of its kernels. One without an estimate counts the time in which main
        memory would move what it reads and writes; copies in the background count nothing, and a conditional counts
        all its branches.
      roofline: cycles that the schedule needs at the machine's published peaks: each kernel for its floating point
        operations, for what it moves from and to main memory, or for what it reads and writes on the chip, whichever
        takes longest; in all at least what main memory takes, copies in the background included.
      memory: bytes of memory at the peak, arguments and results included.
      strange: loops whose trips cannot be read; they count once.
    """

    cycles: float
    roofline: float
    memory: float
    strange: int = 0


def estimates(text: str, machine: Machine, memory: float) -> Estimates:
    """Return the estimates of a scheduled program in HLO text; `memory` is what the compiler says of it."""
    schedule = _Schedule(text, machine)
    costs = [(trips, *schedule.costs(c, i)) for trips, c, i in schedule.walk(schedule.module.entry, 1)]
    cycles, kernels, main = (sum(cost[0] * cost[i] for cost in costs) for i in (1, 2, 3))
    return Estimates(cycles, max(kernels, main), memory, schedule.strange)


class _Schedule:
    def __init__(self, text: str, machine: Machine) -> None:
        self.module = hlo.parse(text, "scheduled HLO")
        self._buffers, self._machine, self.strange = buffers_of(text), machine, 0

    def walk(self, name: str, trips: int) -> Iterator[tuple[int, Computation, Instruction]]:
        """Yield all that runs, how often, and the computation that it is in."""
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
        self.strange += times == 1
        return times

    def costs(self, computation: Computation, instruction: Instruction) -> tuple[float, float, float]:
        """Return the cycles that are estimated, those of a roofline, and those of main memory."""
        main, chip = moved(self.module, computation, instruction, self._buffers)
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
