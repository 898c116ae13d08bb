"""The memory traffic of a kernel: it touches only a part of an array that it slices or updates."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..tensor_compiler.calibration.kernels import Buffer
from ..tensor_compiler.hlo.module import Computation, Instruction, Module

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
