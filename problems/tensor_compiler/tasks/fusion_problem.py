"""Operator fusion as a black-box task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Evaluations, Space, Structure, UserError
from bbo_suite.core.program import Program

from .program_problem import ProgramProblem, program_picture

if TYPE_CHECKING:
    from ..fusion.fusion_pass import CandidateKernels


class FusionProblem(ProgramProblem):
    """Which producers to fuse into which consumers of a program, on a simulated XLA-like tensor compiler.

    One boolean per producer-consumer edge of the program that can be fused at all. The cost is the program's run time
    on a simulated TPU: each fused kernel streams tiles between memory and scratchpad, duplicated producers are
    computed again, and illegal fusions are skipped. The default is a greedy heuristic in the spirit of XLA's.
    `fusion:my_module.hlo.gz` tunes any program in HLO or StableHLO text. The machine is a TPU v5e; `@` selects another
    one, as in `fusion/resnet50@v4`: v2, v3, v4, v5e, v5p, v6e.
    """

    decision = "which producers are fused into which consumers"
    time_per_candidate = "12 µs"

    def _prepare(self, path: Path) -> None:
        from ..fusion.fusion_pass import Fusion
        from ..layout.layout_pass import LayoutPass

        self._layout = LayoutPass(self._graph, self._machine)
        self._laid = self._layout.apply(self._layout.default())
        self._fusion = Fusion(self._laid, self._machine)
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

    def _analytical_compiler(self) -> Callable[[NDArray], CandidateKernels]:
        from ..fusion.fusion_pass import Fusion, candidate_kernels

        fusion = Fusion(self._laid, self._machine.analytical_model())
        return lambda config: candidate_kernels(self._laid, fusion, config)

    def picture(self, config: NDArray) -> Program:
        """Return the kernels that a `(d,)` row makes."""

        self._fusion.seconds(config[None])
        return program_picture(self._laid, self._fusion, self._machine, {})

    def evaluate_parts(self, configs: NDArray) -> Evaluations:
        """Return the run times with the seconds of each kernel."""
        seconds, parts = self._fusion.seconds_of_parts(configs)
        return replace(Evaluations.of(seconds), parts=parts)

    def structure(self) -> Structure:
        """Return which decisions interact, the features of each, and the graph whose edges they decide."""
        from ..fusion.fusion_pass import Fusion
        from ..structure.declare import declare_fusion
        from ..structure.fusion import FusionDecomposition

        parts = FusionDecomposition(Fusion(self._laid, self._machine))  # with a memory of its own
        return replace(declare_fusion(self._fusion.arrays, len(self.space)), parts=parts)

    def facts(self) -> dict[str, str]:
        """Return the size of the program and of its default."""
        kernels = self._fusion.kernels(self.default)
        slow = kernels.result[np.argmax(kernels.cycles * kernels.runs)]
        return super().facts() | {
            "kernels of the default": f"{len(kernels.result):,}",
            "slowest kernel of the default": f"{self._laid.name(slow)} ({self._laid.opcode(slow)})",
        }
