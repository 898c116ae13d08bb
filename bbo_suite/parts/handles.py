"""Handles: the address of a tuple of arrays, by which a compiled function with a plain signature finds its data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, typeof, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from .compiler import Compiler

_intrinsic: Any = intrinsic
_compiled = Compiler(Path(__file__).parent).function(runtime=False)
_njit: Any = njit
_TYPES: dict[str, Any] = {}
_uncached = _njit(_nrt=False)  # a cache would name the classes of the problems' tuples, which may be gone later


def handle(value: tuple[Any, ...]) -> NDArray[np.uint8]:
    """Return memory that holds a tuple of arrays as compiled code lays it out; its address is the handle.

    The arrays must live as long as the handle is used.
    """
    memory = np.zeros(_size(value), np.uint8)
    _write(memory.ctypes.data, value)
    return memory


def name_of_type(value: tuple[Any, ...]) -> str:
    """Return a name of a tuple's numba type for `load`.

    A compiled function that is made within another keeps what it takes from there as part of the name of its code in
    the cache. Types change that name, since numba numbers them as they come; their own names do not.
    """
    kind = typeof(value)
    _TYPES[kind.name] = kind
    return kind.name


@_intrinsic(prefer_literal=True)
def load(context: Any, address: Any, kind: Any) -> Any:  # noqa: ANN401 - numba's own types
    """Return the tuple of a handle; `kind` is its numba type or a name of it. For code that counts no references."""
    value = _TYPES[kind.literal_value] if isinstance(kind, types.StringLiteral) else kind.instance_type

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        return builder.load(builder.inttoptr(arguments[0], target.get_value_type(value).as_pointer()))

    return value(types.int64, kind), generate


@_intrinsic
def _size_of(context: Any, value: Any) -> Any:  # noqa: ANN401
    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        return ir.Constant(ir.IntType(64), target.get_abi_sizeof(target.get_value_type(value)))

    return types.int64(value), generate


@_intrinsic
def _store(context: Any, address: Any, value: Any) -> Any:  # noqa: ANN401
    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        builder.store(arguments[1], builder.inttoptr(arguments[0], target.get_value_type(value).as_pointer()))
        return target.get_dummy_value()

    return types.void(types.int64, value), generate


@_uncached
def _size(value: Any) -> int:  # noqa: ANN401
    return _size_of(value)


@_uncached
def _write(address: int, value: Any) -> None:  # noqa: ANN401
    _store(address, value)


@_compiled
def mix(key: np.uint64, number: np.uint64) -> np.uint64:
    """Return a hash of a hash and one more number (a step of MurmurHash3 with 64 bits, and its last steps)."""
    scrambled = number * np.uint64(0x87C37B91114253D5)
    scrambled = (scrambled << np.uint64(31)) | (scrambled >> np.uint64(33))
    mixed = (key ^ (scrambled * np.uint64(0x4CF5AD432745937F))) + np.uint64(0x52DCE729)
    mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return mixed ^ (mixed >> np.uint64(33))
