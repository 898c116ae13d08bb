"""What attributes and shapes of an operation mean for its cost in any layout: work, and reuse of operands."""

from __future__ import annotations

import math
import re

from .flatten import Node
from .graph import Read
from .hlo_types import Shape
from .opcodes import OPAQUE_OPERATIONS, VECTOR_OPERATIONS, Kind


def elements(shape: Shape) -> int:
    """Return the number of elements of an array, or of all arrays of a tuple."""
    if shape.dtype == "tuple":
        return sum(elements(part) for part in shape.elements)
    return math.prod(shape.dims)


def operations(node: Node) -> float:
    """Return the vector operations of the whole result, where the layout suits the operation."""
    count = elements(node.shape)
    if node.kind is Kind.MATRIX:
        return 0.0
    if node.opcode == "reduce":
        return float(max([count, *map(elements, node.inputs)]))
    if node.kind is Kind.REDUCE:
        return float(count) * math.prod(window(node, "size") or [1])
    if node.kind is Kind.OPAQUE:
        return OPAQUE_OPERATIONS * max([count, *map(elements, node.inputs)])
    return VECTOR_OPERATIONS.get(node.opcode, 0.0) * count


def matrix(node: Node) -> tuple[float, float, float, float]:
    """Return groups, rows, columns and depth of a dot or convolution; zeros for anything else.

    Multiplied, they are the multiply-adds; a convolution's rows are output pixels, its depth window times features.
    """
    if node.kind is not Kind.MATRIX or len(node.inputs) < 2:
        return 0.0, 0.0, 0.0, 0.0
    left, right, result = node.inputs[0], node.inputs[1], node.shape
    if node.opcode == "dot":
        groups = math.prod(left.dims[d] for d in numbers(attribute(node, "lhs_batch_dims")))
        depth = math.prod(left.dims[d] for d in numbers(attribute(node, "lhs_contracting_dims")))
        rows = elements(left) / max(1, groups * depth)
        return float(groups), rows, elements(right) / max(1, groups * depth), float(depth)
    labels = attribute(node, "dim_labels")
    features, groups = _feature_dim(labels, result), int(attribute(node, "feature_group_count") or 1)
    groups *= int(attribute(node, "batch_group_count") or 1)
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


def reads(node: Node, place: int) -> Read:
    """Return how much of an operand in memory is read."""
    if node.opcode in ("slice", "dynamic-slice", "gather") and place == 0:
        return Read.RESULT
    if node.opcode == "dynamic-update-slice" and place == 0:
        return Read.NOTHING  # updated where it lies
    return Read.ALL


def numbers(text: str) -> list[int]:
    """Return the numbers in an attribute such as `{0,3}`."""
    return [int(n) for n in re.findall(r"-?\d+", text)]


def window(node: Node, key: str) -> list[int]:
    """Return one list of a `window={size=3x3 stride=2x2}` attribute, empty if it is not there."""
    found = re.search(rf"(?<![\w]){key}=(\d+(?:x\d+)*)", attribute(node, "window"))
    return [int(n) for n in found[1].split("x")] if found else []


def attribute(node: Node, key: str) -> str:
    """Return the text of an attribute, empty if it is not there."""
    return node.source.attributes.get(key, "") if node.source else ""
