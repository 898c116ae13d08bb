"""What attributes and shapes of an operation mean for its cost: work, reuse of operands, bytes in memory."""

from __future__ import annotations

import math
import re

from .flatten import Node
from .hlo_types import Shape
from .opcodes import OPAQUE_OPERATIONS, VECTOR_OPERATIONS, Kind, bytes_of

LANES, SUBLANES = 128, 8
"""The tile of the two minor dimensions that arrays are padded to in memory (XLA:TPU, Tiled layout)."""


def elements(shape: Shape) -> int:
    """Return the number of elements of an array, or of all arrays of a tuple."""
    if shape.dtype == "tuple":
        return sum(elements(part) for part in shape.elements)
    return math.prod(shape.dims)


def padded_bytes(shape: Shape) -> float:
    """Return the bytes of a result in memory, in the layout that pads it least.

    The two minor dimensions are padded to whole tiles. Until layouts are chosen by a pass of their own, the compiler
    is taken to put the two dimensions there that fit best.
    """
    if shape.dtype == "tuple":
        return sum(padded_bytes(part) for part in shape.elements)
    dims = [d for d in shape.dims if d != 1]
    size = math.prod(dims) * bytes_of(shape.dtype)
    if len(dims) < 2 or size == 0:
        return -(-size // 512) * 512  # vectors are packed densely
    rows = SUBLANES * max(1, round(4 / max(bytes_of(shape.dtype), 0.5)))
    growth = sorted((_padding(minor, LANES) * _padding(second, rows), minor, second) for minor, second in _pairs(dims))
    return size * growth[0][0]


def _pairs(dims: list[int]) -> list[tuple[int, int]]:
    distinct = sorted(set(dims))
    return [(a, b) for a in distinct for b in distinct if a != b or dims.count(a) > 1]


def _padding(size: int, tile: int) -> float:
    return -(-size // tile) * tile / size


def is_bitcast(node: Node) -> bool:
    """Does the operation only rename dimensions, so that the result can lie where the operand does?"""
    if len(node.inputs) != 1:
        return False
    operand = node.inputs[0]
    before, after = [d for d in operand.dims if d != 1], [d for d in node.shape.dims if d != 1]
    if node.opcode == "broadcast":
        return before == after
    if node.opcode == "transpose":
        order = [d for d in numbers(_attribute(node, "dimensions")) if operand.dims[d] != 1]
        return order == sorted(order)
    if node.opcode != "reshape":
        return False
    if before == after:
        return True
    # Merging or splitting major dimensions keeps every tile whole if the rows of tiles stay aligned.
    minor = before[-1:] == after[-1:] and before[-1:] != []
    return minor and all(len(dims) < 2 or dims[-2] % SUBLANES == 0 for dims in (before, after))


def operations(node: Node) -> float:
    """Return the vector operations of the whole result."""
    count = elements(node.shape)
    if node.kind is Kind.MATRIX:
        return 0.0
    if node.opcode == "reduce":
        return float(max([count, *map(elements, node.inputs)])) * (2.0 if _reduces_lanes(node) else 1.0)
    if node.kind is Kind.REDUCE:
        return float(count) * math.prod(window(node, "size") or [1])
    if node.kind is Kind.OPAQUE:
        return OPAQUE_OPERATIONS * max([count, *map(elements, node.inputs)])
    return VECTOR_OPERATIONS.get(node.opcode, 0.0) * count


def _reduces_lanes(node: Node) -> bool:
    """Does a reduction run along the minor dimension, which takes shuffles between lanes?"""
    return bool(node.inputs) and len(node.inputs[0].dims) - 1 in numbers(_attribute(node, "dimensions"))


def extents(node: Node) -> tuple[float, float, float]:
    """Return outer extent, rows and columns of what a loop over the node walks: its result, a reduction's input."""
    dims = node.inputs[0].dims if node.kind is Kind.REDUCE and node.inputs else node.shape.dims
    if node.shape.dtype == "tuple":
        return 1.0, 1.0, float(max(1, elements(node.shape)))
    rows, columns = (1, 1, *dims)[-2:]
    return float(max(1, math.prod(dims[:-2]))), float(max(1, rows)), float(max(1, columns))


def matrix(node: Node) -> tuple[float, float, float, float]:
    """Return groups, rows, columns and depth of a dot or convolution; zeros for anything else.

    Multiplied, they are the multiply-adds; a convolution's rows are output pixels, its depth window times features.
    """
    if node.kind is not Kind.MATRIX or len(node.inputs) < 2:
        return 0.0, 0.0, 0.0, 0.0
    left, right, result = node.inputs[0], node.inputs[1], node.shape
    if node.opcode == "dot":
        groups = math.prod(left.dims[d] for d in numbers(_attribute(node, "lhs_batch_dims")))
        depth = math.prod(left.dims[d] for d in numbers(_attribute(node, "lhs_contracting_dims")))
        rows = elements(left) / max(1, groups * depth)
        return float(groups), rows, elements(right) / max(1, groups * depth), float(depth)
    labels = _attribute(node, "dim_labels")
    features, groups = _feature_dim(labels, result), int(_attribute(node, "feature_group_count") or 1)
    groups *= int(_attribute(node, "batch_group_count") or 1)
    taps = elements(right) / max(1, features) / _dilated(node)
    return float(groups), elements(result) / max(1, features), features / groups, taps


def _feature_dim(labels: str, result: Shape) -> int:
    output = labels.partition("->")[2]
    return result.dims[output.index("f")] if "f" in output and len(output) == len(result.dims) else 1


def _dilated(node: Node) -> int:
    """Return the factor by which zeros inserted into the input make window positions void."""
    return math.prod(window(node, "lhs_dilate") or [1])


def reuse(node: Node, place: int) -> float:
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


def read_bytes(node: Node, place: int) -> float:
    """Return the bytes that reading an operand from memory moves."""
    whole = padded_bytes(node.inputs[place])
    if node.opcode in ("slice", "dynamic-slice", "gather") and place == 0:
        return min(whole, padded_bytes(node.shape))
    if node.opcode == "dynamic-update-slice" and place == 0:
        return 0.0  # updated where it lies
    return whole


def written_bytes(node: Node) -> float:
    """Return the bytes of the result in memory; an update in place writes only what is new."""
    if node.opcode == "dynamic-update-slice" and len(node.inputs) > 1:
        return padded_bytes(node.inputs[1])
    return padded_bytes(node.shape)


def numbers(text: str) -> list[int]:
    """Return the numbers in an attribute such as `{0,3}`."""
    return [int(n) for n in re.findall(r"-?\d+", text)]


def window(node: Node, key: str) -> list[int]:
    """Return one list of a `window={size=3x3 stride=2x2}` attribute, empty if it is not there."""
    found = re.search(rf"(?<![\w]){key}=(\d+(?:x\d+)*)", _attribute(node, "window"))
    return [int(n) for n in found[1].split("x")] if found else []


def _attribute(node: Node, key: str) -> str:
    return node.source.attributes.get(key, "") if node.source else ""
