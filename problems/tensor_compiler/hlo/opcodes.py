"""What the compiler knows about each HLO opcode: its kind of work and its cost on the vector unit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from enum import IntEnum

from .module import Module, Shape


class Kind(IntEnum):
    """How an operation takes part in fusion."""

    SOURCE = 0  # is in memory before the program, or a loop, runs: parameters, large constants, results of loops
    FREE = 1  # costs nothing and is repeated at every use: small constants, and results computed from these only
    ELEMENTWISE = 2
    BROADCAST = 3
    MOVE = 4  # rearranges elements: transpose, slice, pad, concatenate, gather
    REDUCE = 5  # heavy: many elements become one; never computed twice
    MATRIX = 6  # heavy: dot and convolution, on the matrix unit; never computed twice
    OPAQUE = 7  # a kernel of its own, never fused: sort, scatter, custom calls, unknown operations


# Vector operations per element; the unit is a 32-bit lane operation. For transcendental functions and division, this is
# how much XLA:TPU's own estimate grows when one is added to a loop (v5e). For moves, and for functions with equal
# estimates, the numbers are ours.
_ELEMENTWISE = {
    1.0: """abs add and bitcast-convert ceil clamp compare convert copy floor imag is-finite maximum minimum multiply
        negate not or popcnt real reduce-precision round-nearest-afz round-nearest-even select shift-left
        shift-right-arithmetic shift-right-logical sign stochastic-convert subtract xor complex count-leading-zeros""",
    2.0: "exponential rsqrt sqrt tanh",
    3.0: "divide exponential-minus-one log log-plus-one mulhi power",
    6.0: "logistic",
    20.0: "acosh asinh atanh cbrt cosh erf map sinh",
    30.0: "remainder",
    100.0: "acos asin atan atan2 tan sine cosine",
}
_MOVE = {
    0.5: "slice dynamic-slice",
    1.0: "concatenate dynamic-update-slice pad transpose",
    4.0: "reshape reverse",
    16.0: "gather",
}
_REDUCE = "reduce reduce-window select-and-scatter"
_MATRIX = "dot convolution"
_SOURCE = "parameter infeed recv get-tuple-element while conditional"
_FREE = "constant iota partition-id replica-id after-all"
# The other opcodes of HLO: those that vanish when calls are inlined and tuples resolved, and kernels of their own.
_RESOLVED = """add-dependency async-done async-start async-update bitcast call copy-done copy-start domain fusion
    opt-barrier tuple"""
_OPAQUE = """all-gather all-gather-done all-gather-start all-reduce all-reduce-done all-reduce-start all-to-all
    batch-norm-grad batch-norm-inference batch-norm-training cholesky collective-broadcast collective-permute
    collective-permute-done collective-permute-start custom-call dynamic-reshape fft get-dimension-size outfeed
    ragged-all-to-all ragged-dot recv-done reduce-scatter rng rng-bit-generator rng-get-and-update-state
    scaled-dot scan scatter send send-done set-dimension-size sort topk triangular-solve"""

KINDS: dict[str, Kind] = {"broadcast": Kind.BROADCAST}
VECTOR_OPERATIONS: dict[str, float] = {"broadcast": 0.5}
for _table, _kind in ((_ELEMENTWISE, Kind.ELEMENTWISE), (_MOVE, Kind.MOVE)):
    for _cost, _names in _table.items():
        KINDS |= dict.fromkeys(_names.split(), _kind)
        VECTOR_OPERATIONS |= dict.fromkeys(_names.split(), _cost)
KINDS |= dict.fromkeys(_REDUCE.split(), Kind.REDUCE)
KINDS |= dict.fromkeys(_MATRIX.split(), Kind.MATRIX)
KINDS |= dict.fromkeys(_SOURCE.split(), Kind.SOURCE)
KINDS |= dict.fromkeys(_FREE.split(), Kind.FREE)

NAMED = frozenset([*KINDS, *_RESOLVED.split(), *_OPAQUE.split()])
"""All known opcodes."""

PRODUCTS = frozenset([*_MATRIX.split(), "ragged-dot", "scaled-dot"])
"""The opcodes whose work is a matrix product; the ragged and the scaled one are kernels of their own."""

SHUFFLE_OPERATIONS = 32.0
"""Vector operations per element of a transpose that moves elements between lanes."""

OPAQUE_OPERATIONS = 4.0
"""Assumed vector operations per element of an operation that is not listed."""

# Bits of an element; a type that is not listed is assumed to have 32.
_BITS = {"pred": 8, "token": 0, "opaque": 0, "u1": 1, "s1": 1, "u2": 2, "s2": 2, "u4": 4, "s4": 4, "f4e2m1fn": 4}
_BITS |= {"s8": 8, "u8": 8, "s16": 16, "u16": 16, "f16": 16, "bf16": 16, "s32": 32, "u32": 32, "f32": 32}
_BITS |= {"s64": 64, "u64": 64, "f64": 64, "c64": 64, "c128": 128}


def bytes_of(dtype: str) -> float:
    """Return the bytes of one element of a type."""
    return (8 if dtype.startswith("f8") else _BITS.get(dtype, 32)) / 8


def is_type(dtype: str) -> bool:
    """True if this is a known element type."""
    return dtype in _BITS or dtype.startswith("f8")


def kind_of(opcode: str) -> Kind:
    """Return the kind of an opcode; an unknown one is opaque."""
    return KINDS.get(opcode, Kind.OPAQUE)


def asynchronous(opcode: str) -> tuple[str, str]:
    """Return the operation that an opcode is a stage of, and the stage: `start`, `update`, `done` or nothing."""
    operation, _, stage = opcode.rpartition("-")
    return (operation, stage) if stage in ("start", "update", "done") else (opcode, "")


def unknown(module: Module) -> dict[str, str]:
    """Return facts about the unknown operations and types of a module; empty if all are known."""
    instructions = module.instructions()
    opcodes = Counter(i.opcode for i in instructions if NAMED.isdisjoint((i.opcode, asynchronous(i.opcode)[0])))
    types = Counter(t for i in instructions for t in _types(i.shape) if not is_type(t))
    facts = {}
    if opcodes:
        facts["operations of unknown kind"] = f"{_listed(opcodes)}; each is taken for a kernel of its own"
    if types:
        facts["results of unknown type"] = f"{_listed(types)}; taken to have 32 bits an element"
    return facts


def _types(shape: Shape) -> Iterator[str]:
    if shape.dtype != "tuple":
        yield shape.dtype
    for part in shape.elements:
        yield from _types(part)


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()))
