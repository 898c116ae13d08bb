"""The pipelines, as Halide algorithms; what is computed, not how. Needs halide.

A function takes a generator for its inputs and returns all its names: a schedule is text that speaks of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import halide as hl
import numpy as np

Names = dict[str, Any]


def _image(rng: np.random.Generator, *shape: int) -> hl.Buffer:
    """Return random numbers in [0, 1), float32; Halide names the axes of a shape from the last to the first."""
    image = hl.Buffer(hl.Float(32), list(shape[::-1]))  # Halide's own memory: a pipeline does not keep numpy's alive
    np.asarray(image)[:] = rng.random(shape, np.float32)
    return image


def _axes(names: str) -> list[hl.Var]:
    return [hl.Var(name) for name in names.split()]


def blur(rng: np.random.Generator) -> Names:
    """A binomial blur of 3 x 3 in two passes."""
    image = hl.BoundaryConditions.repeat_edge(_image(rng, 1024, 1536))
    x, y = _axes("x y")
    blur_x, blur_y = hl.Func("blur_x"), hl.Func("blur_y")
    blur_x[x, y] = 0.25 * image[x - 1, y] + 0.5 * image[x, y] + 0.25 * image[x + 1, y]
    blur_y[x, y] = 0.25 * blur_x[x, y - 1] + 0.5 * blur_x[x, y] + 0.25 * blur_x[x, y + 1]
    return locals()


def unsharp(rng: np.random.Generator) -> Names:
    """Unsharp masking of a colour image by a Gaussian of its brightness, as in Halide's apps/unsharp."""
    image = hl.BoundaryConditions.repeat_edge(_image(rng, 3, 512, 768))
    x, y, c = _axes("x y c")
    weight = [float(w) for w in np.exp(-(np.arange(4) ** 2) / 4.5)]
    gray, blur_y, blur_x, ratio, sharp = (hl.Func(n) for n in ("gray", "blur_y", "blur_x", "ratio", "sharp"))
    gray[x, y] = 0.299 * image[x, y, 0] + 0.587 * image[x, y, 1] + 0.114 * image[x, y, 2]
    blur_y[x, y] = weight[0] * gray[x, y] + sum(weight[d] * (gray[x, y - d] + gray[x, y + d]) for d in (1, 2, 3))
    blur_x[x, y] = weight[0] * blur_y[x, y] + sum(weight[d] * (blur_y[x - d, y] + blur_y[x + d, y]) for d in (1, 2, 3))
    scale = 1.0 / (weight[0] + 2 * sum(weight[1:])) ** 2
    ratio[x, y] = (2 * gray[x, y] - scale * blur_x[x, y]) / (gray[x, y] + 0.01)
    sharp[x, y, c] = ratio[x, y] * image[x, y, c]
    return locals()


def harris(rng: np.random.Generator) -> Names:
    """The corner detector of Harris and Stephens (1988), as in Halide's apps/harris."""
    image = hl.BoundaryConditions.repeat_edge(_image(rng, 3, 512, 768))
    x, y = _axes("x y")
    gray, ix, iy, ixx, iyy, ixy, sxx, syy, sxy, corner = (
        hl.Func(n) for n in ("gray", "ix", "iy", "ixx", "iyy", "ixy", "sxx", "syy", "sxy", "corner")
    )
    gray[x, y] = 0.299 * image[x, y, 0] + 0.587 * image[x, y, 1] + 0.114 * image[x, y, 2]
    for slope, (dx, dy) in ((ix, (1, 0)), (iy, (0, 1))):
        sides = ((-1, 1 / 12), (0, 2 / 12), (1, 1 / 12))
        slope[x, y] = sum(
            weight * (gray[x + dx + dy * t, y + dy + dx * t] - gray[x - dx + dy * t, y - dy + dx * t])
            for t, weight in sides
        )
    for product, (a, b) in ((ixx, (ix, ix)), (iyy, (iy, iy)), (ixy, (ix, iy))):
        product[x, y] = a[x, y] * b[x, y]
    for total, product in ((sxx, ixx), (syy, iyy), (sxy, ixy)):
        total[x, y] = sum(product[x + dx, y + dy] for dy in (-1, 0, 1) for dx in (-1, 0, 1))
    trace = sxx[x, y] + syy[x, y]
    corner[x, y] = sxx[x, y] * syy[x, y] - sxy[x, y] * sxy[x, y] - 0.04 * trace * trace
    return locals()


def pyramid(rng: np.random.Generator) -> Names:
    """Detail is amplified in a Laplacian pyramid of three levels (after Burt and Adelson 1983)."""
    image = hl.BoundaryConditions.repeat_edge(_image(rng, 1024, 1024))
    x, y = _axes("x y")
    half_1, level_1, half_2, level_2, detail, merged = (
        hl.Func(n) for n in ("half_1", "level_1", "half_2", "level_2", "detail", "merged")
    )
    taps = ((-1, 0.125), (0, 0.375), (1, 0.375), (2, 0.125))
    for half, level, source in ((half_1, level_1, image), (half_2, level_2, half_1)):
        finer = source if source is image else level_1
        half[x, y] = sum(w * finer[2 * x + d, y] for d, w in taps)
        level[x, y] = sum(w * half[x, 2 * y + d] for d, w in taps)

    def up(coarse: hl.Func) -> hl.Expr:
        near, far = (lambda v: v // 2), (lambda v: v // 2 - 1 + 2 * (v % 2))
        rows = [0.75 * coarse[near(x), row] + 0.25 * coarse[far(x), row] for row in (near(y), far(y))]
        return 0.75 * rows[0] + 0.25 * rows[1]

    detail[x, y] = 1.5 * level_1[x, y] - 0.5 * up(level_2)
    merged[x, y] = 1.5 * (image[x, y] - up(level_1)) + up(detail)
    return locals()


def matmul(rng: np.random.Generator) -> Names:
    """A layer of a neural network: max(0, A B + bias); B may be copied into another order first."""
    left, right, bias = _image(rng, 384, 384), _image(rng, 384, 384), _image(rng, 384)
    x, y = _axes("x y")
    k = hl.RDom([(0, 384)], "k")
    packed, product, relu = hl.Func("packed"), hl.Func("product"), hl.Func("relu")
    packed[x, y] = right[x, y]
    product[x, y] = 0.0
    product[x, y] += left[k, y] * packed[x, k]
    relu[x, y] = hl.max(0.0, product[x, y] + bias[x] - 96.0)
    return locals()


def conv(rng: np.random.Generator) -> Names:
    """A convolution of 3 x 3, 32 to 32 channels, with bias and relu; channels lie innermost."""
    image = hl.BoundaryConditions.repeat_edge(_image(rng, 48, 48, 32))
    weights, bias = _image(rng, 3, 3, 32, 32), _image(rng, 32)
    c, x, y = _axes("c x y")
    k = hl.RDom([(0, 32), (0, 3), (0, 3)], "k")
    padded, product, relu = hl.Func("padded"), hl.Func("product"), hl.Func("relu")
    padded[c, x, y] = image[c, x, y]
    product[c, x, y] = 0.0
    product[c, x, y] += weights[c, k.x, k.y, k.z] * padded[k.x, x + k.y - 1, y + k.z - 1]
    relu[c, x, y] = hl.max(0.0, product[c, x, y] + bias[c] - 72.0)
    return locals()


ALGORITHMS: dict[str, Callable[[np.random.Generator], Names]] = {
    function.__name__: function for function in (blur, unsharp, harris, pyramid, matmul, conv)
}
