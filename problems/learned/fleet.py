"""The kernels of the catalogue's programs on the simulated TPU, with their tiles and flags, as a fleet's library."""

from __future__ import annotations

import hashlib
from dataclasses import fields, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from bbo_suite import UserError
from bbo_suite.fleet.library import Groups, KernelLibrary, Progress, cached_arrays

from ..tensor_compiler.hardware.all_settings import fitting_settings, legal, setting_counts, times, unpipelined
from ..tensor_compiler.hardware.kernel_row import Kernel
from ..tensor_compiler.hardware.kernel_settings import FLAG_SLOTS, TILE_SLOTS, Settings, compile_kernels
from ..tensor_compiler.hardware.machine import COST_MODEL, DEFAULT_MACHINE, KERNEL_TIMES, MACHINES, Machine
from ..tensor_compiler.tasks.kernel_families import OneKernel
from ..tensor_compiler.tasks.programs import names as program_names
from .dataset import SHIPPED, TRAINING

_VERSION = 1
"""Raised whenever the content of the cached file changes."""
_RELEASE = 0.15
"""How much a release changes each constant of the machine that is fitted, as the deviation of its logarithm."""
_UNCHANGED = ("hertz", "memory", "matrix", "vector", "scratchpad", "side")
"""What no release changes: the chip itself."""
_TRAINING_ROWS = 22_405 * 33
"""Settings that were timed to train the model that ships: one, 16 tiles and 16 flags of each kernel."""
PICKS = 5
"""Tiles, and flags, that the learned model picks for a kernel, as XTAT does."""
_SHOWN = ("rnn", "resnet50")
_MOST = {"small": 2000, "catalogue": 1000, "large": 2500}


def released(version: int) -> Machine:
    """Return the machine as a compiler's code uses it: a release changes the constants that are fitted."""
    machine = MACHINES[DEFAULT_MACHINE]
    if not version:
        return machine
    rng = np.random.default_rng([version, 28])
    names = [field.name for field in fields(machine) if field.name not in _UNCHANGED]
    factors = np.exp(rng.normal(0, _RELEASE, len(names)))
    changed = {name: getattr(machine, name) * f for name, f in zip(names, factors.tolist(), strict=True)}
    return replace(machine, **changed | {"stream": min(1.0, changed["stream"])})


class TpuKernels(KernelLibrary):
    """Kernels of real programs on the simulated TPU v5e; first their tiles are tuned, then their flags.

    `small`: two programs that ship. `catalogue`: all programs of the catalogue that the learned model was not trained
    on; it takes some minutes on first use. `large`: the same with more variants, for fleets of 100,000 kernels. Besides
    the compiler's own layout and fusion, each program has variants: kernels of random layouts and fusions near these.
    """

    instances = ("small", "catalogue", "large")
    machine = DEFAULT_MACHINE
    trained_on = _TRAINING_ROWS

    def __init__(self, instance: str, shown: Progress = lambda text: None) -> None:
        content = _stored(instance, shown)
        self._rows, self._picks, self._number = content["rows"], content["picks"], content["number"]
        self.content, self.predicted = content["keys"], content["predicted"]
        self.programs = Groups(content["starts"], content["kernels"], content["runs"])
        self.variants = Groups(content["variant_starts"], content["variants"])
        self.family, self.features = _families(self._rows), np.log1p(self._rows).astype(np.float32)
        self.counts = setting_counts(self._rows)
        parts = (self.content, self.variants.kernels, self._picks, self.predicted)
        self._digest = hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()
        self._settings = cache(self._compile)

    def fingerprint(self) -> str:
        """Return a text that changes with the kernels, the cost model and what a release changes."""
        content = f"{_VERSION}|{KERNEL_TIMES}|{released(0)}|{_RELEASE}|{self._digest}"
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def _compile(self, version: int) -> Settings:
        return compile_kernels(self._rows, np.ones(len(self._rows)), released(version))

    def defaults(self, version: int, kernels: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the `(n, 9)` settings that the compiler chooses."""
        return self._settings(version).chosen[kernels]

    def tunable(self, version: int) -> NDArray[np.bool_]:
        """Return `(k,)` True for kernels that some tile fits."""
        return self._settings(version).fits

    def default_seconds(self, version: int) -> NDArray[np.float64]:
        """Return the `(k,)` seconds of one run of each kernel with the compiler's settings."""
        every = np.arange(len(self._rows))
        seconds = self.seconds(version, every, self.defaults(version, every))
        return np.where(np.isfinite(seconds), seconds, unpipelined(self._rows, released(version)))

    def seconds(self, version: int, kernels: NDArray[np.int64], settings: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the `(n,)` seconds of one run; inf where the windows do not fit into the scratchpad."""
        return times(self._rows, kernels, settings, released(version))

    def compiled(
        self, version: int, kernels: NDArray[np.int64], given: NDArray[np.float64], stage: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return all tiles (stage 0) or all flags (stage 1) that fit."""
        slots = FLAG_SLOTS if stage else TILE_SLOTS
        return fitting_settings(self._rows[kernels], given, slots, released(version))

    def problem(self, version: int, kernel: int) -> OneKernel:
        """Return the task to tune tile and flags of a kernel at once."""
        return OneKernel(self._rows[kernel], range(9), released(version))

    def settings_of(self, version: int, kernel: int, configs: NDArray) -> NDArray[np.float64]:
        """Return the `(n, 9)` settings that `(n, 9)` candidates of that task stand for."""
        return self.problem(version, kernel).settings(configs)

    def picks(self, kernels: NDArray[np.int64], given: NDArray[np.float64], stage: int) -> NDArray[np.float64]:
        """Return the `(n, PICKS, 9)` tiles or flags that the learned model ranks first."""
        own = self._picks[self._number[kernels], stage].astype(np.float64)
        changed = slice(3, 9) if stage else slice(0, 3)
        settings = np.repeat(given[:, None], own.shape[1], axis=1)
        settings[..., changed] = own[..., changed]
        return settings

    def adapted(self, kernels: NDArray[np.int64], settings: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return settings whose tiles are cut to legal sizes of the kernels."""
        return legal(self._rows[kernels], settings)


def _families(rows: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the kind of each kernel (loop, product, product in groups, convolution) times its size in decades."""
    kind = np.select([rows[:, Kernel.TAPS] > 1, rows[:, Kernel.GROUPS] > 1, rows[:, Kernel.GROUPS] > 0], [3, 2, 1], 0)
    moved = rows[:, Kernel.READ : Kernel.WORK].sum(axis=1) + rows[:, Kernel.WRITTEN]
    return kind * 16 + np.clip(np.log10(np.maximum(moved, 1)), 0, 15).astype(np.int64)


def _programs(instance: str) -> tuple[str, ...]:
    return _SHOWN if instance == "small" else tuple(name for name in program_names() if name not in TRAINING)


def _stored(instance: str, shown: Progress) -> dict[str, NDArray]:
    """Return the arrays of a library from the cache, after making them once."""
    if instance not in TpuKernels.instances:
        raise UserError(f"there is no library tpu/{instance}; choose one of {', '.join(TpuKernels.instances)}")
    text = f"{_VERSION}|{COST_MODEL}|{instance}|{_MOST[instance]}|{_programs(instance)}|{MACHINES[DEFAULT_MACHINE]}"
    digest = hashlib.sha256(text.encode() + SHIPPED.read_bytes()).hexdigest()[:12]
    return cached_arrays(f"library-{instance}-{digest}", lambda: _make(instance, shown))


def _make(instance: str, shown: Progress) -> dict[str, NDArray]:
    from .fleet_kernels import Read, rank
    from .screen import read_model

    machine, rng = MACHINES[DEFAULT_MACHINE], np.random.default_rng(28)
    read = Read.of(_programs(instance), machine, _MOST[instance], rng, shown)
    made = compile_kernels(read.rows, np.ones(len(read.rows)), machine)
    tuned = np.flatnonzero(made.fits)
    model = read_model("learned", "", DEFAULT_MACHINE)
    arguments = (read.rows[tuned], read.graphs.take(tuned), made.chosen[tuned], machine, PICKS, shown)
    picks, saved = rank(model, *arguments)
    number, predicted = np.zeros(len(read.rows), np.int64), np.zeros(len(read.rows))
    number[tuned], predicted[tuned] = np.arange(len(tuned)), saved
    return {
        "rows": read.rows, "keys": read.keys, "picks": picks, "number": number, "predicted": predicted,
        "starts": read.programs.starts, "kernels": read.programs.kernels, "runs": np.asarray(read.programs.runs),
        "variant_starts": read.variants.starts, "variants": read.variants.kernels,
    }  # fmt: skip
