"""From HLO text to the graph that the passes work on."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from bbo_suite import UserError

from ..hlo import reader as hlo
from ..hlo.malformed import FAULTS, Malformed
from ..hlo.module import Module
from ..hlo.opcodes import Kind, bytes_of
from . import shapes
from .flatten import Flattener, Operation
from .graph import ProgramGraph
from .signatures import Signatures
from .states import renames


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
        graph = _arrays(in_order(*Flattener(module).entry()))
    except UserError as error:
        raise UserError(f"{source}: {error}") from None
    except (Malformed, *FAULTS) as error:
        what = error if isinstance(error, Malformed) else f"an instruction is not well-formed ({error!r})"
        raise UserError(
            f"{source}: {what}; print it again with jax, or take *before_optimizations.txt of XLA's dumps"
        ) from error
    if not ((graph.kind > Kind.FREE) & (graph.renamed < 0)).any():
        raise UserError(f"{source}: the program computes nothing; give one with at least one operation")
    return graph


def in_order(nodes: list[Operation], results: list[int]) -> list[Operation]:
    """Return the nodes that the results depend on, renumbered: operands first, whatever the order of the text.

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
    return ordered


def _arrays(nodes: list[Operation]) -> ProgramGraph:
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
        kind=np.array([node.kind for node in nodes], np.int8),
        elements=np.array([shapes.elements(node.shape) for node in nodes], np.float64),
        element_bytes=np.array([bytes_of(node.shape.dtype) for node in nodes], np.float64),
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
        tables=signatures.tables(),
    )


def _signature(node: Operation, signatures: Signatures) -> int:
    try:
        return signatures.number(node)
    except FAULTS as error:
        raise Malformed(node.name, node.opcode, error) from error


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
