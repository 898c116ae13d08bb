"""Data sets of kernels: their settings with run times, how these are drawn, and files of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite.core.versions import content
from bbo_suite.files.arrays import ArrayFile

from ..tensor_compiler.hardware.all_settings import fitting_settings, times
from ..tensor_compiler.hardware.kernel_settings import SLOTS, compile_kernels
from ..tensor_compiler.hardware.machine import KERNEL_TIMES, Machine, Rate
from ..tensor_compiler.hardware.timing import shrink_tile
from .kernels import OPCODES, KernelGraphs, rows_of

_FILE = ArrayFile(
    "data set of kernels",
    1,
    "make one with `python -m bbo_problems.learned data`",
    {"cost model": KERNEL_TIMES, "opcodes": len(OPCODES)},
    1 << 30,
)


@dataclass(frozen=True)
class Settings:
    """Some settings of each of k kernels, s in all: tiles with the default flags, or flags with the default tile.

    Attributes:
      starts: `(k + 1,)`; those of kernel i are `starts[i]:starts[i + 1]`.
      values: `(s, 9)` in the order of `SLOTS`.
      estimates: `(s,)` seconds by the compiler's analytical model.
      seconds: `(s,)` the labels; windows that do not fit are left out, since the compiler knows that.
    """

    starts: NDArray[np.int64]
    values: NDArray[np.float32]
    estimates: NDArray[np.float64]
    seconds: NDArray[np.float64]

    def take(self, kernels: NDArray[np.int64]) -> Self:
        """Return those of some kernels, in that order."""
        starts, places = rows_of(self.starts, kernels)
        return replace(
            self,
            starts=starts,
            values=self.values[places],
            estimates=self.estimates[places],
            seconds=self.seconds[places],
        )


@dataclass(frozen=True)
class Kernels:
    """Kernels of some programs on one machine.

    Attributes:
      machine: what the labels are for.
      programs: names.
      program: `(k,)` the number of each kernel's program among these.
      graphs: of the kernels.
      rows: `(k, KERNEL_WIDTH)` with the columns of `Kernel`.
      chosen: `(k, 9)` the compiler's own settings, in the order of `SLOTS`.
      estimates: `(k,)` seconds under these by the compiler's analytical model.
      seconds: `(k,)` the labels under these.
      tiles, flags: other settings.
    """

    machine: str
    programs: tuple[str, ...]
    program: NDArray[np.int64]
    graphs: KernelGraphs
    rows: NDArray[np.float64]
    chosen: NDArray[np.float32]
    estimates: NDArray[np.float64]
    seconds: NDArray[np.float64]
    tiles: Settings
    flags: Settings

    def __len__(self) -> int:
        """Return the number of kernels."""
        return len(self.seconds)

    def settings(self, kind: str) -> Settings:
        """Return the settings of a kind: `tiles`, `flags`, or for `graph` the compiler's own of each kernel."""
        if kind == "graph":
            return Settings(np.arange(len(self) + 1), self.chosen, self.estimates, self.seconds)
        return self.tiles if kind == "tiles" else self.flags

    def take(self, kernels: NDArray[np.int64]) -> Self:
        """Return some of the kernels, in that order."""
        columns = ("program", "rows", "chosen", "estimates", "seconds")
        parts: dict[str, Any] = {name: getattr(self, name)[kernels] for name in columns}
        parts |= {name: getattr(self, name).take(kernels) for name in ("graphs", "tiles", "flags")}
        return replace(self, **parts)

    def without(self, other: Kernels) -> Self:
        """Return the kernels that another data set does not have, so that it can be held out."""
        known = {row.tobytes() for row in other.rows}
        return self.take(np.array([i for i, row in enumerate(self.rows) if row.tobytes() not in known], np.int64))

    def of(self, programs: set[str]) -> Self:
        """Return the kernels of some programs."""
        return self.take(np.flatnonzero(np.isin(np.array(self.programs)[self.program], list(programs))))


def save(kernels: Kernels, path: Path) -> None:
    """Write a data set.

    Raises:
      UserError: the file cannot be written.
    """
    _FILE.save(path, {"machine": kernels.machine, "programs": kernels.programs}, _arrays(kernels))


def load(path: Path) -> Kernels:
    """Return a data set.

    Raises:
      UserError: the file cannot be read, is not a data set, or is of another version.
    """
    header, arrays = _FILE.load(content(str(path))[1], str(path))
    try:
        return _kernels(header, arrays)
    except (KeyError, ValueError, TypeError):
        raise _FILE.damaged(str(path)) from None


def _arrays(kernels: Kernels) -> dict[str, NDArray]:
    own = {name: getattr(kernels, name) for name in ("program", "rows", "chosen", "estimates", "seconds")}
    for name in ("graphs", "tiles", "flags"):
        part = getattr(kernels, name)
        own |= {f"{name} {field.name}": getattr(part, field.name) for field in fields(part)}
    return own


def _kernels(header: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> Kernels:
    kinds: dict[str, Any] = {"graphs": KernelGraphs, "tiles": Settings, "flags": Settings}
    parts = {
        name: kind(**{field.name: arrays[f"{name} {field.name}"] for field in fields(kind)})
        for name, kind in kinds.items()
    }
    own: dict[str, Any] = {name: arrays[name] for name in ("program", "rows", "chosen", "estimates", "seconds")}
    return Kernels(header["machine"], tuple(header["programs"]), **own, **parts)


@dataclass(frozen=True)
class Chosen:
    """Kernels with the compiler's own settings.

    Attributes:
      rows: `(k, KERNEL_WIDTH)` with the columns of `Kernel`.
      values: `(k, 9)` the settings.
      estimates: `(k,)` seconds by the analytical model.
      seconds: `(k,)` the labels.
      fits: `(k,)` False for a kernel that no tile fits; it is not tuned.
    """

    rows: NDArray[np.float64]
    values: NDArray[np.float32]
    estimates: NDArray[np.float64]
    seconds: NDArray[np.float64]
    fits: NDArray[np.bool_]

    def take(self, kernels: NDArray[np.int64]) -> Self:
        """Return some of the kernels."""
        return type(self)(*(getattr(self, field.name)[kernels] for field in fields(self)))

    @classmethod
    def joined(cls, parts: list[Chosen]) -> Self:
        """Return the kernels of one or more lists, one list after another."""
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))


def choose(rows: NDArray[np.float64], seconds: NDArray[np.float64], machine: Machine) -> Chosen:
    """Return kernels with the settings that the compiler chooses, and its estimates."""
    made = compile_kernels(np.ascontiguousarray(rows), np.ones(len(rows)), machine)
    analytical, cycles = machine.analytical_model().array(), made.planned.copy()
    for i in np.flatnonzero(~made.fits).tolist():
        tile, flags = made.chosen[i, :3].copy(), made.chosen[i, 3:].copy()
        cycles[i] = shrink_tile(analytical, rows[i], tile, flags)
    estimates = cycles / analytical[Rate.HERTZ]
    return Chosen(rows, made.chosen.astype(np.float32), estimates, seconds, made.fits)


def sampled(chosen: Chosen, machine: Machine, slots: range, most: int, rng: Generator) -> Settings:
    """Return up to `most` random settings of each kernel that differ in some slots and fit into the scratchpad."""
    counts, found = [], []
    for i in range(len(chosen.seconds)):
        own = settings_of(chosen, i, machine, slots)
        some = np.sort(rng.permutation(len(own[0]))[:most])
        counts.append(len(some))
        found.append([array[some] for array in own])
    starts = np.concatenate([[0], np.cumsum(counts)])
    return Settings(starts, *(np.concatenate(arrays) for arrays in zip(*found, strict=True)))


def settings_of(
    chosen: Chosen, kernel: int, machine: Machine, slots: range
) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.float64]]:
    """Return all settings of a kernel that differ in some slots and fit, with estimates and seconds."""
    rows, own = chosen.rows[[kernel]], chosen.values[[kernel]].astype(np.float64)
    if not chosen.fits[kernel]:
        return np.empty((0, len(SLOTS)), np.float32), np.empty(0), np.empty(0)
    _, settings = fitting_settings(rows, own, slots, machine)
    owner = np.zeros(len(settings), np.int64)
    seconds, estimates = (times(rows, owner, settings, each) for each in (machine, machine.analytical_model()))
    return settings.astype(np.float32), estimates, seconds
