"""All four passes of the compiler as one task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Evaluations, Space, Status, Structure
from bbo_suite.core.program import Change, Program
from bbo_suite.parts.parts import concatenated

from .program_problem import ProgramProblem, program_picture

if TYPE_CHECKING:
    from ..fusion.fusion_pass import CandidateKernels
    from ..passes import LayoutResult


class JointProblem(ProgramProblem):
    """Layout, fusion, tiles and flags of a program together, on the simulated tensor compiler.

    A candidate decides all passes of the compiler: the layouts of important operations, which producers to fuse into
    which consumers, and the tile and the flags of the kernel around each operation. Decisions without effect under the
    earlier ones are ignored, such as the tile of an operation that has no kernel of its own. A tile whose windows do
    not fit into the scratchpad is a compile error. The default is the compiler's choice in every pass. The strategy
    `joint` sees the passes; all other strategies see one large space.
    """

    decision = "layouts, fusion, tiles and flags at once"
    time_per_candidate = "45 µs"

    def _prepare(self, path: Path) -> None:
        from ..passes import Passes

        self._passes = Passes(self._graph, self._machine)
        self.space = Space(self._passes.flat.sizes, names=self._passes.flat.name, values=self._passes.flat.values)
        self.default = self._passes.start()

    def evaluate(self, configs: NDArray) -> Evaluations:
        """Return the run times in seconds of the program under `(n, d)` decisions of all passes."""
        seconds, overflowing = np.empty(len(configs)), np.full(len(configs), -1)
        own = configs[:, self._passes.flat.span["layout"]]
        _, first, group = np.unique(own, axis=0, return_index=True, return_inverse=True)
        reasons: dict[int, str] = {}
        for number, representative in enumerate(first.tolist()):
            graph, rows = self._passes.apply("layout", self._graph, configs[representative]), group == number
            seconds[rows], overflowing[rows] = self._passes.seconds(graph, configs[rows])
            reasons |= {int(i): _reason(graph, overflowing[i]) for i in np.flatnonzero(rows & (overflowing >= 0))}
        status = np.where(overflowing < 0, Status.OK, Status.COMPILE_ERROR).astype(np.int8)
        return Evaluations(seconds, status, reasons)

    def evaluate_parts(self, configs: NDArray) -> Evaluations:
        """Return the run times with the seconds of each kernel."""
        result, passes = self.evaluate(configs), self._passes
        batches = []
        for config in configs:
            graph = passes.apply("layout", self._graph, config)
            passes.seconds(graph, config[None])
            batches.append(graph.fusion.last_parts(passes.flat.settings(graph.laid, config[None])[0]))
        return replace(result, parts=concatenated(batches))

    def _analytical_compiler(self) -> Callable[[NDArray], CandidateKernels]:
        from ..fusion.fusion_pass import Fusion, candidate_kernels
        from ..fusion.state import StateBuffer
        from ..passes import tuned_settings

        passes, machine, buffer = self._passes, self._machine.analytical_model(), StateBuffer()

        def compiled(config: NDArray) -> CandidateKernels:
            graph = passes.apply("layout", self._graph, config)
            found = candidate_kernels(graph.laid, Fusion(graph.laid, machine, buffer), config[graph.decisions.columns])
            numbers = passes.flat.settings(graph.laid, config[None])[0][found.result]
            return found._replace(values=tuned_settings(found.rows, found.runs, numbers, self._machine))

        return compiled

    def changes(self, config: NDArray) -> list[Change]:
        """Leave out decisions without effect under the earlier ones, and give the values of tiles and flags."""
        flat, graph = self._passes.flat, self._passes.apply("layout", self._graph, config)
        fused = self._passes.apply("fusion", graph, config)
        live = [np.arange(flat.span["layout"].stop), graph.decisions.columns]
        live += [decided.columns for decided in fused.decisions.values()]
        settings = self._passes.settings(graph, fused, config)
        default, changes = self.default_row(), []
        for i in np.concatenate(live).tolist():
            values = flat.values(i)
            label = settings[i] if i in settings else values[config[i]]
            changes.append(Change(i, flat.name(i), str(values[default[i]]), str(label)))
        return [change for change in changes if config[change.column] != default[change.column]]

    def picture(self, config: NDArray) -> Program:
        """Return the kernels that a `(d,)` row makes, with its layouts, and the tile and flags of each kernel."""

        passes, flat = self._passes, self._passes.flat
        graph = passes.apply("layout", self._graph, config)
        settings = passes.settings(graph, passes.apply("fusion", graph, config), config)
        chosen: dict[int, dict[str, str]] = {}
        for i, node in enumerate(passes.layout.nodes.tolist()):
            chosen[node] = {flat.name(i): str(flat.values(i)[config[i]])}
        for i, value in settings.items():
            node, name = flat.setting(i)
            chosen.setdefault(node, {})[name] = f"{value:g}"
        passes.seconds(graph, config[None])
        return program_picture(graph.laid, graph.fusion, self._machine, chosen)

    def structure(self) -> Structure:
        """Return which decisions interact, the features of each, the graph, and the passes."""
        from ..structure.declare import declare_joint
        from ..structure.joint import JointDecomposition

        passes = self._passes
        parts = JointDecomposition(passes.layout, passes.flat, self._machine)
        return replace(declare_joint(passes, passes.apply("layout", self._graph, self.default_row())), parts=parts)

    def facts(self) -> dict[str, str]:
        """Return how many decisions each pass takes."""
        spans = self._passes.flat.span.items()
        return super().facts() | {f"decisions of {name}": f"{span.stop - span.start:,}" for name, span in spans}


def _reason(graph: LayoutResult, node: int) -> str:
    return f"the windows of {graph.laid.name(node)} do not fit into the scratchpad"
