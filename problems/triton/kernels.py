"""A matrix product and a softmax in Triton. Import this only where Triton is installed.

They have the usual form: the tiles of a product are visited in groups, so that neighbours find the same rows in the
cache (Tillet, Kung and Cox 2019, "Triton", section 5), and one or two sweeps of an online softmax (Milakov and
Gimelshein 2018, "Online normalizer calculation for softmax", algorithm 3).
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def matmul(  # noqa: ANN201
    a, b, c, rows: int, columns: int, depth: int,  # noqa: ANN001
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Write the product of float16 `a` (rows, depth) and `b` (depth, columns), summed in float32, to `c`."""
    program = tl.program_id(0)
    down, across = tl.cdiv(rows, ROWS), tl.cdiv(columns, COLUMNS)
    first = program // (GROUP * across) * GROUP
    height = min(down - first, GROUP)
    row = first + program % (GROUP * across) % height
    column = program % (GROUP * across) // height
    i = row * ROWS + tl.arange(0, ROWS)
    j = column * COLUMNS + tl.arange(0, COLUMNS)
    k = tl.arange(0, DEPTH)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, depth, DEPTH):
        inside = start + k < depth
        left = tl.load(a + i[:, None] * depth + (start + k)[None], (i < rows)[:, None] & inside[None], 0.0)
        right = tl.load(b + (start + k)[:, None] * columns + j[None], inside[:, None] & (j < columns)[None], 0.0)
        total = tl.dot(left, right, total)
    tl.store(c + i[:, None] * columns + j[None], total.to(tl.float16), (i < rows)[:, None] & (j < columns)[None])


@triton.jit
def softmax(x, y, rows: int, columns: int, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # noqa: ANN001, ANN201
    """Write the softmax of each row of float32 `x` to `y`; one sweep if a row fits into a tile, else two."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    j = tl.arange(0, COLUMNS)
    most = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    for start in range(0, columns, COLUMNS):
        inside = (i < rows)[:, None] & (start + j < columns)[None]
        tile = tl.load(x + i[:, None] * columns + (start + j)[None], inside, float("-inf"))
        higher = tl.maximum(most, tl.max(tile, 1))
        higher = tl.where(i < rows, higher, 0.0)  # rows beyond the end: no inf - inf
        total = total * tl.exp(most - higher) + tl.sum(tl.exp(tile - higher[:, None]), 1)
        most = higher
    for start in range(0, columns, COLUMNS):
        inside = (i < rows)[:, None] & (start + j < columns)[None]
        tile = tl.load(x + i[:, None] * columns + (start + j)[None], inside, float("-inf"))
        tl.store(y + i[:, None] * columns + (start + j)[None], tl.exp(tile - most[:, None]) / total[:, None], inside)
