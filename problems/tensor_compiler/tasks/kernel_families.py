"""Families of tasks: one kernel of a random shape, with its tile, its flags, or both to tune."""

from __future__ import annotations

import hashlib
from itertools import chain
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import TaskFamily

from ..hardware.machine import COST_MODEL, DEFAULT_MACHINE, MACHINES, Machine
from .kernel_corpus import CORPUS, kernels
from .kernel_problem import FlagsProblem, KernelProblem, SettingsProblem, TileProblem
from .kernel_shapes import Prior, Uniform
from .kernel_tuning import KernelTuning


class OneKernel(KernelTuning):
    """A kernel that belongs to no program.

    Args:
      kernel: `(KERNEL_WIDTH,)`.
      slots: which settings are tuned.
      machine: what it runs on.
    """

    def __init__(self, kernel: NDArray[np.float64], slots: range, machine: Machine = MACHINES[DEFAULT_MACHINE]) -> None:
        from ..hardware.kernel_settings import compile_kernels

        self.slots = slots
        settings = compile_kernels(kernel[None], np.ones(1), machine)
        self.fits = bool(settings.fits[0])
        """Whether any tile fits into the scratchpad; if none does, nothing can be tuned."""
        self._tune(settings, np.arange(1), np.ones(1), machine)

    def settings(self, configs: NDArray) -> NDArray[np.float64]:
        """Return the `(n, 9)` settings that `(n, d)` candidates stand for, in the order of `SLOTS`."""
        found = np.repeat(self._chosen, len(configs), axis=0)
        found[:, self.slots] = self._values[np.arange(len(self._values)), configs]
        return found

    def kernel_name(self, place: int) -> str:
        """Return the only name."""
        return "kernel"

    def fingerprint(self) -> str:
        """Return a text that changes with the kernel, what is tuned and the cost model."""
        content = f"{COST_MODEL}|{self._machine}|{self.slots}|{self.kernels.tolist()}"
        return hashlib.sha256(content.encode()).hexdigest()[:16]


class KernelFamily(TaskFamily):
    """One kernel whose shape is drawn anew for each task.

    `prior`: shapes as frequent as in the programs of `kernel_corpus.CORPUS`. `uniform`: sizes uniform on a log scale.
    """

    instances = ("prior", "uniform")
    problem: ClassVar[type[KernelProblem]]

    def __init__(self, instance: str) -> None:
        super().__init__(instance)
        programs = tuple(chain.from_iterable(CORPUS.values()))
        self._shapes = Uniform() if instance == "uniform" else Prior(*kernels(programs))

    def sample(self, rng: Generator) -> OneKernel:
        """Return a kernel that fits into the scratchpad and has something to tune."""
        while True:
            drawn = OneKernel(self._shapes.draw(rng), self.problem.slots)
            if drawn.fits and drawn.space.sizes.max() > 1:
                return drawn


class TileFamily(KernelFamily):
    """Tile sizes."""

    problem = TileProblem


class FlagsFamily(KernelFamily):
    """Code generation flags."""

    problem = FlagsProblem


class SettingsFamily(KernelFamily):
    """Tile sizes and flags together."""

    problem = SettingsProblem
