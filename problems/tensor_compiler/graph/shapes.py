"""Costs of an operation that follow from its attributes and shapes, in any layout: work and reuse of operands."""

from __future__ import annotations

import math
import re

from ..hlo.module import Shape
from ..hlo.opcodes import OPAQUE_OPERATIONS, PRODUCTS, VECTOR_OPERATIONS, Kind
from .flatten import Operation
from .graph import Read
from .layouts import SUBLANES


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
    if node.kind is Kind.REDUCE:
        return float(count) * _windowed(node)
    if node.kind is Kind.OPAQUE:
        return OPAQUE_OPERATIONS * max([count, *map(elements, node.inputs)])
    if node.opcode == "dynamic-update-slice" and len(node.inputs) > 1:
        count = elements(node.inputs[1])
    return VECTOR_OPERATIONS.get(node.opcode, 0.0) * count


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
    groups = math.prod(left.dims[d] for d in numbers(attribute(node, "lhs_batch_dims")))
    depth = math.prod(left.dims[d] for d in numbers(attribute(node, "lhs_contracting_dims")))
    rows, columns = (elements(side) / max(1, groups * depth) for side in (left, right))
    # Each row of a ragged product meets the weights of one group only.
    columns /= max(1, math.prod(right.dims[d] for d in numbers(attribute(node, "rhs_group_dims"))))
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


def _output(node: Operation) -> tuple[int, int]:
    """Return the features and the pixels of a convolution's result."""
    labels = attribute(node, "dim_labels").partition("->")[2]
    if "f" not in labels or len(labels) != len(node.shape.dims):
        return 1, elements(node.shape)
    sizes = dict(zip(labels, node.shape.dims, strict=True))
    return sizes["f"], math.prod(size for label, size in sizes.items() if label.isdigit())


def positions(node: Operation) -> tuple[int, int, int]:
    """Return the batches, the taps, and the factor by which taps fall on zeros that dilation inserted into the input.

    XLA:TPU writes a batch of n products as a window of n that covers one element of the dilated input at each position.
    """
    sizes = window(node, "size")
    strides, dilations = (window(node, key) or [1] * len(sizes) for key in ("stride", "lhs_dilate"))
    padded = re.search(r"pad=([-\dx_]+)", attribute(node, "window"))
    pads = padded[1].split("x") if padded else ["0_0"] * len(sizes)
    batches = taps = dilation = 1
    for n, stride, dilate, pad in zip(sizes, strides, dilations, pads, strict=True):
        if n > 1 and (stride, dilate, pad) in ((n - 1, n, "0_0"), (n, n - 1, f"{n - 1}_{n - 1}")):
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


def numbers(text: str) -> list[int]:
    """Return the numbers in an attribute such as `{0,3}`."""
    return [int(n) for n in re.findall(r"-?\d+", text)]


def window(node: Operation, key: str) -> list[int]:
    """Return one list of a `window={size=3x3 stride=2x2}` attribute, empty if it is missing."""
    found = re.search(rf"(?<![\w]){key}=(\d+(?:x\d+)*)", attribute(node, "window"))
    return [int(n) for n in found[1].split("x")] if found else []


def attribute(node: Operation, key: str) -> str:
    """Return the text of an attribute, empty if it is missing."""
    return node.source.attributes.get(key, "") if node.source else ""
