"""Costs of an operation that follow from its attributes and shapes, in any layout: work and reuse of operands."""

from __future__ import annotations

import math
import re

from ..hardware.kernel_row import DEEP
from ..hardware.machine import COST_MODEL, KERNEL_TIMES
from ..hlo.module import Shape, Unfit
from ..hlo.opcodes import KINDS, NAMED, OPAQUE_OPERATIONS, PRODUCTS, VECTOR_OPERATIONS, Kind, bytes_of
from .flatten import Operation
from .graph import Read
from .layouts import LANES, SUBLANES, padding

# Fitted to XLA:TPU's estimates for v5e of convolutions that were made up for it.
_LOADING = 4.0  # columns that are loaded into the matrix unit while one row passes
_ARRANGING = 6  # blocks that could be computed while taps are laid side by side

_PLACES = {
    "dimensions": 0,
    "lhs_batch_dims": 0,
    "rhs_batch_dims": 1,
    "lhs_contracting_dims": 0,
    "rhs_contracting_dims": 1,
    "rhs_group_dims": 1,
}
"""Which operand has the dimensions that an attribute names; those of a broadcast are its result's."""
_ALONG_ONE = ("all-gather", "concatenate", "reduce-scatter", "sort")


def check(node: Operation) -> None:
    """Check that the dimensions that a node's attributes name are those of its arrays.

    Raises:
      Unfit: they are not.
    """
    for key, place in _PLACES.items():
        if (text := attribute(node, key)) and node.opcode in NAMED:
            _check_dimensions(node, text, node.inputs[place], key)
    if node.opcode == "dot" and len(node.inputs) == 2:  # a sparse one has a third
        _check_dot(node)
    if node.opcode == "convolution":
        _check_convolution(node)
    if node.opcode in ("reduce-window", "select-and-scatter"):
        _check_window(node, len(node.inputs[0].dims))


def _check_dimensions(node: Operation, text: str, operand: Shape, key: str) -> None:
    named, rank = numbers(node, key), len((node.shape if node.opcode == "broadcast" else operand).dims)
    if len(set(named)) < len(named) or max(named, default=-1) >= rank:
        raise Unfit(f"{key}={text} are not different dimensions of an array that has {rank}")
    count = 1 if node.opcode in _ALONG_ONE else len(operand.dims)
    if node.opcode in (*_ALONG_ONE, "broadcast", "transpose") and len(named) != count:
        raise Unfit(f"{key}={text} should name {count}")


def _check_dot(node: Operation) -> None:
    left, right = (
        [shape.dims[d] for key in ("batch", "contracting") for d in numbers(node, f"{side}_{key}_dims")]
        for side, shape in zip(("lhs", "rhs"), node.inputs, strict=True)
    )
    if left != right:
        raise Unfit("the dimensions that it contracts, or those of its batch, have different sizes")


def _check_convolution(node: Operation) -> None:
    text, rank = attribute(node, "dim_labels"), len(node.shape.dims)
    axes = {str(axis) for axis in range(rank - 2)}
    parts = zip((*node.inputs[:2], node.shape), re.split("_|->", text), ("bf", "io", "bf"), strict=True)
    if any(len(labels) != len(shape.dims) or {*labels} != {*own, *axes} for shape, labels, own in parts):
        raise Unfit(f"dim_labels={text} are not those of its operands and its result")
    _check_window(node, rank - 2)


def _check_window(node: Operation, count: int) -> None:
    sizes = window(node, "size")
    if sizes and len(sizes) != count:
        raise Unfit(f"its window is of rank {len(sizes)} where it should be of rank {count}")


def elements(shape: Shape) -> int:
    """Return the number of elements of an array, or of all arrays of a tuple."""
    if shape.dtype == "tuple":
        return sum(elements(part) for part in shape.elements)
    return math.prod(shape.dims)


def operations(node: Operation) -> float:
    """Return the vector operations of the whole result, if the layout suits the operation."""
    count = elements(node.shape)
    if node.opcode in PRODUCTS:
        return 0.0
    if node.opcode == "reduce":
        return float(max([count, *map(elements, node.inputs)]))
    if KINDS.get(node.opcode) is Kind.REDUCE:  # with several results too, though it is a kernel of its own then
        return float(count) * _windowed(node)
    if node.kind is Kind.OPAQUE:
        return max(OPAQUE_OPERATIONS * max([count, *map(elements, node.inputs)]), _textbook(node) * count)
    if node.opcode == "dynamic-update-slice" and len(node.inputs) > 1:
        count = elements(node.inputs[1])
    return VECTOR_OPERATIONS.get(node.opcode, 0.0) * count


def _textbook(node: Operation) -> float:
    """Return the operations per element of a result that takes more of them the larger it is, 0 for any other."""
    if node.opcode == "fft":
        return 5 * math.log2(max(1, math.prod(numbers(node, "fft_length"))))
    share = {"cholesky": 1 / 3, "triangular-solve": 1.0}.get(node.opcode, 0.0)
    return share * node.inputs[0].dims[-1] if share else 0.0


def _windowed(node: Operation) -> int:
    """Return how many elements each result of a window combines; a fully covered dimension counts as one."""
    sizes = window(node, "size") or [1]
    whole = node.inputs[0].dims if node.inputs else ()
    if len(whole) != len(sizes):
        return math.prod(sizes)
    return math.prod(size for size, n in zip(sizes, whole, strict=True) if size < 2 * n - 1)


def walked(node: Operation) -> Shape:
    """Return the shape over which the node's loop runs: its result, a reduction's input, or the written update."""
    if node.opcode == "reduce" and node.inputs:
        return node.inputs[0]
    if node.opcode == "dynamic-update-slice" and len(node.inputs) > 1:
        return node.inputs[1]
    return node.shape


def made(node: Operation) -> Shape:
    """Return the shape of the data that a kernel of its own makes: its result, or the largest operand that it sends."""
    sends = node.kind is Kind.OPAQUE and node.inputs and (node.shape.dtype == "token" or not elements(node.shape))
    return max(node.inputs, key=elements) if sends else node.shape


def matrix(node: Operation) -> tuple[float, float, float, float, float]:
    """Return groups, rows, columns, depth and taps of a matrix product or convolution; zeros for anything else.

    Multiplied, they are the multiply-adds. A convolution's rows are output pixels, and it adds up one product for each
    tap, a position of its window.
    """
    if node.opcode not in PRODUCTS:
        return 0.0, 0.0, 0.0, 0.0, 0.0
    if node.opcode == "convolution":
        return _convolution(node)
    left, right = node.inputs[0], node.inputs[1]
    groups = math.prod(left.dims[d] for d in numbers(node, "lhs_batch_dims"))
    depth = math.prod(left.dims[d] for d in numbers(node, "lhs_contracting_dims"))
    rows, columns = (elements(side) / max(1, groups * depth) for side in (left, right))
    # Each row of a ragged product meets the weights of one group only.
    columns /= max(1, math.prod(right.dims[d] for d in numbers(node, "rhs_group_dims")))
    return float(groups), rows, columns, float(depth), 1.0


def _convolution(node: Operation) -> tuple[float, float, float, float, float]:
    """Return the five numbers of a convolution.

    If there are more taps than pixels (the gradient of a filter), all taps are laid side by side as one depth; if the
    input has few features (an image), the taps of a row of the window are.
    """
    features, pixels = _output(node)
    groups = int(attribute(node, "feature_group_count") or 1) * int(attribute(node, "batch_group_count") or 1)
    batches, taps, dilation = positions(node)
    rows = elements(node.shape) / max(1, features * batches)
    depth = elements(node.inputs[1]) / max(1, features * batches) / dilation
    if pixels / batches < taps:
        taps = 1
    elif depth / taps <= 2 * SUBLANES and groups * batches == 1 < taps:
        taps //= window(node, "size")[-1]
    return float(groups * batches), rows, features / groups, depth / taps, float(taps)


def on_matrix_unit(node: Operation) -> tuple[float, float, float, float, float]:
    """Return the five numbers of `matrix` as XLA:TPU lays a product on the matrix unit.

    Usually the filter lies in the unit and pixels pass through it. If that takes less time, the images of the batch lie
    there, side by side, and the features of the result pass; not so in a plain product, of one pixel and tap. The
    gradient of a filter by channel hardly uses the unit: see `on_vector_unit`.
    """
    groups, rows, columns, depth, taps = found = matrix(node)
    if _is_gradient_by_channel(node):
        return 1.0, rows, groups * columns, depth * taps, 1.0
    turns = node.opcode == "convolution" and groups == 1 and _output(node)[1] * positions(node)[1] > 1
    laid = min(found, _turned(node), key=_pushes) if turns else found
    return (*laid[:4], laid[4] * _passes(node))


_PARTS = {"default": 1, "high": 2, "highest": 3}
"""Numbers of 16 bits to which a factor of 32 bits is split."""
_COMPLEX = 3
"""Real products that make a complex one."""


def _passes(node: Operation) -> int:
    """Return how often a product passes through the matrix unit, whose factors have 16 bits, as XLA:TPU computes it."""
    types = [shape.dtype for shape in node.inputs[:2]]
    if all(bytes_of(dtype) <= 2 for dtype in types):
        return 1
    return _products_of_parts(node) * (_COMPLEX if "c64" in types else 1)


def _products_of_parts(node: Operation) -> int:
    """Return how many products of parts of two factors are added up; those of small parts are left out."""
    if named := re.search(r"_x(\d)$", attribute(node, "algorithm")):
        return int(named[1])
    words = re.findall(r"\w+", attribute(node, "operand_precision"))
    one, other = (_PARTS.get(word, 1) for word in (*words, "default", "default")[:2])
    return sum(i + j < max(one, other) for i in range(one) for j in range(other))


def on_vector_unit(node: Operation) -> float:
    """Return the vector operations of a product that XLA:TPU computes there: a gradient of a filter by channel.

    Channels lie in lanes; or images do, and channels in sublanes, if that pads less.
    """
    if not _is_gradient_by_channel(node):
        return 0.0
    channels, images = _output(node)[0], node.inputs[1].dims[attribute(node, "dim_labels").partition("_")[2].index("i")]
    padded = min(padding(channels, LANES), padding(channels, SUBLANES) * padding(images, LANES))
    return 2 * math.prod(matrix(node)) * padded


def cost_model(node: Operation) -> int:
    """Return the version of the cost model that last changed the cost of an operation like this one."""
    return KERNEL_TIMES if on_matrix_unit(node) == matrix(node) else COST_MODEL


def _turned(node: Operation) -> tuple[float, float, float, float, float]:
    """Return a convolution with the images in the matrix unit: each tap has a block of its own.

    If the result is larger than the window, the images are loaded again for each pixel, or all taps of an input with
    few features are laid side by side first.
    """
    features, pixels = _output(node)
    taps = positions(node)[1]
    images = elements(node.shape) / max(1, features * pixels)
    depth = elements(node.inputs[1]) / max(1, features * taps)
    passing, arranged = float(features), _ARRANGING + math.ceil(depth * taps / LANES)
    if depth <= 2 * SUBLANES and arranged < taps <= pixels:
        taps = arranged
    elif taps <= pixels:
        passing = max(passing, min(images, LANES) / _LOADING)
    return 1.0, pixels * _whole(passing, SUBLANES), images, _whole(depth, LANES), float(taps)


def _pushes(product: tuple[float, float, float, float, float]) -> float:
    """Return how many rows pass through the matrix unit, over all blocks that lie in it."""
    _, rows, columns, depth, taps = product
    blocks = math.ceil(depth * taps / LANES) if depth >= DEEP else math.ceil(depth / LANES) * taps
    return max(_whole(rows, SUBLANES), LANES / _LOADING) * math.ceil(columns / LANES) * blocks


def _whole(size: float, tile: int) -> float:
    return float(math.ceil(size / tile) * tile)


def _is_gradient_by_channel(node: Operation) -> bool:
    """True for the gradient of a filter that has one channel for each group."""
    groups = int(attribute(node, "batch_group_count") or 1)
    return groups > 1 and node.opcode == "convolution" and _output(node)[0] == groups


def _output(node: Operation) -> tuple[int, int]:
    """Return the features and the pixels of a convolution's result."""
    labels = attribute(node, "dim_labels").partition("->")[2]
    sizes = dict(zip(labels, node.shape.dims, strict=True))
    return sizes["f"], math.prod(size for label, size in sizes.items() if label.isdigit())


def positions(node: Operation) -> tuple[int, int, int]:
    """Return the batches, the taps, and the factor by which taps fall on zeros that dilation inserted into the input.

    XLA:TPU writes a batch of n products as a window of n that covers one element of the dilated input at each position.
    """
    sizes, labels = window(node, "size"), attribute(node, "dim_labels").partition("_")[0]
    strides, dilations = (window(node, key) or [1] * len(sizes) for key in ("stride", "lhs_dilate"))
    pads = _window(node).get("pad", ["0_0"] * len(sizes))
    batches = taps = dilation = 1
    for i, (n, stride, dilate, pad) in enumerate(zip(sizes, strides, dilations, pads, strict=True)):
        whole = node.inputs[0].dims[labels.index(str(i))] == n
        if whole and n > 1 and (stride, dilate, pad) in ((n - 1, n, "0_0"), (n, n - 1, f"{n - 1}_{n - 1}")):
            batches *= n
        else:
            taps, dilation = taps * n, dilation * dilate
    return batches, taps, dilation


def reuse(node: Operation, place: int) -> float:
    """Return how often each element of an operand is used while the whole result is computed once.

    Passes over the operands of a matrix product depend on its tiles and are not counted here.
    """
    there, here = max(1, elements(node.inputs[place])), elements(node.shape)
    if node.kind is Kind.BROADCAST:
        return max(1.0, here / there)
    if node.opcode in ("slice", "dynamic-slice", "gather"):
        return here / there if place == 0 else 1.0
    if node.opcode in ("reduce-window", "select-and-scatter") and place == 0:
        return max(1.0, math.prod(window(node, "size") or [1]) / math.prod(window(node, "stride") or [1]))
    return 1.0


def reads(node: Operation, place: int) -> Read:
    """Return how much of an operand in memory is read."""
    if node.opcode in ("slice", "dynamic-slice", "gather") and place == 0:
        return Read.RESULT
    if node.opcode == "dynamic-update-slice" and place == 0:
        return Read.NOTHING  # updated where it lies
    return Read.ALL


def numbers(node: Operation, key: str) -> list[int]:
    """Return the numbers of an attribute such as `dimensions={0,3}`, none if it is missing."""
    return node.source.numbers(key) if node.source else []


def window(node: Operation, key: str) -> list[int]:
    """Return one list of a `window={size=3x3 stride=2x2}` attribute, empty if it is missing."""
    return [int(n) for n in _window(node).get(key, [])]


def _window(node: Operation) -> dict[str, list[str]]:
    return node.source.window if node.source else {}


def attribute(node: Operation, key: str) -> str:
    """Return the text of an attribute, empty if it is missing."""
    return node.source.attributes.get(key, "") if node.source else ""
