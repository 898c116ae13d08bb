"""A matrix product, a softmax and attention in Triton. Import this only where Triton is installed.

They have the usual form: the tiles of a product are visited in groups, so that neighbours find the same rows in the
cache (Tillet, Kung and Cox 2019, "Triton", section 5), one or two sweeps of an online softmax (Milakov and Gimelshein
2018, "Online normalizer calculation for softmax", algorithm 3), and attention that keeps no scores (Dao 2023,
"FlashAttention-2", algorithm 1).
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["GROUP", "SPLIT"])
def matmul(  # noqa: ANN201
    a, b, c, rows: int, columns: int, depth: int,  # noqa: ANN001
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, GROUP: int = 1, SPLIT: int = 1,
):  # fmt: skip
    """Write the product of float16 `a` (rows, depth) and `b` (depth, columns), summed in float32, to `c`.

    If the depth is split, each share is added to `c`, which must be zero before.
    """
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
    share = tl.cdiv(depth, DEPTH * SPLIT) * DEPTH
    for start in range(tl.program_id(1) * share, min((tl.program_id(1) + 1) * share, depth), DEPTH):
        inside = start + k < depth
        left = tl.load(a + i[:, None] * depth + (start + k)[None], (i < rows)[:, None] & inside[None], 0.0)
        right = tl.load(b + (start + k)[:, None] * columns + j[None], inside[:, None] & (j < columns)[None], 0.0)
        total = tl.dot(left, right, total)
    places, inside = c + i[:, None] * columns + j[None], (i < rows)[:, None] & (j < columns)[None]
    if SPLIT == 1:
        tl.store(places, total.to(tl.float16), inside)
    else:
        tl.atomic_add(places, total.to(tl.float16), inside, sem="relaxed")


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


@triton.jit
def _attended(  # noqa: ANN202
    query, key, value, most, weights, total, i, first, last, tokens: int,  # noqa: ANN001
    width: tl.constexpr, KEYS: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Return the largest score, the sum of weights and the weighted values of a tile, after more of the keys."""
    j, d = tl.arange(0, KEYS), tl.arange(0, width)
    for start in range(first, last, KEYS):
        place = start + j
        keys = tl.load(key + place[None] * width + d[:, None], (place < tokens)[None], 0.0)
        scores = tl.dot(query, keys)
        if MASKED:
            scores = tl.where(place[None] <= i[:, None], scores, float("-inf"))
        higher = tl.maximum(most, tl.max(scores, 1))
        share = tl.exp2(scores - higher[:, None])
        shrink = tl.exp2(most - higher)
        weights = weights * shrink + tl.sum(share, 1)
        values = tl.load(value + place[:, None] * width + d[None], (place < tokens)[:, None], 0.0)
        total = tl.dot(share.to(values.dtype), values, total * shrink[:, None])
        most = higher
    return most, weights, total


@triton.jit(do_not_specialize=["LAST_FIRST"])
def attention(  # noqa: ANN201
    q, k, v, out, heads: int, tokens: int, width: tl.constexpr,  # noqa: ANN001
    QUERIES: tl.constexpr, KEYS: tl.constexpr, LAST_FIRST: int = 0,
):  # fmt: skip
    """Write the causal attention of float16 `q`, `k` and `v`, each (heads, tokens, width), to `out`.

    Tiles of later queries have more keys; `LAST_FIRST` starts with those.
    """
    tile = tl.program_id(0)
    tile = tl.where(LAST_FIRST == 1, tl.num_programs(0) - 1 - tile, tile)
    head = tl.program_id(1).to(tl.int64) * tokens * width
    first = tile * QUERIES
    i, d = first + tl.arange(0, QUERIES), tl.arange(0, width)
    query = tl.load(q + head + i[:, None] * width + d[None], (i < tokens)[:, None], 0.0)
    query = (query * (1.4426950408889634 / (width**0.5))).to(query.dtype)  # exp2 of what is scaled by log2(e)
    most = tl.full((QUERIES,), float("-inf"), tl.float32)
    weights = tl.zeros((QUERIES,), tl.float32)
    total = tl.zeros((QUERIES, width), tl.float32)
    full = first // KEYS * KEYS
    most, weights, total = _attended(
        query, k + head, v + head, most, weights, total, i, 0, full, tokens, width, KEYS, MASKED=False
    )
    most, weights, total = _attended(
        query, k + head, v + head, most, weights, total, i, full, first + QUERIES, tokens, width, KEYS, MASKED=True
    )
    result = (total / weights[:, None]).to(query.dtype)
    tl.store(out + head + i[:, None] * width + d[None], result, (i < tokens)[:, None])
