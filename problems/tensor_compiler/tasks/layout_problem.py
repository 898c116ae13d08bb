"""Layouts of the important operations as a black-box task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Evaluations, Space, Structure, UserError
from bbo_suite.core.program import Program
from bbo_suite.parts.parts import concatenated

from .program_problem import ProgramProblem, program_picture

if TYPE_CHECKING:
    from ..fusion.fusion_pass import CandidateKernels, Fusion
    from ..layout.layout_pass import LaidOutProgram


class LayoutProblem(ProgramProblem):
    """Which layouts the convolutions, products and reshapes of a program work in, on the simulated tensor compiler.

    One choice per operation: which two dimensions of its result and operands are minor, that is, padded to the
    hardware's tile. Propagation decides all other layouts and inserts copies where two layouts differ; the default
    fusion follows. The default is the cheapest choice for the whole program by an estimate of kernels and copies.
    """

    decision = "layouts of convolutions, products, reshapes"
    time_per_candidate = "800 µs"

    def _prepare(self, path: Path) -> None:
        from ..fusion.state import StateBuffer
        from ..layout.layout_pass import LayoutPass

        self._buffer = StateBuffer()
        self._pass = LayoutPass(self._graph, self._machine)
        if not len(self._pass.nodes):
            raise UserError(f"{path}: no operation of this program has a choice of layouts; nothing to tune")
        self.space = Space(self._pass.options, names=self._name, values=self._values)
        self.default = self._pass.default()

    def _name(self, column: int) -> str:
        return self._graph.names[self._pass.nodes[column]]

    def _values(self, column: int) -> tuple[str, ...]:
        return self._graph.choices[self._graph.signature[self._pass.nodes[column]]]

    def evaluate(self, configs: NDArray) -> Evaluations:
        """Return the run times in seconds of the program, fused by default, under `(n, d)` choices of layouts."""
        return Evaluations.of(np.array([self._seconds(config) for config in configs]))

    def _seconds(self, config: NDArray) -> float:
        return self._fused(self._pass.apply(config))[1]

    def _fused(self, laid: LaidOutProgram) -> tuple[Fusion, float]:
        """Return the fusion pass after the default fusion of a laid-out program, and the run time in seconds."""
        from ..fusion.fusion_pass import Fusion

        fusion = Fusion(laid, self._machine, self._buffer)
        return fusion, float(fusion.seconds(fusion.default()[None])[0])

    def evaluate_parts(self, configs: NDArray) -> Evaluations:
        """Return the run times with the seconds of each kernel, and of each copy that is not fused."""
        seconds, batches = [], []
        for config in configs:
            fusion, _ = self._fused(self._pass.apply(config))
            total, parts = fusion.seconds_of_parts(fusion.state.config[None].copy())
            seconds.append(total[0])
            batches.append(parts)
        return replace(Evaluations.of(np.array(seconds)), parts=concatenated(batches))

    def _analytical_compiler(self) -> Callable[[NDArray], CandidateKernels]:
        from ..fusion.fusion_pass import Fusion, candidate_kernels
        from ..fusion.state import StateBuffer

        machine, buffer = self._machine.analytical_model(), StateBuffer()

        def compiled(config: NDArray) -> CandidateKernels:
            laid = self._pass.apply(config)
            fusion = Fusion(laid, machine, buffer)
            return candidate_kernels(laid, fusion, fusion.default())

        return compiled

    def picture(self, config: NDArray) -> Program:
        """Return the kernels of the default fusion under a `(d,)` row, with the layouts that the row decides."""

        laid = self._pass.apply(config)
        layouts = [{f"layout of {self._name(i)}": self._values(i)[choice]} for i, choice in enumerate(config.tolist())]
        chosen = dict(zip(self._pass.nodes.tolist(), layouts, strict=True))
        return program_picture(laid, self._fused(laid)[0], self._machine, chosen)

    def structure(self) -> Structure:
        """Return which choices interact, the features of each, and the program in its default layouts."""
        from ..structure.declare import declare_layout
        from ..structure.layout import LayoutDecomposition

        return replace(declare_layout(self._pass), parts=LayoutDecomposition(self._pass, self._machine))

    def facts(self) -> dict[str, str]:
        """Return the size of the program and of its default."""
        laid = self._pass.apply(self.default)
        return super().facts() | {
            "operations tuned": f"{len(self.space):,}",
            "copies of the default": f"{int((laid.origin < 0).sum()):,}",
        }
