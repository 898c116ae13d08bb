"""From HLO text to the graph that the passes work on."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bbo_suite import UserError

from . import hlo, shapes
from .flatten import Flattener, Node
from .graph import Graph
from .hlo_types import Module
from .opcodes import Kind, bytes_of


def read_graph(path: str | Path) -> Graph:
    """Return the graph of a program in HLO or StableHLO text, plain or gzipped.

    Raises:
      UserError: the file cannot be read, or holds no program that hangs together.
    """
    return build(hlo.read(path), str(path))


def build(module: Module, source: str) -> Graph:
    """Return the graph of a module; `source` names it in errors.

    Raises:
      UserError: an instruction lacks an operand or an attribute that its opcode needs, or nothing can be computed.
    """
    try:
        nodes = _live(_without_bitcasts(Flattener(module).entry()))
        graph = _arrays(nodes)
    except (KeyError, IndexError, ValueError, TypeError, AttributeError) as error:
        advice = "let the program be printed again by XLA or jax"
        raise UserError(f"{source}: an instruction is not well-formed ({error!r}); {advice}") from error
    if not (graph.kind > Kind.FREE).any():
        raise UserError(f"{source}: the program computes nothing; give one with at least one operation")
    return graph


def _without_bitcasts(nodes: list[Node]) -> list[Node]:
    """Let consumers of a pure change of shape take what it changes; it is no data of its own."""
    target = list(range(len(nodes)))
    for i, node in enumerate(nodes):
        node.operands = [target[o] for o in node.operands]
        if node.kind > Kind.FREE and shapes.is_bitcast(node):
            target[i] = node.operands[0]
            nodes[target[i]].output |= node.output
            node.output = False
    return nodes


def _live(nodes: list[Node]) -> list[Node]:
    """Drop what no output depends on, and renumber."""
    needed = [node.output for node in nodes]
    for i in range(len(nodes) - 1, -1, -1):
        if needed[i]:
            for operand in nodes[i].operands:
                needed[operand] = True
    number = np.cumsum(needed) - 1
    live = [node for node, kept in zip(nodes, needed, strict=True) if kept]
    for node in live:
        node.operands = [int(number[o]) for o in node.operands]
    return live


def _arrays(nodes: list[Node]) -> Graph:
    edges = sorted(
        {(o, i): place for i, n in enumerate(nodes) for place, o in reversed([*enumerate(n.operands)])}.items()
    )
    pairs = np.array([pair for pair, _ in edges], np.int32).reshape(-1, 2)
    places = [place for _, place in edges]
    ends = [(nodes[user], place) for (_, user), place in edges]
    starts = np.searchsorted(pairs[:, 0], np.arange(len(nodes) + 1))
    return Graph(
        names=[node.name for node in nodes],
        opcodes=[node.opcode for node in nodes],
        kind=np.array([node.kind for node in nodes], np.int8),
        elements=np.array([shapes.elements(node.shape) for node in nodes], np.float64),
        bytes=np.array([shapes.written_bytes(node) for node in nodes], np.float64),
        element_bytes=np.array([bytes_of(node.shape.dtype) for node in nodes], np.float64),
        operations=np.array([shapes.operations(node) for node in nodes], np.float64),
        extents=np.array([shapes.extents(node) for node in nodes], np.float64).reshape(-1, 3),
        matrix=np.array([shapes.matrix(node) for node in nodes], np.float64).reshape(-1, 4),
        weight=np.array([node.weight for node in nodes], np.float64),
        output=np.array([node.output for node in nodes], bool),
        user_starts=starts.astype(np.int64),
        users=np.ascontiguousarray(pairs[:, 1]),
        producers=np.ascontiguousarray(pairs[:, 0]),
        operand=np.minimum(places, 127).astype(np.int8),
        read=np.array([shapes.read_bytes(*end) for end in ends], np.float64),
        reuse=np.array([shapes.reuse(*end) for end in ends], np.float64),
    )
