"""Families of tasks: one kernel of a random shape, with its tile, its flags, or both to tune."""

from __future__ import annotations

import hashlib
from itertools import chain
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import TaskFamily

from ..hardware.kernel_row import KERNEL_WIDTH, Kernel
from ..hardware.machine import DEFAULT_MACHINE, KERNEL_TIMES, MACHINES, Machine
from .kernel_problem import FlagsProblem, KernelProblem, KernelTuning, SettingsProblem, TileProblem

CORPUS: dict[str, tuple[str, ...]] = {
    "convdraw": (
        "convdraw-t32-infer-b64",
        "convdraw-t32-train-b16",
        "convdraw-t32-train-b32-i64",
        "convdraw-t32-h256-train-b64",
    ),
    "gpt2": (
        "gpt2-124m-train-b8-s1024",
        "gpt2-124m-prefill-b1-s128",
        "gpt2-124m-prefill-b16-s512",
        "gpt2-124m-decode-b32-s512",
        "gpt2-124m-decode-b128-s256",
        "gpt2-355m-prefill-b8-s1024",
        "gpt2-355m-train-b16-s256",
    ),
    "moe": (
        "moe-switch-base-train-b32-s128",
        "moe-switch-base-infer-b8-s512",
        "moe-8-infer-b1-s1024",
        "moe-32-infer-b32-s512",
    ),
    "resnet": (
        "resnet50",
        "resnet-18-train-b64",
        "resnet-34-infer-b8",
        "resnet-50-infer-b1",
        "resnet-50-train-b32",
        "resnet-101-infer-b128",
    ),
    "resnet_v2": ("resnet_v2-50-infer-b1", "resnet_v2-50-infer-b64", "resnet_v2-50-train-b32"),
    "rnn": ("rnn", "rnn-medium-train-b20-s35", "rnn-4layer-train-b64-s128", "rnn-large-infer-b1-s35"),
    "translate": (
        "translate-base-encode-b64-s64",
        "translate-base-train-b64-s64",
        "translate-base-train-b16-s256",
        "translate-base-decode-b64-s64",
        "translate-big-train-b32-s64",
        "translate-big-decode-b128-s64",
    ),
    "wavernn": ("wavernn-infer-b16-f80", "wavernn-train-b32-f4", "wavernn-2048-infer-b8-f80"),
}

_CHAINS = {
    True: (Kernel.ROWS, Kernel.DEPTH, Kernel.COLUMNS),
    False: (Kernel.WIDTH, Kernel.HEIGHT, Kernel.OUTER),
}
"""The sizes in the order in which they are drawn, for matrix products and for loops."""


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
        content = f"{KERNEL_TIMES}|{self._machine}|{self.slots}|{self.kernels.tolist()}"
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


def kernels(programs: tuple[str, ...]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the different kernels of some programs, `(k, KERNEL_WIDTH)`, and how often each occurs, `(k,)`.

    A program that does not ship is lowered on first use, which takes some seconds.
    """
    from .kernel_problem import TileProblem

    rows = np.concatenate([TileProblem(name).kernels for name in programs])
    return np.unique(rows, axis=0, return_counts=True)


class Prior:
    """Prior-guided sampling (Ryu, Park and Sung 2022): sizes are drawn as a chain of conditional frequencies.

    First the kind of kernel, then each size among the kernels of the corpus that have the size before it. What is not
    a size (operands, operations, bytes for each element) is that of a kernel with the last size.

    Args:
      rows: `(k, KERNEL_WIDTH)` the corpus.
      counts: `(k,)` how often each kernel occurs.
    """

    def __init__(self, rows: NDArray[np.float64], counts: NDArray[np.int64]) -> None:
        self._rows, self._counts = rows, counts
        kinds = np.column_stack([rows[:, Kernel.GROUPS] > 0, rows[:, Kernel.GROUPS] > 1, rows[:, Kernel.TAPS] > 1])
        self._kinds = kinds @ [1, 2, 4]

    def draw(self, rng: Generator) -> NDArray[np.float64]:
        """Return a `(KERNEL_WIDTH,)` kernel."""
        place = self._one_of(np.arange(len(self._rows)), rng)
        alike = np.flatnonzero(self._kinds == self._kinds[place])
        chain, sizes = _CHAINS[bool(self._rows[place, Kernel.GROUPS] > 0)], []
        for size in chain:
            sizes.append(self._rows[place, size])
            place = self._one_of(alike[self._rows[alike, size] == sizes[-1]], rng)
        return _resized(self._rows[place], chain, sizes)

    def _one_of(self, places: NDArray[np.int64], rng: Generator) -> int:
        shares = self._counts[places] / self._counts[places].sum()
        return int(rng.choice(places, p=shares))


def _resized(kernel: NDArray[np.float64], chain: tuple[Kernel, ...], sizes: list[float]) -> NDArray[np.float64]:
    """Return a kernel with other sizes; its bytes and its work grow with the operands and the result."""
    first, second, third = np.array(sizes) / np.maximum(1.0, kernel[list(chain)])
    new = kernel.copy()
    new[list(chain)] = sizes
    if kernel[Kernel.GROUPS] > 0:
        result, left, right = first * third, first * second, second * third
        new[Kernel.OUTER] = max(1.0, np.round(kernel[Kernel.OUTER] * result))
    else:
        result, left, right = first * second * third, 1.0, 1.0
    new[[Kernel.READ_LEFT, Kernel.WORK_LEFT]] *= left
    new[[Kernel.READ_RIGHT, Kernel.WORK_RIGHT]] *= right
    new[[Kernel.READ, Kernel.WORK, Kernel.WRITTEN, Kernel.SUMS]] *= result
    return np.round(new)


class Uniform:
    """Kernels that follow no program: every size is uniform on a log scale."""

    def draw(self, rng: Generator) -> NDArray[np.float64]:
        """Return a `(KERNEL_WIDTH,)` kernel."""
        return _product(rng) if rng.random() < 0.5 else _loop(rng)


def _product(rng: Generator) -> NDArray[np.float64]:
    new, size = np.zeros(KERNEL_WIDTH), rng.choice([2.0, 4.0])
    rows, columns, depth = _log_uniform(rng, 1, 65536), _log_uniform(rng, 1, 8192), _log_uniform(rng, 1, 8192)
    groups = _log_uniform(rng, 2, 1024) if rng.random() < 0.25 else 1.0
    taps = rng.choice([3.0, 9.0, 25.0]) if rng.random() < 0.25 else 1.0
    elements = groups * rows * columns
    new[Kernel.GROUPS : Kernel.SUMS] = groups, rows, columns, depth, taps
    new[Kernel.READ_LEFT], new[Kernel.READ_RIGHT] = size * groups * rows * depth, size * groups * depth * columns * taps
    new[Kernel.OUTER : Kernel.SIZE] = groups, rows, columns
    return _fused(new, elements, size, 2, rng)


def _loop(rng: Generator) -> NDArray[np.float64]:
    new, size = np.zeros(KERNEL_WIDTH), rng.choice([2.0, 4.0])
    new[Kernel.OUTER : Kernel.SIZE] = _log_uniform(rng, 1, 4096), _log_uniform(rng, 1, 4096), _log_uniform(rng, 1, 8192)
    return _fused(new, float(np.prod(new[Kernel.OUTER : Kernel.SIZE])), size, 0, rng)


def _fused(
    new: NDArray[np.float64], elements: float, size: float, operands: int, rng: Generator
) -> NDArray[np.float64]:
    """Fill in a result of some elements, and a random number of further operands and operations."""
    more = int(rng.integers(operands == 0, 4))
    new[Kernel.READ], new[Kernel.WRITTEN] = more * elements * size, elements * size
    new[Kernel.OPERANDS], new[Kernel.OPERATIONS] = operands + more, _log_uniform(rng, 1, 64)
    new[Kernel.WORK] = elements * new[Kernel.OPERATIONS]
    new[Kernel.SUMS], new[Kernel.SIZE] = 4 * elements, size
    return new


def _log_uniform(rng: Generator, low: float, high: float) -> float:
    return float(np.round(np.exp(rng.uniform(np.log(low), np.log(high)))))
