"""The states of an operation: each has a layout of the result and the wanted layouts of the operands."""

from __future__ import annotations

from typing import NamedTuple

from ..hlo.module import Shape
from ..hlo.opcodes import SHUFFLE_OPERATIONS, Kind
from . import shapes
from .flatten import Operation
from .layouts import Layout, compact, completed, layouts, real_dims

ANY = -1
"""The wanted layout of an operand that may have any layout."""

# Vector operations per element, added to the cost of the opcode or in place of it.
RELAYOUT = SHUFFLE_OPERATIONS  # a transpose, or a copy whose minor dimension changes
RESTACK = 1.0  # a copy that keeps the minor dimension
LANE_SHIFT = 8.0  # a slice or concatenation along the minor dimension
_LANES_FACTOR, _SUBLANES_FACTOR = 2.0, 1.25  # a reduction along the minor dimension, along the second

_SAME_RANK = (
    "slice",
    "dynamic-slice",
    "dynamic-update-slice",
    "pad",
    "concatenate",
    "reverse",
    "reduce-window",
    "select-and-scatter",
)


class NodeState(NamedTuple):
    """One way in which an operation can work.

    Attributes:
      result: number of the result's layout.
      wanted: numbers of the operands' layouts, ANY for an operand that may have any layout.
      work: vector operations for the whole result.
      walked: the shape over which its loop runs, and the layout of that shape.
    """

    result: int
    wanted: tuple[int, ...]
    work: float
    walked: tuple[Shape, Layout]


def states(node: Operation) -> list[NodeState]:
    """Return the states of an operation whose layout propagation decides.

    There is one for each layout of the result, in order, or for each layout of a reduction's operand.
    """
    if node.kind in (Kind.SOURCE, Kind.FREE, Kind.OPAQUE):
        wanted = tuple(completed(shape, ()) for shape in node.inputs)
        return [
            NodeState(completed(node.shape, ()), wanted, shapes.operations(node), (node.shape, compact(node.shape)))
        ]
    if node.opcode == "reduce":
        return [_reduce(node, layout) for layout in layouts(node.inputs[0])]
    return [_ordinary(node, number, layout) for number, layout in enumerate(layouts(node.shape))]


def renames(node: Operation) -> bool:
    """True if the operation only renames dimensions, so that its result can share memory with its operand."""
    if len(node.inputs) != 1 or node.kind <= Kind.FREE:
        return False
    if node.opcode in ("transpose", "reshape"):
        return True
    return node.opcode == "broadcast" and _sizes(node.inputs[0]) == _sizes(node.shape)


def is_trivial(node: Operation) -> bool:
    """True if a reshape only adds or drops dimensions of size 1."""
    return _sizes(node.inputs[0]) == _sizes(node.shape)


def _sizes(shape: Shape) -> list[int]:
    return [shape.dims[d] for d in real_dims(shape.dims)]


def _ordinary(node: Operation, number: int, layout: Layout) -> NodeState:
    wanted = tuple(_wanted(node, place, layout) for place in range(len(node.inputs)))
    work, walked = shapes.operations(node), (node.shape, layout)
    if layout and layout[0] in _cut(node):
        work += LANE_SHIFT * shapes.elements(node.shape)
    if node.kind is Kind.REDUCE and wanted and wanted[0] >= 0:
        walked = (node.inputs[0], layouts(node.inputs[0])[wanted[0]])
        work *= _LANES_FACTOR if layout and layout[0] in _cut(node) else 1.0
    if shapes.walked(node) is not node.shape:  # an update in place
        update = shapes.walked(node)
        walked = (update, layouts(update)[completed(update, layout)])
    return NodeState(number, wanted, work, walked)


def _reduce(node: Operation, layout: Layout) -> NodeState:
    """Return the state in which a reduction takes its operand in a layout; the kept dimensions give the result's."""
    gone = shapes.numbers(shapes.attribute(node, "dimensions"))
    kept = [d for d in range(len(node.inputs[0].dims)) if d not in gone]
    start = tuple(kept.index(d) for d in layout if d in kept)
    result = completed(node.shape, start) if len(kept) == len(node.shape.dims) else completed(node.shape, ())
    work = shapes.operations(node)
    if layout:
        work *= _LANES_FACTOR if layout[0] in gone else _SUBLANES_FACTOR if layout[-1] in gone else 1.0
    wanted = (layouts(node.inputs[0]).index(layout), *(completed(shape, ()) for shape in node.inputs[1:]))
    return NodeState(result, wanted, work, (node.inputs[0], layout))


def _wanted(node: Operation, place: int, layout: Layout) -> int:
    """Return the number of the operand's layout that matches a layout of the result."""
    operand = node.inputs[place]
    if len(layouts(operand)) == 1:
        return 0
    there = _dims_there(node, place)
    minor = [there[d] for d in layout[:1] if d in there and operand.dims[there[d]] != 1]
    if not minor:
        return ANY
    return completed(operand, (*minor, *(there[d] for d in layout[1:] if d in there)))


def _dims_there(node: Operation, place: int) -> dict[int, int]:
    """Return for dimensions of the result the matching dimension of an operand, where there is one."""
    operand, result = node.inputs[place], node.shape
    rank = len(operand.dims)
    if node.opcode == "broadcast":
        return {d: i for i, d in enumerate(shapes.numbers(shapes.attribute(node, "dimensions"))) if i < rank}
    if node.opcode == "transpose":
        order = shapes.numbers(shapes.attribute(node, "dimensions"))
        return dict(enumerate(order)) if len(order) == rank else {}
    if node.opcode == "reshape":
        return dict(zip(real_dims(result.dims), real_dims(operand.dims), strict=True)) if is_trivial(node) else {}
    same = len(result.dims) == rank if node.opcode in _SAME_RANK else result.dims == operand.dims
    return {d: d for d in range(rank)} if same else {}


def _cut(node: Operation) -> list[int]:
    """Return the dimensions along which an operation shifts elements."""
    if node.opcode in ("concatenate", "reverse"):
        return shapes.numbers(shapes.attribute(node, "dimensions"))
    if node.opcode not in _SAME_RANK:
        return []
    if node.kind is Kind.REDUCE:
        return [d for d, size in enumerate(shapes.window(node, "size")) if size != 1]
    part = node.inputs[1 if node.opcode == "dynamic-update-slice" else 0].dims
    return [d for d, (a, b) in enumerate(zip(part, node.shape.dims, strict=False)) if a != b]
