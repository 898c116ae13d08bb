"""Bitcasts, which XLA prints after it has chosen layouts: operations that move nothing in these layouts."""

from __future__ import annotations

from dataclasses import replace

from ..hlo.module import Instruction, Shape


def unlaid(bitcast: Instruction, operand: Shape) -> Instruction | None:
    """Return the transpose or reshape that a bitcast was before layouts were chosen; None if it changes nothing."""
    order = _order(bitcast.shape, operand)
    if order is None:
        return None if bitcast.shape.dims == operand.dims else replace(bitcast, opcode="reshape")
    if order == sorted(order):
        return None
    dimensions = ",".join(map(str, order))
    return replace(bitcast, opcode="transpose", attributes=bitcast.attributes | {"dimensions": f"{{{dimensions}}}"})


def _order(result: Shape, operand: Shape) -> list[int] | None:
    """Return for each dimension of the result the same dimension of the operand; None if they are not the same ones."""
    if result.layout is None or operand.layout is None or len(result.dims) != len(operand.dims):
        return None
    there = dict(zip(result.layout, operand.layout, strict=True))
    order = [there[d] for d in range(len(result.dims))]
    return order if tuple(operand.dims[d] for d in order) == result.dims else None
