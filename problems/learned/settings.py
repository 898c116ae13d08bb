"""Tiles and flags of kernels, with their times and the estimates of the compiler's analytical model."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..tensor_compiler.hardware.kernel_settings import SLOTS, compile_kernels, seconds_of_kernels
from ..tensor_compiler.hardware.kernel_settings import Settings as Compiled
from ..tensor_compiler.hardware.machine import Machine, Rate
from ..tensor_compiler.hardware.timing import shrink_tile
from .dataset import Settings


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
    paper, cycles = machine.analytical_model().array(), made.planned.copy()
    for i in np.flatnonzero(~made.fits).tolist():
        tile, flags = made.chosen[i, :3].copy(), made.chosen[i, 3:].copy()
        cycles[i] = shrink_tile(paper, rows[i], tile, flags)
    estimates = cycles / paper[Rate.HERTZ]
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
    compiled = Compiled(rows, np.ones(1), own, np.ones(1), np.ones(1, bool))
    choices = [compiled.values(0, slot) for slot in slots]
    values = np.zeros((len(slots), max(map(len, choices))))
    for column, choice in enumerate(choices):
        values[column, : len(choice)] = choice
    configs = np.array(list(itertools.product(*(range(len(choice)) for choice in choices))))
    seconds, estimates = (
        _seconds(configs, np.array(slots), values, rows, own, array)
        for array in (machine.array(), machine.analytical_model().array())
    )
    fit = np.flatnonzero(np.isfinite(seconds))
    settings = np.repeat(own, len(fit), axis=0)
    settings[:, list(slots)] = values[np.arange(len(slots)), configs[fit]]
    return settings.astype(np.float32), estimates[fit], seconds[fit]


def _seconds(
    configs: NDArray, slots: NDArray, values: NDArray, rows: NDArray, own: NDArray, machine: NDArray
) -> NDArray[np.float64]:
    seconds = np.empty((len(configs), 1))
    seconds_of_kernels(configs, slots, values, np.array([0, len(slots)]), rows, own, machine, seconds)
    return seconds[:, 0]
