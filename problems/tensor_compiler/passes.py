"""The compiler's four passes as a chain: layout, fusion, then the tile and the flags of each kernel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Decisions, MultiPass

from .fusion.fusion_pass import Fusion, Kernels
from .fusion.state import StateBuffer
from .graph.graph import ProgramGraph
from .hardware.kernel_row import KERNEL_WIDTH, PRODUCT_COLUMNS, Kernel
from .hardware.kernel_settings import (
    FLAG_SLOTS,
    SLOTS,
    TILE_SLOTS,
    compile_kernels,
    number_of_choices,
    override,
)
from .hardware.machine import Machine
from .hlo.opcodes import Kind
from .layout.layout_pass import LaidOutProgram, LayoutPass

PASSES = ("layout", "fusion", "tile", "flags")
SETTINGS = {"tile": TILE_SLOTS, "flags": FLAG_SLOTS}
"""The passes that set tiles and flags of kernels, with the slots of each."""
_CACHED_NODES = 2_000_000
"""Limit on the nodes of all laid-out programs that are cached."""


class FlatRow:
    """The columns of each pass, one pass after the other.

    Layout: an option for each important operation. Fusion: a boolean for each edge that can be fused in any layout, and
    for each node that may be fused into its copies. Tile and flags: three and six numbers for the kernel around each
    node, as in `kernel_settings.override`, where 0 is the compiler's choice.

    Attributes:
      span: the columns of each pass.
      sizes: `(d,)` the number of values of each column.
      roots: `(r,)` the nodes that can have a kernel, in the order of their tiles and flags.
    """

    def __init__(self, layout: LayoutPass) -> None:
        self._layout, graph = layout, layout.graph
        self.roots = np.flatnonzero(graph.kind >= Kind.ELEMENTWISE)
        self._place = np.full(len(graph) + 1, -1)  # the last one: a copy
        self._place[self.roots] = np.arange(len(self.roots))
        most, booleans = _most_choices(graph), len(layout.fused) + len(layout.copied)
        own = [np.tile(most[list(slots)], len(self.roots)) for slots in SETTINGS.values()]
        sizes = [layout.options, np.full(booleans, 2), *own]
        ends = np.cumsum([0, *map(len, sizes)]).tolist()
        self.span = {name: slice(*pair) for name, pair in zip(PASSES, pairwise(ends), strict=True)}
        self.sizes = np.concatenate(sizes)

    def place(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the places in `roots` of `(k,)` nodes of the first graph; -1 for a copy, which is a negative node."""
        return self._place[np.maximum(nodes, -1)]

    def settings(self, laid: LaidOutProgram, configs: NDArray) -> NDArray[np.int8]:
        """Return the `(b, n', 9)` settings in `(b, d)` rows for the kernels around the nodes of a laid-out program."""
        by_root = np.zeros((len(configs), len(self.roots) + 1, len(SLOTS)), np.int8)  # the last one: a copy
        for name, slots in SETTINGS.items():
            own = configs[:, self.span[name]].reshape(len(configs), len(self.roots), len(slots))
            by_root[:, :-1, slots.start : slots.stop] = own
        return np.take(by_root, self.place(laid.origin), axis=1)

    def name(self, column: int) -> str:
        """Return the name of a decision."""
        family = next(name for name, span in self.span.items() if column < span.stop)
        place, names = column - self.span[family].start, self._layout.graph.names
        if family == "layout":
            return f"layout of {names[self._layout.nodes[place]]}"
        if family == "fusion":
            return f"fuse {self._layout.fusion_name(place)}"
        node, setting = self.setting(column)
        return f"{names[node]}: {setting}"

    def setting(self, column: int) -> tuple[int, str]:
        """Return the node whose kernel a column of tiles or flags sets, and the name of what it sets."""
        family = next(name for name in SETTINGS if column < self.span[name].stop)
        root, slot = divmod(column - self.span[family].start, len(SETTINGS[family]))
        return int(self.roots[root]), SLOTS[SETTINGS[family][slot]]

    def values(self, column: int) -> tuple[Any, ...]:
        """Return the values of a decision in the order of their numbers."""
        graph = self._layout.graph
        if column < self.span["fusion"].start:
            return graph.choices[graph.signature[self._layout.nodes[column]]]
        if column < self.span["fusion"].stop:
            return (False, True)
        return ("the compiler's", *(f"other {i}" for i in range(1, int(self.sizes[column]))))


@dataclass(frozen=True, eq=False)
class LayoutResult:
    """The program under a layout configuration, the fusion pass on it, and the decisions of that pass."""

    laid: LaidOutProgram
    fusion: Fusion
    decisions: Decisions

    @cached_property
    def default(self) -> NDArray[np.int8]:
        """The compiler's own fusion of it, in the order of `fusion.columns`."""
        return self.fusion.default()


@dataclass(frozen=True, eq=False)
class FusionResult:
    """The kernels of a fusion configuration, and the decisions about them, by pass."""

    kernels: Kernels
    decisions: dict[str, Decisions]


class Passes(MultiPass):
    """The passes on one program and machine, over a `FlatRow`.

    The graph before fusion is a `LayoutResult`, the graph before tiles and flags a `FusionResult`; settings of kernels
    do not change it. An edge is the same decision in all layouts. Settings are keyed by everything that the time of the
    kernel depends on.

    Args:
      graph: the program.
      machine: what it runs on.
    """

    passes = PASSES
    separable = frozenset(SETTINGS)
    automatic = frozenset(SETTINGS)

    def __init__(self, graph: ProgramGraph, machine: Machine) -> None:
        self.source, self._machine = graph, machine
        self.layout = LayoutPass(graph, machine)
        self.flat = FlatRow(self.layout)
        self._buffer = StateBuffer()
        most = _CACHED_NODES // len(graph)
        self._laid_out = lru_cache(max(2, most))(self._lay_out)
        self._fused = lru_cache(max(2, most // 8))(self._fuse)
        places, p = self.columns("layout"), len(self.layout.nodes)
        share = np.full(p, 1 / max(1, p))
        self._of_layout = Decisions(places, self.layout.options, places.astype(np.uint64), places, share)

    def start(self) -> NDArray[np.int64]:
        """Return the `(d,)` flat row of the compiler's own choices."""
        row = np.zeros(len(self.flat.sizes), np.int64)
        row[self.flat.span["layout"]] = self.layout.default()
        graph = self.apply("layout", self.source, row)
        row[graph.decisions.columns] = graph.default
        return row

    def columns(self, name: str) -> NDArray[np.int64]:
        """Return the columns of a pass."""
        return np.arange(self.flat.span[name].start, self.flat.span[name].stop)

    def decisions(self, name: str, graph: Any) -> Decisions:  # noqa: ANN401 - of the pass before
        """Return the decisions of a pass."""
        if name == "layout":
            return self._of_layout
        return graph.decisions if name == "fusion" else graph.decisions[name]

    def default(self, name: str, graph: Any) -> NDArray[np.int64]:  # noqa: ANN401 - of the pass before
        """Return the compiler's choice."""
        if name == "layout":
            return self.layout.default().astype(np.int64)
        if name == "fusion":
            return graph.default.astype(np.int64)
        return np.zeros(len(graph.decisions[name].columns), np.int64)

    def apply(self, name: str, graph: Any, config: NDArray) -> Any:  # noqa: ANN401 - of the pass before
        """Return the graph after a pass under a flat `(d,)` row.

        Raises:
          ValueError: the row does not decide the pass: it is too short, or one of its choices is out of range.
        """
        if name == "layout":
            own = config[self.flat.span["layout"]]
            return self._laid_out(own.tobytes(), own.dtype)
        if name == "fusion":
            own = config[graph.decisions.columns]
            return self._fused(graph, own.tobytes(), own.dtype)
        return graph

    def seconds(self, graph: LayoutResult, configs: NDArray) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return `(b,)` run times of flat rows of one layout, and the node whose kernel overflows, or -1."""
        fused = configs[:, graph.decisions.columns]
        if not configs[:, self.flat.span["tile"].start :].any():
            return graph.fusion.seconds(fused), np.full(len(configs), -1)
        return graph.fusion.tuned_seconds(fused, self.flat.settings(graph.laid, configs))

    def settings(self, graph: LayoutResult, fused: FusionResult, config: NDArray) -> dict[int, float]:
        """Return the tile or flag that each live column stands for under a flat row, by column."""
        kernels, numbers = fused.kernels, self.flat.settings(graph.laid, config[None])[0]
        chosen = tuned_settings(kernels.rows, kernels.runs, numbers[kernels.result], self._machine)
        place = self.flat.place(graph.laid.origin[kernels.result])
        kernel = {int(p): k for k, p in enumerate(place.tolist()) if p >= 0}
        slots = {name: np.array(SETTINGS[name]) for name in SETTINGS}
        found: dict[int, float] = {}
        for name, decided in fused.decisions.items():
            within = (decided.columns - self.flat.span[name].start) % len(slots[name])
            values = chosen[[kernel[int(p)] for p in decided.nodes], slots[name][within]]
            found |= dict(zip(decided.columns.tolist(), values.tolist(), strict=True))
        return found

    def _lay_out(self, row: bytes, dtype: np.dtype) -> LayoutResult:
        config = np.frombuffer(row, dtype)
        _check(config, self.layout.options)
        laid = self.layout.apply(config)
        fusion = Fusion(laid, self._machine, self._buffer)
        columns, k = fusion.columns + self.flat.span["fusion"].start, len(fusion.columns)
        decided = Decisions(columns, np.full(k, 2), columns.astype(np.uint64), columns, np.full(k, 1 / max(1, k)))
        return LayoutResult(laid, fusion, decided)

    def _fuse(self, graph: LayoutResult, row: bytes, dtype: np.dtype) -> FusionResult:
        config = np.frombuffer(row, dtype)
        _check(config, graph.decisions.sizes)
        kernels = graph.fusion.kernels(config)
        settings = compile_kernels(kernels.rows, kernels.runs, self._machine)
        place = self.flat.place(graph.laid.origin[kernels.result])
        choices = np.where((settings.fits & (place >= 0))[:, None], number_of_choices(kernels.rows), 1)
        time = settings.planned * kernels.runs
        share, keys = time / max(time.sum(), np.finfo(float).tiny), row_keys(kernels.rows)
        decided = {name: self._set(name, place, choices[:, slots], keys, share) for name, slots in SETTINGS.items()}
        return FusionResult(kernels, decided)

    def _set(self, name: str, place: NDArray, choices: NDArray, keys: NDArray, share: NDArray) -> Decisions:
        """Return the decisions of a pass about kernels: the slots that have more than one value."""
        kernel, slot = np.nonzero(choices > 1)
        columns = self.flat.span[name].start + place[kernel] * choices.shape[1] + slot
        own = keys[kernel] + slot.astype(np.uint64)
        return Decisions(columns, choices[kernel, slot], own, place[kernel], share[kernel])


def tuned_settings(
    rows: NDArray[np.float64], runs: NDArray[np.float64], numbers: NDArray[np.int8], machine: Machine
) -> NDArray[np.float64]:
    """Return the `(k, 9)` settings of kernels, in the order of `SLOTS`; a kernel that no tile fits keeps its own.

    Args:
      rows, runs: as in `Kernels`.
      numbers: `(k, 9)` as in `kernel_settings.override`.
    """
    made = compile_kernels(rows, runs, machine)
    for k in np.flatnonzero(made.fits & numbers.any(axis=1)).tolist():
        override(numbers[k], rows[k], made.chosen[k, :3], made.chosen[k, 3:])
    return made.chosen


def _check(config: NDArray, sizes: NDArray) -> None:
    """Check the choices of one pass, once for each graph: compiled code would read past its tables."""
    if config.shape != sizes.shape or config.dtype.kind not in "iu" or (config < 0).any() or (config >= sizes).any():
        raise ValueError(f"the row does not hold {len(sizes)} choices of this pass; take a row of the problem's space")


def row_keys(rows: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Return `(k,)` keys of `(k, w)` rows, equal if the rows are; the 15 numbers after each key are unused.

    A multiply and shift hash (Knuth, TAOCP 3, section 6.4) of the 64-bit patterns.
    """
    bits = np.ascontiguousarray(rows).view(np.uint64)
    keys = np.zeros(len(rows), np.uint64)
    for column in bits.T:
        keys = (keys ^ column) * np.uint64(0x9E3779B97F4A7C15)
        keys ^= keys >> np.uint64(29)
    return keys * np.uint64(16)


def _most_choices(graph: ProgramGraph) -> NDArray[np.int64]:
    """Return `(9,)`: the largest number of values of each slot, over all kernels that a program can have."""
    kernels = np.zeros((len(graph.tables.loops), KERNEL_WIDTH))
    kernels[:, Kernel.GROUPS : Kernel.SUMS] = graph.tables.loops[:, :PRODUCT_COLUMNS]
    kernels[:, Kernel.OUTER : Kernel.SIZE] = graph.tables.loops[:, PRODUCT_COLUMNS:]
    return number_of_choices(kernels).max(axis=0)
