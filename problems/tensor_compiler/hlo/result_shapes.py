"""Whether results have the sizes that follow from their operands: XLA's reader of text does not check it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from .module import FAULTS, Computation, Instruction, Malformed, Module, Shape, Unfit
from .opcodes import Kind, bytes_of, is_type, kind_of
from .windows import axes

Dims = tuple[int, ...]
Sizes = Any
"""The sizes of an array, or a list of those of the parts of a tuple."""


def check_results(module: Module) -> None:
    """Check every operation whose result's sizes follow from those of its operands, and what computations are given.

    Raises:
      Malformed: a result, or what a computation takes or returns, has other sizes.
    """
    for computation in module.computations.values():
        for instruction in computation.instructions:
            shapes = [computation.instructions[place].shape for place in instruction.operands]
            try:
                if (made := _implied(instruction, shapes)) is not None:
                    check_size(instruction.shape, made)
                for called, given in _calls(instruction, shapes):
                    _check_call(instruction, module.computations[called], given)
            except FAULTS as error:
                raise Malformed(instruction.name, instruction.opcode, error) from error


def check_size(result: Shape, right: Sizes) -> None:
    """Check that a result has the sizes that follow from what it is made of.

    Raises:
      Unfit: it has others.
    """
    _compare("result is", _sizes(result), "its operands and attributes give", right)


def _check_call(call: Instruction, called: Computation, given: Sequence[Shape]) -> None:
    parameters = (one for one in called.instructions if one.opcode == "parameter")
    taken = [_sizes(one.shape) for one in sorted(parameters, key=lambda one: one.parameter_number or 0)]
    _compare("operands are", [*map(_sizes, given)], f"computation {called.name!r} takes", taken)
    if called.name != call.attributes.get("condition"):
        made = _sizes(called.instructions[called.root].shape)
        _compare("result is", _sizes(call.shape), f"computation {called.name!r} returns", made)


def _compare(what: str, found: Sizes, source: str, right: Sizes) -> None:
    if found != right:
        own, wanted = _different(found, right)
        raise Unfit(f"its {what} {own}, but {source} {wanted}")


def _calls(instruction: Instruction, shapes: Sequence[Shape]) -> Iterator[tuple[str, Sequence[Shape]]]:
    """Yield the computations that run in place of an instruction, and what each of them is given."""
    called = instruction.called_computations
    if instruction.opcode == "conditional":
        yield from zip(called, ([shape] for shape in shapes[1:]), strict=True)
    elif instruction.opcode in ("call", "fusion", "while"):
        yield from ((name, shapes) for name in called)


def _sizes(shape: Shape) -> Sizes:
    return [_sizes(part) for part in shape.elements] if shape.dtype == "tuple" else shape.dims


def _different(found: Sizes, right: Sizes) -> tuple[str, str]:
    """Return in words the first parts that differ, of sizes that do."""
    if isinstance(found, list) and isinstance(right, list) and len(found) == len(right):
        return next(_different(*pair) for pair in zip(found, right, strict=True) if pair[0] != pair[1])
    return _words(found), _words(right)


def _words(sizes: Sizes) -> str:
    return (
        f"{len(sizes)} value{'s' * (len(sizes) != 1)}" if isinstance(sizes, list) else f"[{','.join(map(str, sizes))}]"
    )


def _implied(instruction: Instruction, shapes: Sequence[Shape]) -> Sizes | None:
    """Return the sizes of the result that follow from the operands; None if none do, or this is not known."""
    opcode = instruction.opcode
    if opcode == "get-tuple-element":
        return _sizes(shapes[0].elements[int(instruction.attributes["index"])])
    given = [_sizes(shape) for shape in shapes]
    if opcode in _PASSED_ON:
        return given[0]
    if not shapes or any(isinstance(sizes, list) for sizes in given):
        return None
    if opcode in _EACH:
        return _each(instruction, given[: _EACH[opcode](len(given))])
    if opcode in _SIZES:
        return _SIZES[opcode](instruction, given)
    if opcode == "bitcast-convert":
        return _recast(instruction, shapes[0])
    return _together(instruction.shape.dims, given) if kind_of(opcode) is Kind.ELEMENTWISE else None


def _each(instruction: Instruction, given: Sequence[Dims]) -> Sizes | None:
    """Return the sizes of the results of an operation that does the same with each of several arrays."""
    several = instruction.shape.dtype == "tuple"
    results = instruction.shape.elements if several else (instruction.shape,)
    alone = [replace(instruction, shape=shape) for shape in (*results, *results[:1] * len(given))]
    made = [_SIZES[instruction.opcode](one, [dims]) for one, dims in zip(alone, given, strict=False)]
    return made if several or len(made) > 1 else made[0]


def _together(result: Dims, given: Sequence[Dims]) -> Dims:
    """Return the sizes of arrays taken element by element; scalars, and dimensions of size 1, fit any other."""
    arrays = [dims for dims in given if dims] or [Dims()]
    for dims in arrays:
        if len(dims) != len(result) or any(n not in (1, m) for n, m in zip(dims, result, strict=True)):
            return dims
    return tuple(m if m in sizes else 1 for m, sizes in zip(result, zip(*arrays, strict=True), strict=True))


def _recast(instruction: Instruction, operand: Shape) -> Dims | None:
    """Return the sizes of the same bits as elements of another type: the last dimension counts parts of the larger."""
    types = (operand.dtype, instruction.shape.dtype)
    if "pred" in types or not all(map(is_type, types)):
        return None
    ratio = bytes_of(operand.dtype) / bytes_of(instruction.shape.dtype)
    if ratio < 1:
        return operand.dims[:-1] if operand.dims[-1:] == (1 / ratio,) else operand.dims
    return operand.dims if ratio == 1 else (*operand.dims, int(ratio))


def _transposed(instruction: Instruction, given: Sequence[Dims]) -> Dims:
    return tuple(given[0][d] for d in instruction.numbers("dimensions"))


def _broadcast(instruction: Instruction, given: Sequence[Dims]) -> Dims:
    sizes = dict(zip(instruction.numbers("dimensions"), given[0], strict=True))
    return tuple(sizes.get(d, n) for d, n in enumerate(instruction.shape.dims))


def _joined(instruction: Instruction, given: Sequence[Dims]) -> Dims:
    (along,) = instruction.numbers("dimensions")
    if len({(*dims[:along], *dims[along + 1 :]) for dims in given}) > 1:
        raise Unfit(f"its operands have different sizes: {', '.join(map(_words, given[:2]))}")
    return _with(given[0], along, sum(dims[along] for dims in given))


def _with(dims: Dims, along: int, size: int) -> Dims:
    """Return sizes with another one along a dimension."""
    return (*dims[:along], size, *dims[along + 1 :])


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


def _taken(instruction: Instruction, attribute: str, whole: Dims) -> Dims:
    """Return the sizes of a slice, which is at most as large as the whole."""
    return tuple(map(min, *zip(*zip(instruction.numbers(attribute), whole, strict=True), strict=True))) if whole else ()


def _updated(_: Instruction, given: Sequence[Dims]) -> Dims:
    if any(part > whole for whole, part in zip(*given[:2], strict=True)):
        raise Unfit(f"its update is {_words(given[1])}, larger than its operand, {_words(given[0])}")
    return given[0]


def _gathered(instruction: Instruction, given: Sequence[Dims]) -> Dims:
    taken, key = _taken(instruction, "slice_sizes", given[0]), int(instruction.attributes["index_vector_dim"])
    gone = instruction.numbers("collapsed_slice_dims") + instruction.numbers("operand_batching_dims")
    kept = (n for d, n in enumerate(taken) if d not in gone)
    made = [n for d, n in enumerate(given[1]) if d != key]
    for d, n in zip(sorted(instruction.numbers("offset_dims")), kept, strict=True):
        made.insert(d, n)
    return tuple(made)


def _padded(instruction: Instruction, given: Sequence[Dims]) -> Dims:
    pads = [list(map(int, part.split("_"))) for part in instruction.attributes["padding"].split("x")]
    return tuple(
        low + high + n + max(0, n - 1) * sum(inner) for (low, high, *inner), n in zip(pads, given[0], strict=True)
    )


def _windowed(instruction: Instruction, given: Sequence[Dims]) -> Dims:
    return tuple(axis.positions(n) for axis, n in zip(axes(instruction), given[0], strict=True))


def _convolved(instruction: Instruction, given: Sequence[Dims]) -> Dims | None:
    parts = re.split("_|->", instruction.attributes["dim_labels"])
    images, filters = (dict(zip(labels, dims, strict=True)) for labels, dims in zip(parts, given, strict=False))
    features, batches = (int(instruction.attributes.get(f"{key}_group_count", 1)) for key in ("feature", "batch"))
    if images["f"] != filters["i"] * features:
        raise Unfit(f"its input has {images['f']} features where its filter takes {filters['i'] * features}")
    if filters["o"] % (features * batches) or images["b"] % batches:
        raise Unfit("its groups do not divide its batch, or the features of its result")
    if not (window := axes(instruction)) and len(filters) > 2:
        return None  # what XLA makes of this depends on who reads it
    if (own := tuple(axis.size for axis in window)) != (
        size := tuple(filters[str(n)] for n in range(len(filters) - 2))
    ):
        raise Unfit(f"its window is {_words(own)}, but its filter is {_words(size)}")
    made = {str(n): axis.positions(images[str(n)]) for n, axis in enumerate(window)}
    made |= {"b": images["b"] // batches, "f": filters["o"]}
    return tuple(made[label] for label in parts[2])


def _transformed(instruction: Instruction, given: Sequence[Dims]) -> Dims:
    kind, length = instruction.attributes["fft_type"], instruction.numbers("fft_length")[-1]
    last = {"RFFT": length // 2 + 1 if length else 0, "IRFFT": length}
    return (*given[0][:-1], last.get(kind, given[0][-1]))


def _all_parts(instruction: Instruction, given: Sequence[Dims]) -> Dims:
    """Return the sizes of an array after an all-gather, whose result says how many parts there are."""
    (along,) = instruction.numbers("dimensions")
    part, whole = given[0][along], instruction.shape.dims[along]
    return _with(given[0], along, -(-whole // part) * part if part else whole)


def _own_part(instruction: Instruction, given: Sequence[Dims]) -> Dims:
    """Return the sizes of an array after a reduce-scatter, whose result says how many parts there are."""
    (along,) = instruction.numbers("dimensions")
    whole, part = given[0][along], instruction.shape.dims[along]
    return _with(given[0], along, whole // -(-whole // part) if part and whole else part)


def _normed(_: Instruction, given: Sequence[Dims]) -> Sizes:
    return [given[0], given[1], given[1]]


def _drawn(instruction: Instruction, given: Sequence[Dims]) -> Sizes | None:
    drawn = instruction.shape.elements
    return [given[0], drawn[1].dims] if len(drawn) == 2 else None


def _largest(instruction: Instruction, given: Sequence[Dims]) -> Sizes:
    return [(*given[0][:-1], int(instruction.attributes["k"]))] * 2


def _first(_: Instruction, given: Sequence[Dims]) -> Dims:
    return given[0]


_PASSED_ON = ("add-dependency", "copy", "domain", "opt-barrier", "while")
_EACH: dict[str, Callable[[int], int]] = dict.fromkeys(("reduce", "reduce-window", "scatter"), lambda n: n // 2)
"""Operations on several arrays, and how many operands are such arrays: of the rest, none decides a result's sizes."""
_EACH |= dict.fromkeys(("all-gather", "all-reduce", "all-to-all", "reduce-scatter", "sort"), lambda n: n)
_SIZES: dict[str, Callable[[Instruction, Sequence[Dims]], Sizes | None]] = {
    "all-gather": _all_parts,
    "batch-norm-grad": _normed,
    "batch-norm-training": _normed,
    "broadcast": _broadcast,
    "concatenate": _joined,
    "collective-permute": lambda _, given: given[0] if len(given) == 1 else None,
    "convolution": _convolved,
    "dot": _product,
    "dynamic-slice": lambda instruction, given: _taken(instruction, "dynamic_slice_sizes", given[0]),
    "dynamic-update-slice": _updated,
    "fft": _transformed,
    "gather": _gathered,
    "get-dimension-size": lambda *_: (),
    "pad": _padded,
    "reduce": _reduced,
    "reduce-scatter": _own_part,
    "reduce-window": _windowed,
    "rng-bit-generator": _drawn,
    "slice": _sliced,
    "topk": _largest,
    "transpose": _transposed,
    "triangular-solve": lambda _, given: given[1],
}
_SAME = """all-reduce all-to-all batch-norm-inference cholesky collective-broadcast reverse scatter select-and-scatter
    set-dimension-size sort"""
_SIZES |= dict.fromkeys(_SAME.split(), _first)
