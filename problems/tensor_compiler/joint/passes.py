"""The compiler's four passes as a chain: layout, fusion, then the tile and the flags of each kernel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Decisions, MultiPass

from ..fusion.fusion_pass import Fusion, Kernels
from ..fusion.kernel_choices import number_of_choices, override
from ..fusion.state import StateBuffer
from ..graph.graph import ProgramGraph
from ..hardware.kernel_settings import compile_kernels
from ..hardware.machine import Machine
from ..layout.layout_pass import LaidOutProgram, LayoutPass
from .flat_row import PASSES, SETTINGS, FlatRow
from .lru_cache import LruCache

_KEPT_NODES = 2_000_000
"""Limit on the nodes of all laid-out programs that are cached."""


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
    """The passes on one program and machine, over the flat row of `Columns`.

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
        self._laid: LruCache[LayoutResult] = LruCache(max(2, _KEPT_NODES // len(graph)))
        self._fused: LruCache[FusionResult] = LruCache(max(2, _KEPT_NODES // len(graph) // 8))
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
            return self._laid.get(own.tobytes(), lambda: self._lay_out(own))
        if name == "fusion":
            own = config[graph.decisions.columns]
            return self._fused.get((graph, own.tobytes()), lambda: self._fuse(graph, own))
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

    def _lay_out(self, config: NDArray) -> LayoutResult:
        _check(config, self.layout.options)
        laid = self.layout.apply(config)
        fusion = Fusion(laid, self._machine, self._buffer)
        columns, k = fusion.columns + self.flat.span["fusion"].start, len(fusion.columns)
        decided = Decisions(columns, np.full(k, 2), columns.astype(np.uint64), columns, np.full(k, 1 / max(1, k)))
        return LayoutResult(laid, fusion, decided)

    def _fuse(self, graph: LayoutResult, config: NDArray) -> FusionResult:
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
      numbers: `(k, 9)` as in `kernel_choices.override`.
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
