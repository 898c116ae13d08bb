"""Operator fusion as a black-box task."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Evaluations, Problem, Space, Structure, UserError

from .machine import COST_MODEL, MACHINES, split
from .programs import names, program

if TYPE_CHECKING:
    from .graph import Graph


class FusionProblem(Problem):
    """Which producers to fuse into which consumers of a program, on a simulated XLA-like tensor compiler.

    One boolean per producer-consumer edge of the program that can be fused at all. The cost is the program's run time
    on a simulated TPU: each fused kernel streams tiles between memory and scratchpad, duplicated producers are
    computed again, and what is illegal is left unfused. The default is a greedy heuristic in the spirit of XLA's.
    `fusion:my_module.hlo.gz` tunes any program in HLO or StableHLO text. The machine is a TPU v5e, or another one by
    `fusion/resnet50@v4`: v2, v3, v4, v5e, v5p, v6e.
    """

    instances: ClassVar[tuple[str, ...]] = names()
    unit = "seconds"

    def __init__(self, instance: str) -> None:
        name, machine = split(instance)
        self._load(program(name), machine)

    @classmethod
    def from_file(cls, path: str) -> Self:
        """Return the task of fusing a user's program, in HLO or StableHLO text, plain or gzipped.

        Raises:
          UserError: the file cannot be read, or no edge of the program can be fused.
        """
        problem = cls.__new__(cls)
        name, machine = split(path)
        problem._load(Path(name), machine)
        return problem

    def _load(self, path: Path, machine: str) -> None:
        from .build import read_graph  # numba comes with it: only where a program is really loaded
        from .fusion import Fusion
        from .layout import LayoutPass

        self._graph: Graph = read_graph(path)
        self._machine = machine
        self._layout = LayoutPass(self._graph, MACHINES[machine])
        self._laid = self._layout.apply(self._layout.default())
        self._fusion = Fusion(self._laid, MACHINES[machine])
        d = len(self._fusion.columns)
        if not d:
            raise UserError(f"{path}: no operation of this program can be fused into another; nothing to tune")
        self.space = Space(np.full(d, 2), names=self._name, values=lambda i: (False, True))
        self.default = self._fusion.default()

    def _name(self, column: int) -> str:
        return self._layout.fusion_name(self._fusion.columns[column])

    def evaluate(self, configs: NDArray) -> Evaluations:
        """Return the run times in seconds of the program under `(n, d)` fusion decisions."""
        return Evaluations.of(self._fusion.seconds(configs))

    def fingerprint(self) -> str:
        """Return a text that changes with the program, the machine and the cost model."""
        content = f"fusion|{COST_MODEL}|{MACHINES[self._machine]}|{self._graph.digest()}"
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def structure(self) -> Structure:
        """Return which decisions interact, what is known of each, and the graph whose edges they decide."""
        from .fusion_structure import declare

        return declare(self._fusion.arrays, len(self.space))

    def facts(self) -> dict[str, str]:
        """Return the size of the program and of its default."""
        kernels = self._fusion.kernels(self.default)
        operations = int((self._fusion.arrays.kind > 1).sum())
        slow = kernels.result[np.argmax(kernels.cycles * kernels.runs)]
        return {
            "machine": self._machine,
            "operations": f"{operations:,}",
            "kernels of the default": f"{len(kernels.result):,}",
            "slowest kernel of the default": f"{self._laid.name(slow)} ({self._laid.opcode(slow)})",
        }
