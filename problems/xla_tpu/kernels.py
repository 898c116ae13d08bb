"""Two Pallas kernels whose tiles are tuned: a matrix product and attention.

The kernels have no loop inside, so their code runs once per step of the grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

Tiles = Mapping[str, Any]


@dataclass(frozen=True)
class Kernel:
    """One kernel with its tiles.

    Attributes:
      call: the function.
      arguments: shapes and dtypes of its arguments.
      steps: number of steps of its grid.
      bytes: that its windows move from and to memory; a window that does not change in a step is not moved again.
      flops: floating point operations of its matrix products.
    """

    call: Callable[..., jax.Array]
    arguments: tuple[jax.ShapeDtypeStruct, ...]
    steps: int
    bytes: float
    flops: float


def _kernel(
    body: Callable[..., None],
    grid: tuple[int, ...],
    ins: list[tuple[tuple[int, ...], Callable[..., tuple[Any, ...]]]],
    out: tuple[tuple[int, ...], Callable[..., tuple[Any, ...]]],
    scratch: list[tuple[int, ...]],
    arguments: tuple[jax.ShapeDtypeStruct, ...],
    result: jax.ShapeDtypeStruct,
    flops: float,
    limit: int,
) -> Kernel:
    call = pl.pallas_call(
        body,
        grid=grid,
        in_specs=[pl.BlockSpec(*window) for window in ins],
        out_specs=pl.BlockSpec(*out),
        out_shape=result,
        scratch_shapes=[pltpu.VMEM(shape, jnp.float32) for shape in scratch],
        compiler_params=pltpu.CompilerParams(vmem_limit_bytes=limit << 20),
    )
    arrays = [*zip(ins, arguments, strict=True), (out, result)]
    moved = sum(_fetches(grid, place) * math.prod(block) * array.dtype.itemsize for (block, place), array in arrays)
    return Kernel(call, arguments, math.prod(grid), float(moved), flops)


def _fetches(grid: tuple[int, ...], place: Callable[..., tuple[Any, ...]]) -> int:
    """Return how often a window changes its place in the grid; the last dimension varies fastest."""
    start, d = [0] * len(grid), range(len(grid))
    moving = [i for i in d if grid[i] > 1 and place(*(int(i == j) for j in d)) != place(*start)]
    return math.prod(grid[: moving[-1] + 1]) if moving else 1


SIZE = 2048
"""Rows, columns and depth of the matrix product."""
HEADS, LENGTH, WIDTH = 8, 2048, 128
"""Shape of attention."""


def matmul(tiles: Tiles) -> Kernel:
    """Return the kernel of a product of two bfloat16 matrices, with sums in float32."""
    m, n, k = (tiles[name] for name in ("rows", "columns", "depth"))

    def body(x: Any, w: Any, out: Any, total: Any) -> None:  # noqa: ANN401 - references
        @pl.when(pl.program_id(2) == 0)
        def _() -> None:
            total[...] = jnp.zeros_like(total)

        total[...] += jnp.dot(x[...], w[...], preferred_element_type=jnp.float32)

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _() -> None:
            out[...] = total[...].astype(out.dtype)

    sides = (SIZE // m, SIZE // n)
    first = tiles["first"] == "rows"  # which dimension of the grid is the outer one
    ij = (lambda a, b: (a, b)) if first else (lambda a, b: (b, a))
    matrix = jax.ShapeDtypeStruct((SIZE, SIZE), jnp.bfloat16)
    return _kernel(
        body,
        (*(sides if first else sides[::-1]), SIZE // k),
        [((m, k), lambda a, b, c: (ij(a, b)[0], c)), ((k, n), lambda a, b, c: (c, ij(a, b)[1]))],
        ((m, n), lambda a, b, c: ij(a, b)),
        [(m, n)],
        (matrix, matrix),
        matrix,
        2.0 * SIZE**3,
        tiles["limit"],
    )


def attention(tiles: Tiles) -> Kernel:
    """Return the kernel of attention with an online softmax (Dao et al. 2022), by windows of queries and of keys."""
    heads, queries, keys = (tiles[name] for name in ("heads", "queries", "keys"))

    def body(q: Any, k: Any, v: Any, out: Any, most: Any, total: Any, mixed: Any) -> None:  # noqa: ANN401 - references
        @pl.when(pl.program_id(2) == 0)
        def _() -> None:
            most[...] = jnp.full_like(most, -jnp.inf)
            total[...] = jnp.zeros_like(total)
            mixed[...] = jnp.zeros_like(mixed)

        dot = partial(jnp.einsum, preferred_element_type=jnp.float32)
        scores = dot("hqd,hkd->hqk", q[...], k[...]) * WIDTH**-0.5
        top = jnp.maximum(most[...], scores.max(-1, keepdims=True))
        shares, fade = jnp.exp(scores - top), jnp.exp(most[...] - top)
        total[...] = fade * total[...] + shares.sum(-1, keepdims=True)
        mixed[...] = fade * mixed[...] + dot("hqk,hkd->hqd", shares.astype(v.dtype), v[...])
        most[...] = top

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _() -> None:
            out[...] = (mixed[...] / total[...]).astype(out.dtype)

    array = jax.ShapeDtypeStruct((HEADS, LENGTH, WIDTH), jnp.bfloat16)
    at_query, at_key = (lambda h, i, j: (h, i, 0)), (lambda h, i, j: (h, j, 0))
    window, along = (heads, queries, WIDTH), (heads, keys, WIDTH)
    return _kernel(
        body,
        (HEADS // heads, LENGTH // queries, LENGTH // keys),
        [(window, at_query), (along, at_key), (along, at_key)],
        (window, at_query),
        [(heads, queries, 1), (heads, queries, 1), window],
        (array, array, array),
        array,
        4.0 * HEADS * LENGTH * LENGTH * WIDTH,
        tiles["limit"],
    )
