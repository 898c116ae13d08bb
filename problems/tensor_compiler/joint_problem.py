"""All four passes of the compiler as one task."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Evaluations, Problem, Space, Status, Structure

from .machine import COST_MODEL, MACHINES, split
from .programs import names, program

if TYPE_CHECKING:
    from .graph import Graph
    from .passes import LaidOut, Passes


class JointProblem(Problem):
    """Layout, fusion, tiles and flags of a program together, on the simulated tensor compiler.

    A candidate decides all passes of the compiler: the layouts of important operations, which producers to fuse into
    which consumers, and the tile and the flags of the kernel around each operation. What means nothing under the
    earlier decisions (the tile of an operation that got no kernel of its own) is ignored, and a tile whose windows do
    not fit into the scratchpad is a compile error. The default is what the compiler does in every pass. The strategy
    `joint` sees the passes; for every other one it is one large space.
    """

    instances: ClassVar[tuple[str, ...]] = names()
    unit = "seconds"

    def __init__(self, instance: str) -> None:
        name, machine = split(instance)
        self._load(program(name), machine)

    @classmethod
    def from_file(cls, path: str) -> Self:
        """Return the task on a user's program, in HLO or StableHLO text, plain or gzipped.

        Raises:
          UserError: the file cannot be read.
        """
        problem = cls.__new__(cls)
        name, machine = split(path)
        problem._load(Path(name), machine)
        return problem

    def _load(self, path: Path, machine: str) -> None:
        from .build import read_graph  # numba comes with it: only where a program is really loaded
        from .passes import Passes

        self._graph: Graph = read_graph(path)
        self._machine, self._passes = machine, Passes(self._graph, MACHINES[machine])
        self.space = Space(self._passes.sizes, names=self._passes.name, values=self._passes.values)
        self.default = self._passes.start()

    def evaluate(self, configs: NDArray) -> Evaluations:
        """Return the run times in seconds of the program under `(n, d)` decisions of all passes."""
        seconds, overflowing = np.empty(len(configs)), np.full(len(configs), -1)
        own = configs[:, self._passes.span["layout"]]
        _, first, group = np.unique(own, axis=0, return_index=True, return_inverse=True)
        reasons: dict[int, str] = {}
        for number, representative in enumerate(first.tolist()):
            graph, rows = self._passes.apply("layout", self._graph, configs[representative]), group == number
            seconds[rows], overflowing[rows] = self._passes.seconds(graph, configs[rows])
            reasons |= {int(i): _reason(graph, overflowing[i]) for i in np.flatnonzero(rows & (overflowing >= 0))}
        status = np.where(overflowing < 0, Status.OK, Status.COMPILE_ERROR).astype(np.int8)
        return Evaluations(seconds, status, reasons)

    def fingerprint(self) -> str:
        """Return a text that changes with the program, the machine and the cost model."""
        content = f"joint|{COST_MODEL}|{MACHINES[self._machine]}|{self._graph.digest()}"
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def structure(self) -> Structure:
        """Return which decisions interact, what is known of each, the graph, and the passes."""
        from .joint_structure import declare

        return declare(self._passes, self._passes.apply("layout", self._graph, self.default_row()))

    def facts(self) -> dict[str, str]:
        """Return how many decisions each pass takes."""
        spans = self._passes.span.items()
        return {"machine": self._machine} | {name: f"{span.stop - span.start:,} decisions" for name, span in spans}


def _reason(graph: LaidOut, node: int) -> str:
    return f"the windows of {graph.laid.name(node)} do not fit into the scratchpad"
