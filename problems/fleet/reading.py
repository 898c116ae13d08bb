"""The kernels of programs: those of the compiler's own layout and fusion, and those of versions near them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite.fleet.library import Groups, Progress

from ..learned.generate import MOST_NODES, plans
from ..learned.kernels import KernelGraphs, KernelReader
from ..tensor_compiler.graph.build import read_graph
from ..tensor_compiler.hardware.machine import Machine
from ..tensor_compiler.passes import row_keys
from ..tensor_compiler.tasks.programs import program as program_file

_PLANS_AT_LEAST = 8
"""No layout and fusion gives more than this share of a program's variants."""


@dataclass(frozen=True)
class Read:
    """The kernels of some programs.

    Attributes:
      rows: `(k, KERNEL_WIDTH)` different kernels.
      keys: `(k,)` digests of the rows.
      graphs: of the kernels, cut to the operations that a network takes.
      programs: the programs' own kernels.
      variants: the kernels of other layouts and fusions of each program.
    """

    rows: NDArray[np.float64]
    keys: NDArray[np.uint64]
    graphs: KernelGraphs
    programs: Groups
    variants: Groups

    @classmethod
    def of(cls, names: tuple[str, ...], machine: Machine, most: int, rng: Generator, shown: Progress) -> Self:
        """Read programs of the catalogue, each with up to `most` variants of its kernels."""
        found, own = _Found(), []
        for number, name in enumerate(names):
            shown(f"reading program {number + 1} of {len(names)}: {name}; {len(found.number):,} kernels so far")
            own.append(_of_program(name, machine, most, rng, found))
        bases, variants = zip(*own, strict=True)
        programs = Groups(_starts(bases), np.concatenate([base[0] for base in bases]), None)
        runs = np.concatenate([base[1] for base in bases])
        graphs = KernelGraphs.joined(found.graphs)
        others = Groups(_starts([(kernels,) for kernels in variants]), np.concatenate(variants))
        keys = np.fromiter(found.number, np.uint64, len(found.number))
        return cls(np.concatenate(found.rows), keys, graphs, Groups(programs.starts, programs.kernels, runs), others)


class _Found:
    """What was read so far: a kernel that several programs have is kept once."""

    def __init__(self) -> None:
        self.number: dict[int, int] = {}
        self.rows: list[NDArray[np.float64]] = []
        self.graphs: list[KernelGraphs] = []

    def new(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the places of the kernels that are met for the first time, each once."""
        first: dict[int, int] = {}
        for place, key in enumerate(keys.tolist()):
            if key not in self.number:
                first.setdefault(key, place)
        return np.array(list(first.values()), np.int64)

    def add(self, keys: NDArray[np.uint64], rows: NDArray[np.float64], graphs: KernelGraphs) -> None:
        """Number some new kernels."""
        for key in keys.tolist():
            self.number[key] = len(self.number)
        self.rows.append(rows)
        self.graphs.append(graphs.cut(MOST_NODES))

    def numbers(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the numbers of kernels that were added."""
        return np.array([self.number[key] for key in keys.tolist()], np.int64)


Base = tuple[NDArray[np.int64], NDArray[np.float64]]


def _of_program(
    name: str, machine: Machine, most: int, rng: Generator, found: _Found
) -> tuple[Base, NDArray[np.int64]]:
    """Return the kernels and runs of a program, and its variants."""
    graph = read_graph(program_file(name))
    reader, variants, left = KernelReader(graph), [], most
    for number, (laid, fusion, config) in enumerate(plans(graph, machine, rng, most == 0)):
        kernels = fusion.kernels(config)
        timed = np.flatnonzero((kernels.cycles > 0) & np.isfinite(kernels.cycles))
        keys = row_keys(kernels.rows[timed])
        new = found.new(keys)
        if number:
            new = np.sort(rng.permutation(new)[: min(left, max(1, most // _PLANS_AT_LEAST))])
            left -= len(new)
        if len(new):
            graphs = reader.read(laid, fusion, kernels.result[timed][new])
            found.add(keys[new], kernels.rows[timed][new], graphs)
        if number:
            variants.append(found.numbers(keys[new]))
        else:
            every = found.numbers(keys)
            base, where = np.unique(every, return_inverse=True)
            runs: NDArray[np.float64] = np.bincount(where, kernels.runs[timed], len(base)).astype(np.float64)
        if left <= 0:
            break
    return (base, runs), np.concatenate([base, *variants])


def _starts(groups: list | tuple) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum([len(group[0]) for group in groups])]).astype(np.int64)
