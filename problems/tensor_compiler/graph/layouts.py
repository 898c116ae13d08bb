"""How an array lies in memory: which two dimensions are minor decides its padding, its bytes and the loops over it.

A layout is the tuple of the minor and the second-minor dimension; both are padded to the hardware's tile. The order of
the other dimensions does not change any cost and is ignored, and so are dimensions of size 1. An array with fewer than
two dimensions of another size has a single layout.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache

from ..hlo.module import Shape
from ..hlo.opcodes import bytes_of

LANES, SUBLANES = 128, 8
"""The tile of the two minor dimensions that arrays are padded to in memory (XLA:TPU, Tiled layout)."""

_VECTOR_BYTES = 512  # vectors are packed densely

Layout = tuple[int, ...]


def real_dims(dims: Iterable[int]) -> list[int]:
    """Return the dimensions whose size is not 1, in reverse order."""
    sizes = list(dims)
    return [d for d in reversed(range(len(sizes))) if sizes[d] != 1]


def minor_dims(shape: Shape, order: Iterable[int]) -> Layout:
    """Return the layout of an array from the order of its dimensions, minor to major, such as `Shape.layout`."""
    return tuple(d for d in order if shape.dims[d] != 1)[:2]


@cache
def layouts(shape: Shape) -> tuple[Layout, ...]:
    """Return all layouts of an array, row-major first; a layout's number is its place here.

    Layouts with the same minor dimension have consecutive numbers.
    """
    real = real_dims(shape.dims)
    if len(real) < 2 or shape.dtype == "tuple":
        return (tuple(real),)
    return tuple((minor, second) for minor in real for second in real if minor != second)


def tile_rows(dtype: str) -> int:
    """Return how many rows a tile has: narrow types are packed."""
    return SUBLANES * max(1, round(4 / max(bytes_of(dtype), 0.5)))


def padding(size: int, tile: int) -> float:
    """Return the factor by which padding to a tile makes a dimension larger."""
    return -(-size // tile) * tile / max(1, size)


def padded_bytes(shape: Shape, layout: Layout) -> float:
    """Return the bytes of an array in memory; of a tuple, those of its parts in their compact layouts."""
    if shape.dtype == "tuple":
        return sum(padded_bytes(part, compact(part)) for part in shape.elements)
    size = math.prod(shape.dims) * bytes_of(shape.dtype)
    if len(layout) < 2 or size == 0:
        return float(-(-size // _VECTOR_BYTES) * _VECTOR_BYTES)
    minor, second = (shape.dims[d] for d in layout)
    return size * padding(minor, LANES) * padding(second, tile_rows(shape.dtype))


def extents(shape: Shape, layout: Layout) -> tuple[float, float, float]:
    """Return outer extent, rows and columns of a loop over whole tiles of an array."""
    if shape.dtype == "tuple":
        return 1.0, 1.0, float(max(1, sum(math.prod(part.dims) for part in shape.elements)))
    columns, rows = (*(shape.dims[d] for d in layout), 1, 1)[:2]
    outer = math.prod(size for d, size in enumerate(shape.dims) if d not in layout)
    return float(max(1, outer)), _whole(rows, SUBLANES if len(layout) > 1 else 1), _whole(columns, LANES)


def _whole(size: int, tile: int) -> float:
    return float(-(-max(1, size) // tile) * tile)


@cache
def compact(shape: Shape) -> Layout:
    """Return the layout that pads an array least; on ties, the one nearest to row-major."""
    return min(layouts(shape), key=lambda layout: padded_bytes(shape, layout))


@cache
def completed(shape: Shape, start: Layout) -> int:
    """Return the number of the layout that pads least among those that start with given dimensions.

    Dimensions of size 1 in `start` are left out.
    """
    start = tuple(d for d in start if shape.dims[d] != 1)[:2]
    fitting = [layout for layout in layouts(shape) if layout[: len(start)] == start]
    return layouts(shape).index(min(fitting, key=lambda layout: padded_bytes(shape, layout)))
