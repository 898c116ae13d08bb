"""Tile sizes and code generation flags of kernels as black-box tasks."""

from __future__ import annotations

import hashlib
import re
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Evaluations, Kind, Parts, Problem, Space, Status, Structure, UserError
from bbo_suite.core.variants import NUMBER

from ..hardware.machine import Machine
from .program_problem import ProgramProblem

if TYPE_CHECKING:
    from bbo_suite.core.task import Screen
    from bbo_suite.parts.table import TableDecomposition

    from ..fusion.fusion_pass import CandidateKernels
    from ..hardware.kernel_settings import Settings


class KernelTuning(Problem):
    """Some settings of k kernels on one machine.

    Attributes:
      slots: which settings are tuned, as columns of `hardware.kernel_settings.SLOTS`.
      kernels: `(k, KERNEL_WIDTH)` what is tuned.
      runs: `(k,)` how often each runs.
    """

    slots: range
    kernels: NDArray[np.float64]
    runs: NDArray[np.float64]

    @abstractmethod
    def kernel_name(self, place: int) -> str:
        """Return the name of a kernel."""

    def _tune(self, settings: Settings, tuned: NDArray[np.int64], runs: NDArray[np.float64], machine: Machine) -> None:
        """Set the space and the default for the `tuned` ones of some kernels, of which each runs so often."""
        from ..hardware.kernel_settings import SLOTS

        columns = [settings.values(int(k), slot) for k in tuned for slot in self.slots]
        self._slots = np.tile(self.slots, len(tuned))
        sizes = np.array([len(values) for values in columns])
        self._values = np.zeros((len(columns), sizes.max()))
        for column, values in enumerate(columns):
            self._values[column, : len(values)] = values
        self._starts = np.arange(0, len(columns) + 1, len(self.slots))
        self.kernels, self._chosen, self.runs = settings.kernels[tuned], settings.chosen[tuned], runs
        self._machine = machine
        kinds = np.where(self._slots == SLOTS.index("order"), Kind.CHOICE, Kind.SCALE)
        self.space = Space(sizes, kinds, names=self._name, values=lambda i: self._values[i, : sizes[i]].tolist())
        wanted = self._chosen[:, list(self.slots)].reshape(-1)
        self.default = np.abs(self._values - wanted[:, None]).argmin(axis=1)

    def _name(self, column: int) -> str:
        from ..hardware.kernel_settings import SLOTS

        return f"{self.kernel_name(column // len(self.slots))}: {SLOTS[self._slots[column]]}"

    def evaluate(self, configs: NDArray) -> Evaluations:
        """Return the seconds of all kernels in one run of the program, or of a single kernel in one run of it."""
        seconds, overflowing = self._timed(configs, self._machine.array())
        status = np.where(overflowing < 0, Status.OK, Status.COMPILE_ERROR).astype(np.int8)
        return Evaluations(seconds, status, {int(b): self._reason(overflowing[b]) for b in np.flatnonzero(status)})

    def _timed(self, configs: NDArray, machine: NDArray) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the `(n,)` seconds on a machine, and the first kernel of each whose windows overflow, or -1."""
        from ..hardware.kernel_settings import tuned_seconds

        rows, n = np.require(configs, np.int64, ["C", "W"]), len(configs)
        seconds, overflowing = np.empty(n), np.empty(n, np.int64)
        kernels = (self.kernels, self.runs, self._chosen, machine)
        tuned_seconds(rows, self._slots, self._values, self._starts, *kernels, seconds, overflowing)
        return seconds, overflowing

    def _estimate(self) -> Screen:
        """Return the times by the compiler's analytical model."""
        analytical = self._machine.analytical_model().array()
        return lambda configs: self._timed(configs, analytical)[0]

    def evaluate_parts(self, configs: NDArray) -> Evaluations:
        """Return the seconds of all kernels, and of each."""
        from ..hardware.kernel_settings import seconds_of_kernels

        n, k = len(configs), len(self.kernels)
        seconds, rows = np.empty((n, k)), np.require(configs, np.int64, ["C", "W"])
        kernels = (self.kernels, self._chosen, self._machine.array())
        seconds_of_kernels(rows, self._slots, self._values, self._starts, *kernels, seconds)
        described = self._parts.describe(configs)
        parts = Parts(described.starts, described.keys, described.counts, seconds.reshape(-1))
        return replace(self.evaluate(configs), parts=parts)

    @cached_property
    def _parts(self) -> TableDecomposition:
        from bbo_suite.parts.table import TableDecomposition

        from ..fusion.kernels import row_key
        from ..hardware.kernel_row import Kernel

        contents = np.array([row_key(row) for row in self.kernels], np.uint64)
        columns = [np.arange(*ends) for ends in pairwise(self._starts)]
        names = tuple(column.name.lower() for column in Kernel)
        return TableDecomposition(columns, contents, self.runs, self.kernels, names, self._values)

    def _reason(self, kernel: int) -> str:
        return f"the windows of {self.kernel_name(kernel)} do not fit into the scratchpad"

    def structure(self) -> Structure:
        """Return that the settings of one kernel interact, and the features of the kernel."""
        k, s = len(self.kernels), len(self.slots)
        places = np.arange(k * s)
        others = np.array([[j for j in range(s) if j != i] for i in range(s)], np.int32)
        neighbours = (places // s * s)[:, None] + others[places % s]
        numbers = np.repeat(np.log1p(np.column_stack([self.kernels, self.runs])), s, axis=0)
        features = np.hstack([np.eye(s)[places % s], numbers]).astype(np.float32)
        names = (*(f"slot {i}" for i in range(s)), *(f"log {i}" for i in range(numbers.shape[1])))
        starts = np.arange(0, k * s * (s - 1) + 1, s - 1)
        return Structure(starts, neighbours.reshape(-1), features, names, parts=self._parts)


class KernelProblem(KernelTuning, ProgramProblem):
    """Settings of the kernels of the default fusion; a subclass says which slots are tuned.

    Attributes:
      results: `(k,)` the node of the laid-out program that each kernel computes.
    """

    time_per_candidate = "8 µs"

    def _without_kernel(self, name: str) -> str:
        found = re.fullmatch(r"(.*)#([\w-]+)", name)  # a file's name may contain a # with more than a word behind it
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
        self.results = kernels.result[tuned]
        self._tune(settings, tuned, np.ones(1) if self._kernel else settings.runs[tuned], self._machine)

    def _analytical_compiler(self) -> Callable[[NDArray], CandidateKernels]:
        from ..fusion.fusion_pass import Fusion, candidate_kernels

        fusion = Fusion(self._laid, self._machine.analytical_model())
        found = candidate_kernels(self._laid, fusion, fusion.default())
        same = found._replace(rows=self.kernels, result=self.results, runs=self.runs)

        def compiled(config: NDArray) -> CandidateKernels:
            values = self._chosen.copy()
            values[:, list(self.slots)] = self._values[np.arange(len(config)), config].reshape(len(values), -1)
            return same._replace(values=values)

        return compiled

    def fingerprint(self) -> str:
        """Return a text that also changes with the kernels that are tuned."""
        return hashlib.sha256(f"{super().fingerprint()}|{self.results.tolist()}".encode()).hexdigest()[:16]

    def facts(self) -> dict[str, str]:
        """Return the size of the program, the number of kernels, and the one that is tuned or the slowest."""
        return super().facts() | {"kernels": f"{len(self.results):,}"} | self._named()

    def _named(self) -> dict[str, str]:
        if self._kernel:
            return {f"kernel #{self._kernel}": self.kernel_name(0)}
        from ..hardware.timing import kernel_cycles

        machine, settings = self._machine.array(), zip(self.kernels, self._chosen, strict=True)
        cycles = [kernel_cycles(machine, kernel, chosen[:3], chosen[3:]) for kernel, chosen in settings]
        slowest = int(np.argmax(cycles * self.runs))
        return {"slowest kernel": f"#{slowest} ({self.kernel_name(slowest)})"}

    def kernel_name(self, place: int) -> str:
        """Return the name of a kernel's result."""
        return self._laid.name(self.results[place])


class TileProblem(KernelProblem):
    """The tile size of each kernel of a program, on the simulated tensor compiler.

    Three sizes per kernel: outer, rows and columns of a loop; rows, columns and depth of a matrix product. A tile whose
    windows do not fit into the scratchpad is a compile error. `tile/resnet50` tunes all kernels of the default fusion.
    `tile/resnet50#7` tunes only kernel 7, counted from 0, which is small enough for exhaustive search. The default is
    the choice of the compiler's analytical model.
    """

    decision = "the tile of each kernel"
    slots = range(3)


class FlagsProblem(KernelProblem):
    """Code generation flags of each kernel of a program, on the simulated tensor compiler.

    Buffers per window, unrolling, prefetched windows, which operand of a matrix product stays, partial sums, and vector
    registers handled at once. `flags/resnet50` tunes all kernels of the default fusion. `flags/resnet50#7` tunes only
    kernel 7, counted from 0, which is small enough for exhaustive search.
    """

    decision = "six code generation flags of each kernel"
    slots = range(3, 9)


class SettingsProblem(KernelProblem):
    """Tile size and code generation flags of each kernel of a program, together, on the simulated tensor compiler.

    `kernel/resnet50` tunes all kernels of the default fusion, `kernel/resnet50#7` only kernel 7, counted from 0. One
    kernel has up to some hundred thousand settings.
    """

    decision = "tile and flags of each kernel, together"
    slots = range(9)


def _number(text: str, kernels: int, path: Path) -> int:
    if not NUMBER.fullmatch(text) or int(text) >= kernels:
        raise UserError(f"{path.name} has kernels #0 to #{kernels - 1}, not #{text}")
    return int(text)
