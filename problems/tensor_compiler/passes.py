"""The compiler's four passes as a chain: layout, fusion, then the tile and the flags of each kernel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Decisions, MultiPass

from .fusion import Fusion, Kernels
from .graph import Graph
from .kernel_choices import most_choices, number_of_choices
from .kernel_settings import FLAG_SLOTS, SLOTS, TILE_SLOTS, compile_kernels
from .layout import Laid, LayoutPass
from .machine import Machine
from .opcodes import Kind
from .recent import Recent

SETTINGS = {"tile": TILE_SLOTS, "flags": FLAG_SLOTS}
"""The passes that set kernels, with the slots that each sets."""

_KEPT_NODES = 2_000_000
"""Nodes of laid-out programs that are kept, to be found again when their layout is asked for again."""


@dataclass(frozen=True, eq=False)
class LaidOut:
    """The program under a layout configuration, the fusion pass on it, and what that decides."""

    laid: Laid
    fusion: Fusion
    decisions: Decisions

    @cached_property
    def default(self) -> NDArray[np.int8]:
        """The compiler's own fusion of it, in the order of `fusion.columns`."""
        return self.fusion.default()


@dataclass(frozen=True, eq=False)
class Fused:
    """The kernels that a fusion configuration makes, and what is to be set for each.

    Attributes:
      kernels: of the laid-out program.
      decisions: by pass.
    """

    kernels: Kernels
    decisions: dict[str, Decisions]


class Passes(MultiPass):
    """The passes on one program and machine.

    A flat row holds the columns of each pass one after the other: an option for each important operation; a boolean
    for each edge that some layout lets fuse, and for each node that may be fused into its copies; three numbers for the
    tile and six for the flags of a kernel around each node. What is set for a kernel is a number of `kernel_choices`,
    where 0 is what the compiler chooses.

    Args:
      graph: the program.
      machine: what it runs on.

    Attributes:
      span: the columns of each pass.
      sizes: `(d,)` of the flat space.
      roots: `(r,)` the nodes around which there can be a kernel, in the order of their tiles and flags.
      place: `(n + 1,)` the place of each node in `roots`; -1 for another, and for -1.
    """

    passes: ClassVar[tuple[str, ...]] = ("layout", "fusion", "tile", "flags")
    separable: ClassVar[frozenset[str]] = frozenset(SETTINGS)
    automatic: ClassVar[frozenset[str]] = frozenset(SETTINGS)

    def __init__(self, graph: Graph, machine: Machine) -> None:
        self.source, self._machine = graph, machine
        self.layout = LayoutPass(graph, machine)
        self.roots = np.flatnonzero(graph.kind >= Kind.ELEMENTWISE)
        self.place = np.full(len(graph) + 1, -1)
        self.place[self.roots] = np.arange(len(self.roots))
        most = most_choices(graph)
        own = {name: np.tile(most[list(slots)], len(self.roots)) for name, slots in SETTINGS.items()}
        sizes = {"layout": self.layout.options, "fusion": np.full(len(self.layout.fused) + len(self.layout.copied), 2), **own}
        ends = np.cumsum([0, *map(len, sizes.values())]).tolist()
        self.span = {name: slice(*pair) for name, pair in zip(sizes, zip(ends, ends[1:], strict=False), strict=False)}
        self.sizes = np.concatenate([*sizes.values()])
        self._laid: Recent[LaidOut] = Recent(max(2, _KEPT_NODES // len(graph)))
        self._fused: Recent[Fused] = Recent(max(2, _KEPT_NODES // len(graph) // 8))

    def start(self) -> NDArray[np.int64]:
        """Return the `(d,)` flat row of what the compiler does on its own."""
        row = np.zeros(len(self.sizes), np.int64)
        row[self.span["layout"]] = self.layout.default()
        graph = self.apply("layout", self.source, row)
        row[graph.decisions.columns] = graph.default
        return row

    def columns(self, name: str) -> NDArray[np.int64]:
        """Return the columns of a pass."""
        return np.arange(self.span[name].start, self.span[name].stop)

    def decisions(self, name: str, graph: Any) -> Decisions:  # noqa: ANN401 - of the pass before
        """Return what a pass decides on the program (layout), on a `LaidOut` (fusion), or on a `Fused`."""
        if name == "layout":
            return self._layout_decisions
        return graph.decisions if name == "fusion" else graph.decisions[name]

    def default(self, name: str, graph: Any) -> NDArray[np.int64]:  # noqa: ANN401 - of the pass before
        """Return what the compiler chooses."""
        if name == "layout":
            return self.layout.default().astype(np.int64)
        if name == "fusion":
            return graph.default.astype(np.int64)
        return np.zeros(len(graph.decisions[name].columns), np.int64)

    def apply(self, name: str, graph: Any, config: NDArray) -> Any:  # noqa: ANN401 - of the pass before
        """Return what a pass makes of a graph under a flat `(d,)` row: a `LaidOut`, or a `Fused`, also after tiles."""
        if name == "layout":
            own = config[self.span["layout"]]
            return self._laid.get(own.tobytes(), lambda: self._lay_out(own))
        if name == "fusion":
            own = config[self.span["fusion"]][graph.fusion.columns]
            return self._fused.get((id(graph), own.tobytes()), lambda: self._fuse(graph, own))
        return graph

    @cached_property
    def _layout_decisions(self) -> Decisions:
        p = len(self.layout.nodes)
        places = self.columns("layout")
        return Decisions(places, self.layout.options, places.astype(np.uint64), places, np.full(p, 1 / max(1, p)))

    def _lay_out(self, config: NDArray) -> LaidOut:
        laid = self.layout.apply(config)
        fusion = Fusion(laid, self._machine)
        columns = fusion.columns + self.span["fusion"].start
        share = np.full(len(columns), 1 / max(1, len(columns)))
        two = np.full(len(columns), 2)
        return LaidOut(laid, fusion, Decisions(columns, two, columns.astype(np.uint64), columns, share))

    def _fuse(self, graph: LaidOut, config: NDArray) -> Fused:
        kernels = graph.fusion.kernels(config)
        settings = compile_kernels(kernels.rows, kernels.runs, self._machine)
        place = self.place[np.maximum(graph.laid.origin[kernels.result], -1)]
        choices = np.where((settings.fits & (place >= 0))[:, None], number_of_choices(kernels.rows), 1)
        time = settings.planned * kernels.runs
        keys, share = content(kernels.rows), time / max(time.sum(), 1e-300)
        decided = {name: self._set(name, place, choices[:, slots], keys, share) for name, slots in SETTINGS.items()}
        return Fused(kernels, decided)

    def _set(self, name: str, place: NDArray, choices: NDArray, keys: NDArray, share: NDArray) -> Decisions:
        """Return the decisions about kernels: those of a pass's slots that have anything to choose."""
        kernel, slot = np.nonzero(choices > 1)
        columns = self.span[name].start + place[kernel] * choices.shape[1] + slot
        return Decisions(columns, choices[kernel, slot], keys[kernel] + slot.astype(np.uint64), place[kernel], share[kernel])

    def seconds(self, graph: LaidOut, configs: NDArray) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return `(b,)` run times of flat rows of one layout, and the node whose kernel overflows as it is set, or -1."""
        fused = configs[:, self.span["fusion"]][:, graph.fusion.columns]
        if not configs[:, self.span["tile"].start :].any():
            return graph.fusion.seconds(fused), np.full(len(configs), -1)
        set_by_root = np.zeros((len(configs), len(self.roots) + 1, len(SLOTS)), np.int8)  # the last one: a copy
        for name, slots in SETTINGS.items():
            own = configs[:, self.span[name]].reshape(len(configs), len(self.roots), len(slots))
            set_by_root[:, :-1, slots.start : slots.stop] = own
        settings = np.take(set_by_root, self.place[np.maximum(graph.laid.origin, -1)], axis=1)
        return graph.fusion.tuned_seconds(fused, settings)

    def name(self, column: int) -> str:
        """Return the name of a decision."""
        family = next(name for name, span in self.span.items() if column < span.stop)
        place = column - self.span[family].start
        names = self.source.names
        if family == "layout":
            return f"layout of {names[self.layout.nodes[place]]}"
        if family == "fusion":
            return f"fuse {self.layout.fusion_name(place)}"
        root, slot = divmod(place, len(SETTINGS[family]))
        return f"{names[self.roots[root]]}: {SLOTS[SETTINGS[family][slot]]}"

    def values(self, column: int) -> tuple[Any, ...]:
        """Return the values of a decision in the order of their numbers."""
        if column < self.span["fusion"].start:
            return self.source.choices[self.source.sort[self.layout.nodes[column]]]
        if column < self.span["fusion"].stop:
            return (False, True)
        return ("the compiler's", *(f"other {i}" for i in range(1, self.sizes[column])))


def content(rows: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Return `(k,)` keys of `(k, w)` rows, equal where the rows are; a key's next few numbers are nobody else's.

    A multiply and shift hash (Knuth, TAOCP 3, 6.4) of the 64-bit patterns; of a million rows, chance makes two meet
    once in 30,000 programs.
    """
    bits = np.ascontiguousarray(rows).view(np.uint64)
    keys = np.zeros(len(rows), np.uint64)
    for column in bits.T:
        keys = (keys ^ column) * np.uint64(0x9E3779B97F4A7C15)
        keys ^= keys >> np.uint64(29)
    return keys * np.uint64(16)
