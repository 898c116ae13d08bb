"""Tile sizes and code generation flags of a program's kernels as black-box tasks."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bbo_suite import UserError

from .kernel_tuning import KernelTuning
from .program_problem import ProgramProblem

if TYPE_CHECKING:
    from .on_paper import OnPaper


class KernelProblem(KernelTuning, ProgramProblem):
    """Settings of the kernels of the default fusion; a subclass says which slots are tuned."""

    def _without_kernel(self, name: str) -> str:
        found = re.fullmatch(
            r"(.*)#([\w-]+)", name
        )  # a file's name may contain a # that is followed by more than a word
        program, self._kernel = (found[1], found[2]) if found else (name, "")
        return program

    def _prepare(self, path: Path) -> None:
        from ..fusion.fusion_pass import Fusion
        from ..hardware.kernel_settings import compile_kernels
        from ..layout.layout_pass import LayoutPass

        layout = LayoutPass(self._graph, self._machine)
        self._laid = layout.apply(layout.default())
        fusion = Fusion(self._laid, self._machine)
        kernels = fusion.kernels(fusion.default())
        settings = compile_kernels(kernels.rows, kernels.runs, self._machine)
        tuned = np.flatnonzero(settings.fits)
        if self._kernel:
            tuned = tuned[[_number(self._kernel, len(tuned), path)]]
        self._results = kernels.result[tuned]
        self._tune(settings, tuned, np.ones(1) if self._kernel else settings.runs[tuned], self._machine)

    def _on_paper(self) -> Callable[[NDArray], OnPaper]:
        from ..fusion.fusion_pass import Fusion
        from .on_paper import on_paper

        fusion = Fusion(self._laid, self._machine.on_paper())
        found = on_paper(self._laid, fusion, fusion.default())
        same = found._replace(rows=self.kernels, result=self._results, runs=self._runs)

        def compiled(config: NDArray) -> OnPaper:
            values = self._chosen.copy()
            values[:, list(self.slots)] = self._values[np.arange(len(config)), config].reshape(len(values), -1)
            return same._replace(values=values)

        return compiled

    def fingerprint(self) -> str:
        """Return a text that also changes with the kernels that are tuned."""
        return hashlib.sha256(f"{super().fingerprint()}|{self._results.tolist()}".encode()).hexdigest()[:16]

    def facts(self) -> dict[str, str]:
        """Return the size of the program, the number of kernels, and the one that is tuned or the slowest."""
        return super().facts() | {"kernels": f"{len(self._results):,}"} | self._named()

    def _named(self) -> dict[str, str]:
        if self._kernel:
            return {f"kernel #{self._kernel}": self.kernel_name(0)}
        from ..hardware.timing import kernel_cycles

        machine, settings = self._machine.array(), zip(self.kernels, self._chosen, strict=True)
        cycles = [kernel_cycles(machine, kernel, chosen[:3], chosen[3:]) for kernel, chosen in settings]
        slowest = int(np.argmax(cycles * self._runs))
        return {"slowest kernel": f"#{slowest} ({self.kernel_name(slowest)})"}

    def kernel_name(self, place: int) -> str:
        """Return the name of a kernel's result."""
        return self._laid.name(self._results[place])


class TileProblem(KernelProblem):
    """The tile size of each kernel of a program, on the simulated tensor compiler.

    Three sizes per kernel: outer, rows and columns of a loop; rows, columns and depth of a matrix product. A tile whose
    windows do not fit into the scratchpad is a compile error. `tile/resnet50` tunes all kernels of the default fusion.
    `tile/resnet50#7` tunes only kernel 7, counted from 0, which is small enough for exhaustive search. The default is
    the choice of the compiler's analytical model.
    """

    slots = range(3)


class FlagsProblem(KernelProblem):
    """Code generation flags of each kernel of a program, on the simulated tensor compiler.

    Buffers per window, unrolling, prefetched windows, which operand of a matrix product stays, partial sums, and vector
    registers handled at once. `flags/resnet50` tunes all kernels of the default fusion. `flags/resnet50#7` tunes only
    kernel 7, counted from 0, which is small enough for exhaustive search.
    """

    slots = range(3, 9)


class SettingsProblem(KernelProblem):
    """Tile size and code generation flags of each kernel of a program, together, on the simulated tensor compiler.

    `kernel/resnet50` tunes all kernels of the default fusion, `kernel/resnet50#7` only kernel 7, counted from 0. One
    kernel has up to some hundred thousand settings.
    """

    slots = range(9)


def _number(text: str, kernels: int, path: Path) -> int:
    if not text.isdecimal() or int(text) >= kernels:
        raise UserError(f"{path.name} has kernels #0 to #{kernels - 1}, not #{text}")
    return int(text)
