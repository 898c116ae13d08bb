"""From HLO text to the graph that the passes work on, and the tables of its signatures.

Nodes with the same signature differ only in name and neighbours, and share their states.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bbo_suite import UserError
from bbo_suite.compiled import compiled_for
from bbo_suite.report.formatting import listed

from ..hardware.kernel_row import KERNEL_WIDTH, PRODUCT_COLUMNS, Kernel
from ..hardware.timing import candidate_tiles
from ..hlo import reader as hlo
from ..hlo.module import FAULTS, Malformed, Module, Shape, reason
from ..hlo.opcodes import Kind, bytes_of
from ..hlo.result_shapes import check_results
from . import shapes
from .flatten import Flattener, Operation
from .graph import ProgramGraph, Tables
from .layouts import Layout, compact, completed, extents, layouts, padded_bytes
from .states import NodeState, is_tuned, options, renames, states

compiled = compiled_for(__file__)


_ATTRIBUTES = (
    "dimensions",
    "dim_labels",
    "window",
    "lhs_contracting_dims",
    "rhs_contracting_dims",
    "lhs_batch_dims",
    "rhs_batch_dims",
    "rhs_group_dims",
    "feature_group_count",
    "batch_group_count",
    "fft_length",
    "operand_precision",
    "algorithm",
)
_NO_PRODUCT = (0.0, 0.0, 0.0, 0.0, 0.0)


def read_graph(path: str | Path) -> ProgramGraph:
    """Return the graph of a program in HLO or StableHLO text, plain or gzipped.

    Raises:
      UserError: the file cannot be read, or its program is not well-formed.
    """
    return build(hlo.read(path), str(path))


def build(module: Module, source: str) -> ProgramGraph:
    """Return the graph of a module; `source` names it in errors.

    Raises:
      UserError: an instruction lacks an operand or an attribute that its opcode needs, or nothing can be computed.
    """
    try:
        flattener = Flattener(module)
        graph = _arrays(_own_broadcasts(in_order(*flattener.entry())), flattener)
        check_results(module)
    except UserError as error:
        raise UserError(f"{source}: {error}") from None
    except (Malformed, *FAULTS) as error:
        what = error if isinstance(error, Malformed) else f"an instruction is not well-formed: {reason(error)}"
        raise UserError(
            f"{source}: {what}; print it again with jax, or take *before_optimizations.txt of XLA's dumps"
        ) from error
    if not ((graph.kind > Kind.FREE) & (graph.renamed < 0)).any():
        idle = f"; {listed(dict.fromkeys(graph.idle_loops))} never run" if graph.idle_loops else ""
        raise UserError(f"{source}: the program computes nothing{idle}; give one with an operation on arrays")
    if weightless := [name for name, weight in zip(graph.names, graph.weight, strict=True) if not 0 < weight < np.inf]:
        raise UserError(f"{source}: {listed(weightless)} run too rarely or too often to weigh; take a part of it")
    return graph


def in_order(nodes: list[Operation], results: list[int]) -> list[Operation]:
    """Return the nodes that `results` depend on, renumbered: operands first, whatever the order of the text.

    What nothing uses is an output.

    Passes break ties by number, so the same program must get the same numbers however it is printed.
    """
    number: dict[int, int] = {}
    waiting = [(v, False) for v in reversed(results)]
    while waiting:
        v, entered = waiting.pop()
        if v in number:
            continue
        if entered:
            number[v] = len(number)
        else:
            waiting.append((v, True))
            waiting += [(o, False) for o in reversed(nodes[v].operands) if o not in number]
    ordered = [nodes[v] for v in number]
    for node in ordered:
        node.operands = [number[o] for o in node.operands]
    used = {o for node in ordered for o in node.operands}
    for v, node in enumerate(ordered):
        node.output |= v not in used
    return ordered


def _own_broadcasts(nodes: list[Operation]) -> list[Operation]:
    """Return the nodes with a copy of a broadcast for each of its users: XLA computes it in each, however many."""
    number: list[int] = []  # of the nodes among those returned
    used: set[int] = set()
    made: list[Operation] = []
    for node in nodes:
        operands = []
        for operand in node.operands:
            if operand in used:
                made.append(replace(made[number[operand]], output=False))
                operands.append(len(made) - 1)
            else:
                operands.append(number[operand])
            if nodes[operand].kind is Kind.BROADCAST:
                used.add(operand)
        number.append(len(made))
        made.append(replace(node, operands=operands))
    return made


def _arrays(nodes: list[Operation], flattener: Flattener) -> ProgramGraph:
    for node in nodes:
        if _on_scalar_unit(node, nodes):
            node.kind = Kind.FREE
    signatures = Signatures()
    numbers = [_signature(node, signatures) for node in nodes]
    edges = _edges(nodes, numbers, signatures)
    producers, users, operand = np.ascontiguousarray(np.array(edges, np.int32).reshape(-1, 3).T)
    ends = [(nodes[user], place) for _, user, place in edges]
    starts = np.searchsorted(producers, np.arange(len(nodes) + 1))
    return ProgramGraph(
        names=_unique([node.name for node in nodes]),
        opcodes=[node.opcode for node in nodes],
        choices=signatures.choices(),
        unknown_loops=flattener.unknown_loops,
        idle_loops=flattener.idle_loops,
        conditionals=flattener.conditionals,
        unknown_calls=flattener.unknown_calls,
        kind=np.array([node.kind for node in nodes], np.int8),
        elements=np.array([shapes.elements(node.shape) for node in nodes], np.float64),
        element_bytes=np.array([_element_bytes(node) for node in nodes], np.float64),
        weight=np.array([node.weight for node in nodes], np.float64),
        output=np.array([node.output for node in nodes], bool),
        tuned=np.array([signatures.is_tuned(number, node) for number, node in zip(numbers, nodes, strict=True)], bool),
        renamed=np.array([node.operands[0] if renames(node) else -1 for node in nodes], np.int32),
        signature=np.array(numbers, np.int32),
        user_starts=starts.astype(np.int64),
        users=users,
        producers=producers,
        operand=operand,
        read=np.array([shapes.reads(*end) for end in ends], np.int8),
        reuse=np.array([shapes.reuse(*end) for end in ends], np.float64),
        cost_model=max(map(shapes.cost_model, nodes)),
        tables=signatures.tables(),
    )


def _on_scalar_unit(node: Operation, nodes: list[Operation]) -> bool:
    """Return whether an operation computes a scalar from scalars in memory: XLA:TPU launches no kernel for it."""
    if node.kind is not Kind.ELEMENTWISE or node.shape.dims or any(shape.dims for shape in node.inputs):
        return False
    return all(nodes[operand].kind <= Kind.FREE for operand in node.operands)


def _signature(node: Operation, signatures: Signatures) -> int:
    try:
        return signatures.number(node)
    except FAULTS as error:
        raise Malformed(node.name, node.opcode, error) from error


def _element_bytes(node: Operation) -> float:
    return bytes_of(node.shape.dtype) or bytes_of(shapes.made(node).dtype)


def _edges(nodes: list[Operation], numbers: list[int], signatures: Signatures) -> list[tuple[int, int, int]]:
    """Return (producer, consumer, first place), once for each layout in which the consumer wants the producer."""
    first: dict[tuple, int] = {}
    for i, node in enumerate(nodes):
        for place, operand in enumerate(node.operands):
            first.setdefault((operand, i, signatures.wanted(numbers[i], place)), place)
    return sorted((operand, i, place) for (operand, i, _), place in first.items())


def _unique(names: list[str]) -> list[str]:
    """Return the names, made unique by a number: computations that were inlined may use the same name."""
    seen: Counter[str] = Counter()
    for i, name in enumerate(names):
        seen[name] += 1
        if seen[name] > 1:
            names[i] = f"{name}~{seen[name]}"
    return names


@dataclass
class Signatures:
    """Collects the signatures of nodes."""

    _number: dict[tuple, int] = field(default_factory=dict)
    _arrays: dict[Shape, int] = field(default_factory=dict)
    _states: list[list[NodeState]] = field(default_factory=list)
    _wanted: list[list[tuple[int, ...]]] = field(default_factory=list)
    _texts: list[tuple[str, ...]] = field(default_factory=list)
    _kinds: list[tuple[int, ...]] = field(default_factory=list)
    _work: list[tuple[float, float, float, int]] = field(default_factory=list)
    _bytes: list[float] = field(default_factory=list)
    _loops: list[tuple[float, ...]] = field(default_factory=list)

    def number(self, node: Operation) -> int:
        """Return the number of a node's signature."""
        texts = node.source.attributes if node.source else {}
        key = (node.opcode, node.kind, node.shape, node.layout, *node.inputs, *(texts.get(a) for a in _ATTRIBUTES))
        if key not in self._number:
            shapes.check(node)
            self._number[key] = len(self._states)
            self._add(node)
        return self._number[key]

    def is_tuned(self, number: int, node: Operation) -> bool:
        """True if a node of this signature has several states to choose from."""
        return is_tuned(node) and len(self._states[number]) > 1

    def wanted(self, number: int, place: int) -> tuple[int, ...]:
        """Return the layouts that a node of this signature wants of an operand in each of its states."""
        return self._wanted[number][place]

    def choices(self) -> list[tuple[str, ...]]:
        """Return for each signature its states in words: minor dimensions of the result and of the wanted operands."""
        return self._texts

    def _add(self, node: Operation) -> None:
        found = options(node) if is_tuned(node) else states(node)
        array = self._array(node.shape)
        product = shapes.on_matrix_unit(node)
        own = self._row(node.shape, compact(node.shape), product) if any(product) else -1
        for state in found:
            walked, layout = state.walked
            row = own if own >= 0 else self._array(walked) + layouts(walked).index(layout)
            self._work.append((state.work, _written(node, state), _read(node, state), row))
        several = len(layouts(node.shape))
        same_minor = sum(size != 1 for size in node.shape.dims) - 1 if several > 1 else 0
        tidy = completed(node.shape, node.layout or ())
        self._kinds.append((array, several, same_minor, tidy, len(node.inputs)))
        self._states.append(found)
        self._texts.append(tuple(_text(node, state) for state in found) if is_tuned(node) else ())
        self._wanted.append(list(zip(*(state.wanted for state in found), strict=True)))

    def _array(self, shape: Shape) -> int:
        """Return the row of an array in its first layout."""
        if shape not in self._arrays:
            self._arrays[shape] = len(self._bytes)
            for layout in layouts(shape):
                self._row(shape, layout, _NO_PRODUCT)
        return self._arrays[shape]

    def _row(self, shape: Shape, layout: Layout, product: tuple[float, ...]) -> int:
        self._bytes.append(padded_bytes(shape, layout))
        self._loops.append((*product, *extents(shape, layout)))
        return len(self._bytes) - 1

    def tables(self) -> Tables:
        """Return all that was collected as arrays."""
        kinds = np.ascontiguousarray(np.array(self._kinds, np.int64).reshape(-1, 5).T)
        array, layout_counts, same_minor, compact_layouts, places = kinds
        counts = np.array([len(found) for found in self._states], np.int64)
        every = [state for found in self._states for state in found]
        work, written, read, row = np.ascontiguousarray(np.array(self._work, np.float64).reshape(-1, 4).T)
        wants = np.append(0, np.cumsum(counts * places))[:-1]
        wanted = np.array([w for state in every for w in state.wanted], np.int64)
        loops = np.array(self._loops).reshape(-1, 8)
        return Tables(
            first=np.append(0, np.cumsum(counts)),
            result=np.array([state.result for state in every], np.int64),
            work=work,
            written=written,
            read=read,
            row=row.astype(np.int64),
            wanted=wanted,
            wants=wants,
            places=places,
            array=array,
            layouts=layout_counts,
            same_minor=same_minor,
            compact=compact_layouts,
            bytes=np.array(self._bytes),
            loops=loops,
            tiles=_tiles(loops),
        )


def _text(node: Operation, state: NodeState) -> str:
    """Return minor and second-minor dimensions as in HLO, such as `{3,0} from {3,0} {1,0}`."""
    wanted = [layouts(shape)[w] if w >= 0 else () for shape, w in zip(node.inputs, state.wanted, strict=True)]
    texts = ["{" + ",".join(map(str, layout)) + "}" for layout in (layouts(node.shape)[state.result], *wanted)]
    return f"{texts[0]} from {' '.join(texts[1:])}".replace("{}", "any")


def _written(node: Operation, state: NodeState) -> float:
    """Return the bytes that a node writes: an update in place writes only what is new."""
    if node.opcode == "dynamic-update-slice" and len(node.inputs) > 1:
        return _operand_bytes(node, state, 1)
    return padded_bytes(node.shape, layouts(node.shape)[state.result])


def _read(node: Operation, state: NodeState) -> float:
    """Return the bytes that a node reads if its operands are in memory."""
    taken = {shapes.Read.ALL: [], shapes.Read.RESULT: [_written(node, state)], shapes.Read.NOTHING: [0.0]}
    every = range(len(node.inputs))
    return sum(min(_operand_bytes(node, state, p), *taken[shapes.reads(node, p)], np.inf) for p in every)


def _operand_bytes(node: Operation, state: NodeState, place: int) -> float:
    """Return the bytes of an operand in the wanted layout, or in the compact one if any layout will do."""
    operand, wanted = node.inputs[place], state.wanted[place]
    return padded_bytes(operand, layouts(operand)[wanted] if wanted >= 0 else compact(operand))


def _tiles(loops: NDArray[np.float64]) -> NDArray[np.float64]:
    tiles = np.empty((len(loops), 4, 3))
    _fill_tiles(loops, tiles)
    return tiles


@compiled()
def _fill_tiles(loops: NDArray, tiles: NDArray) -> None:
    kernel = np.zeros(KERNEL_WIDTH)
    for v in range(len(loops)):
        for column in range(PRODUCT_COLUMNS):  # an assignment of a slice takes seconds to compile
            kernel[Kernel.GROUPS + column] = loops[v, column]
        for column in range(PRODUCT_COLUMNS, loops.shape[1]):
            kernel[Kernel.OUTER + column - PRODUCT_COLUMNS] = loops[v, column]
        candidate_tiles(kernel, tiles[v])
