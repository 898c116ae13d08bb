"""Layouts of the important operations as a black-box task."""

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


class LayoutProblem(Problem):
    """Which layouts the convolutions, products and reshapes of a program work in, on the simulated tensor compiler.

    One choice an operation: which dimensions of its result and its operands are the two minor ones, which are padded
    to the hardware's tile. The compiler's propagation decides about all other operations and inserts copies where two
    layouts meet; then it fuses as it does by default. The default is the cheapest by an estimate of kernels and
    copies, found for the whole program at once.
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
          UserError: the file cannot be read, or no operation of the program has a choice of layouts.
        """
        problem = cls.__new__(cls)
        name, machine = split(path)
        problem._load(Path(name), machine)
        return problem

    def _load(self, path: Path, machine: str) -> None:
        from .build import read_graph  # numba comes with it: only where a program is really loaded
        from .layout import LayoutPass

        self._graph: Graph = read_graph(path)
        self._machine, self._pass = machine, LayoutPass(self._graph, MACHINES[machine])
        if not len(self._pass.nodes):
            raise UserError(f"{path}: no operation of this program has a choice of layouts; nothing to tune")
        self.space = Space(self._pass.options, names=self._name, values=self._values)
        self.default = self._pass.default()

    def _name(self, column: int) -> str:
        return self._graph.names[self._pass.nodes[column]]

    def _values(self, column: int) -> tuple[str, ...]:
        return self._graph.choices[self._graph.sort[self._pass.nodes[column]]]

    def evaluate(self, configs: NDArray) -> Evaluations:
        """Return the run times in seconds of the program, fused by default, under `(n, d)` choices of layouts."""
        return Evaluations.of(np.array([self._seconds(config) for config in configs]))

    def _seconds(self, config: NDArray) -> float:
        from .fusion import Fusion

        fusion = Fusion(self._pass.apply(config), MACHINES[self._machine])
        return float(fusion.seconds(fusion.default()[None])[0])

    def fingerprint(self) -> str:
        """Return a text that changes with the program, the machine and the cost model."""
        content = f"layout|{COST_MODEL}|{MACHINES[self._machine]}|{self._graph.digest()}"
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def structure(self) -> Structure:
        """Return which choices interact, what is known of each, and the program in its default layouts."""
        from .layout_structure import declare

        return declare(self._pass)

    def facts(self) -> dict[str, str]:
        """Return the machine, and the size of the program and of its default."""
        laid = self._pass.apply(self.default)
        return {
            "machine": self._machine,
            "operations": f"{int((self._graph.kind > 1).sum()):,}",
            "operations tuned": f"{len(self.space):,}",
            "copies of the default": f"{int((laid.origin < 0).sum()):,}",
        }
