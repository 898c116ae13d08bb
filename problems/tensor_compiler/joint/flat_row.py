"""The flat row of the joint task: the columns of all passes, the same whatever graphs the passes produce."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..fusion.kernel_choices import most_choices
from ..hardware.kernel_settings import FLAG_SLOTS, SLOTS, TILE_SLOTS
from ..hlo.opcodes import Kind
from ..layout.layout_pass import LaidOutProgram, LayoutPass

PASSES = ("layout", "fusion", "tile", "flags")
SETTINGS = {"tile": TILE_SLOTS, "flags": FLAG_SLOTS}
"""The passes that set tiles and flags of kernels, with the slots of each."""


class FlatRow:
    """The columns of each pass, one pass after the other.

    Layout: an option for each important operation. Fusion: a boolean for each edge that can be fused in any layout, and
    for each node that may be fused into its copies. Tile and flags: three and six numbers for the kernel around each
    node, as in `kernel_choices`, where 0 is the compiler's choice.

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
        most, booleans = most_choices(graph), len(layout.fused) + len(layout.copied)
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
