"""Whether results have the sizes that follow from their operands: XLA's reader of text does not check it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from .module import Computation, Instruction, Malformed, Module, Unfit
from .opcodes import Kind, kind_of

Dims = tuple[int, ...]


def check_results(module: Module) -> None:
    """Check the result of every operation whose sizes follow from those of its operands; windows and gathers are not.

    Raises:
      Malformed: a result has other sizes.
    """
    for computation in module.computations.values():
        for instruction in computation.instructions:
            if (made := _implied(instruction, computation)) is not None and made != instruction.shape.dims:
                found, right = (f"[{','.join(map(str, dims))}]" for dims in (instruction.shape.dims, made))
                why = f"its result is {found}, but its operands and attributes give {right}"
                raise Malformed(instruction.name, instruction.opcode, Unfit(why))


def _implied(instruction: Instruction, computation: Computation) -> Dims | None:
    """Return the sizes of the result that follow from the operands; None if none do, or this is not known."""
    shapes = [computation.instructions[place].shape for place in instruction.operands]
    if instruction.opcode == "get-tuple-element" and shapes[0].elements:
        return shapes[0].elements[int(instruction.attributes["index"])].dims
    if not shapes or any(shape.dtype == "tuple" for shape in (instruction.shape, *shapes)):
        return None
    given = [shape.dims for shape in shapes]
    if instruction.opcode in _SIZES:
        return _SIZES[instruction.opcode](instruction, given)
    if kind_of(instruction.opcode) is Kind.ELEMENTWISE and instruction.opcode != "bitcast-convert":
        return _together(instruction.shape.dims, given)
    return None


def _together(result: Dims, given: Sequence[Dims]) -> Dims:
    """Return the sizes of arrays taken element by element; scalars, and dimensions of size 1, fit any other."""
    arrays = [dims for dims in given if dims] or [Dims()]
    for dims in arrays:
        if len(dims) != len(result) or any(n not in (1, m) for n, m in zip(dims, result, strict=True)):
            return dims
    return tuple(m if m in sizes else 1 for m, sizes in zip(result, zip(*arrays, strict=True), strict=True))


def _transposed(instruction: Instruction, given: Sequence[Dims]) -> Dims:
    return tuple(given[0][d] for d in instruction.numbers("dimensions"))


def _broadcast(instruction: Instruction, given: Sequence[Dims]) -> Dims:
    sizes = dict(zip(instruction.numbers("dimensions"), given[0], strict=True))
    return tuple(sizes.get(d, n) for d, n in enumerate(instruction.shape.dims))


def _joined(instruction: Instruction, given: Sequence[Dims]) -> Dims:
    (along,) = instruction.numbers("dimensions")
    return (*given[0][:along], sum(dims[along] for dims in given), *given[0][along + 1 :])


def _reduced(instruction: Instruction, given: Sequence[Dims]) -> Dims:
    gone = instruction.numbers("dimensions")
    return tuple(n for d, n in enumerate(given[0]) if d not in gone)


def _product(instruction: Instruction, given: Sequence[Dims]) -> Dims | None:
    if len(given) != 2:  # a sparse one has a third
        return None
    batch, rest = tuple(given[0][d] for d in instruction.numbers("lhs_batch_dims")), Dims()
    for side, dims in zip(("lhs", "rhs"), given, strict=True):
        gone = [d for key in ("batch", "contracting") for d in instruction.numbers(f"{side}_{key}_dims")]
        rest += tuple(n for d, n in enumerate(dims) if d not in gone)
    return batch + rest


def _sliced(instruction: Instruction, given: Sequence[Dims]) -> Dims:
    ranges = [list(map(int, part.split(":"))) for part in re.findall(r"\[([^\]]*)\]", instruction.attributes["slice"])]
    ends = [(r[0], min(r[1], n), r[2] if len(r) > 2 else 1) for r, n in zip(ranges, given[0], strict=True)]
    return tuple(len(range(*each)) for each in ends)


def _padded(instruction: Instruction, given: Sequence[Dims]) -> Dims:
    pads = [list(map(int, part.split("_"))) for part in instruction.attributes["padding"].split("x")]
    return tuple(
        low + high + n + max(0, n - 1) * sum(inner) for (low, high, *inner), n in zip(pads, given[0], strict=True)
    )


def _first(_: Instruction, given: Sequence[Dims]) -> Dims:
    return given[0]


_SIZES: dict[str, Callable[[Instruction, Sequence[Dims]], Dims | None]] = {
    "broadcast": _broadcast,
    "concatenate": _joined,
    "copy": _first,
    "dot": _product,
    "dynamic-slice": lambda instruction, _: tuple(instruction.numbers("dynamic_slice_sizes")),
    "dynamic-update-slice": _first,
    "pad": _padded,
    "reduce": _reduced,
    "reverse": _first,
    "slice": _sliced,
    "transpose": _transposed,
}
