"""The kernels of programs, as a fleet runs them, and the settings that the learned models rank first for each.

Kernels are those of the compiler's own layout and fusion, and variants from layouts and fusions close to these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite.fleet.library import Groups, Progress

from ..tensor_compiler.graph.build import read_graph
from ..tensor_compiler.hardware.all_settings import fitting_settings
from ..tensor_compiler.hardware.kernel_settings import FLAG_SLOTS, TILE_SLOTS
from ..tensor_compiler.hardware.machine import Machine
from ..tensor_compiler.passes import row_keys
from ..tensor_compiler.tasks.programs import program as program_file
from .dataset import MOST_NODES, plans
from .kernels import SIZES, KernelGraphs, KernelReader
from .model import CostModel, embeddings, relative_scores

_RANKED = 2048
"""Kernels whose settings are ranked at a time."""
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
    """What was read so far: a kernel that several programs have is there once."""

    def __init__(self) -> None:
        self.number: dict[int, int] = {}
        self.rows: list[NDArray[np.float64]] = []
        self.graphs: list[KernelGraphs] = []

    def new(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the places of the kernels that are new, each once."""
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
    for number, (laid, fusion, config) in enumerate(plans(graph, machine, rng)):
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


def rank(
    model: CostModel,
    rows: NDArray[np.float64],
    graphs: KernelGraphs,
    defaults: NDArray[np.float64],
    machine: Machine,
    count: int,
    shown: Progress,
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Return the settings that a model ranks first, and how much it expects them to save.

    Args:
      rows: `(k, KERNEL_WIDTH)` kernels that can be tuned.
      graphs: of these.
      defaults: `(k, 9)` the compiler's settings.
      count: tiles, and flags, of each kernel.

    Returns:
      `(k, 2, count, 9)` tiles with the compiler's flags, and flags with the best of these tiles; where a kernel has
      fewer, the best is repeated. `(k,)` the predicted share of the time that is saved.
    """
    embedded = embeddings(model.relative, graphs.cut(SIZES[-1]))
    picks, saved = np.empty((len(rows), 2, count, 9), np.float32), np.empty(len(rows))
    for start in range(0, len(rows), _RANKED):
        shown(f"ranking settings by the learned model: {start:,} of {len(rows):,} kernels")
        part = slice(start, start + _RANKED)
        own = _Ranked(model, rows[part], embedded[part], machine)
        picks[part, 0], logs = own.best("tiles", TILE_SLOTS, defaults[part], model.slopes[0], count)
        tiled = picks[part, 0, 0].astype(np.float64)
        picks[part, 1], more = own.best("flags", FLAG_SLOTS, tiled, model.slopes[1], count)
        saved[part] = 1 - np.exp(logs + more)
    return picks, saved


class _Ranked:
    def __init__(
        self, model: CostModel, rows: NDArray[np.float64], embedded: NDArray[np.float32], machine: Machine
    ) -> None:
        self._model, self._rows, self._embedded, self._machine = model, rows, embedded, machine

    def best(
        self, kind: str, slots: range, given: NDArray, slope: float, count: int
    ) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Return the `(n, count, 9)` best settings and the `(n,)` log of the time of the best over the given one's."""
        starts, settings = fitting_settings(self._rows, given, slots, self._machine)
        owner = np.repeat(np.arange(len(self._rows)), np.diff(starts))
        found = self._scores(kind, owner, settings)
        order = np.lexsort((found, owner))
        places = starts[:-1, None] + np.arange(count)
        chosen = order[np.where(places < starts[1:, None], places, starts[:-1, None])]
        own = self._scores(kind, np.arange(len(self._rows)), given)
        return settings[chosen].astype(np.float32), slope * (found[chosen[:, 0]] - own)

    def _scores(self, kind: str, owner: NDArray[np.int64], settings: NDArray[np.float64]) -> NDArray[np.float64]:
        return relative_scores(self._model, kind, self._rows[owner], self._embedded[owner], settings, self._machine)
