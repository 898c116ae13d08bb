"""Data sets of kernels: their settings with run times, how these are drawn, and files of them.

Those from programs of the catalogue have kernels of random layouts and fusions, with random tiles and flags.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite.core.versions import content
from bbo_suite.files.arrays import ArrayFile

from ..tensor_compiler.fusion.fusion_pass import Fusion
from ..tensor_compiler.fusion.state import StateBuffer
from ..tensor_compiler.graph.build import read_graph
from ..tensor_compiler.graph.graph import ProgramGraph
from ..tensor_compiler.hardware.all_settings import fitting_settings, times
from ..tensor_compiler.hardware.kernel_settings import FLAG_SLOTS, SLOTS, TILE_SLOTS, compile_kernels
from ..tensor_compiler.hardware.machine import KERNEL_TIMES, MACHINES, Machine, Rate
from ..tensor_compiler.hardware.timing import shrink_tile
from ..tensor_compiler.layout.layout_pass import LaidOutProgram, LayoutPass
from ..tensor_compiler.passes import row_keys
from ..tensor_compiler.tasks.programs import program as program_file
from .kernels import OPCODES, KernelGraphs, KernelReader, rows_of

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


SHIPPED = Path(__file__).parent / "model.npz"
"""The model with the name `learned`; results/learned_models has the commands that made it."""

HELD_OUT = {
    "ConvDRAW": "convdraw-t32-train-b16",
    "WaveRNN": "wavernn-infer-b16-f80",
    "NMT": "nmt-train-b32-s25",
    "SSD": "ssd-resnet34-train-b8",
    "RNN": "rnn-medium-train-b20-s35",
    "ResNet v1": "resnet-50-train-b32",
    "ResNet v2": "resnet_v2-50-train-b32",
    "Translate": "translate-base-train-b64-s64",
}
"""The programs of the catalogue that stand for those of Kaufman et al. 2021, by their names there."""

VALIDATION = (
    *("mobilenet-1.4-infer-b32", "unet-32-infer-b256", "gpt2-124m-decode-b32-s512", "transformer"),
    *("dlrm-kaggle-infer-b64", "moe-32-infer-b32-s512"),
)
"""Training programs on which designs are chosen; then the models are trained on these, too."""

TRAINING = (
    *("mobilenet", "mobilenet-0.5-train-b128", "mobilenet-1.0-train-b16", "mobilenet-1.0-infer-b64"),
    *("unet-32-train-b32", "unet-64-infer-b16", "unet-256-train-b8", "unet-256-infer-b1"),
    *("gpt2-124m-train-b1-s1024", "gpt2-124m-train-b64-s128", "gpt2-124m-prefill-b16-s512"),
    *("bert-base-train-b32-s128", "bert-base-infer-b8-s384", "bert-tiny-train-b256-s128", "bert-tiny-infer-b64-s128"),
    *("dlrm-terabyte-train-b2048", "dlrm-terabyte-infer-b2048", "dlrm-kaggle-train-b16384"),
    *("dlrm-kaggle-adagrad-b2048", "moe-switch-base-infer-b8-s512", "moe-8-train-b8-s1024"),
    *VALIDATION,
)
"""Programs of seven models, none of which is a variant of one that is held out."""
_RELAID = (0.0, 0.0, 0.1, 0.5)
"""Shares of the layouts that are drawn anew; the others are the compiler's."""
_FLIPPED = (0.0, 0.01, 0.05, 0.2, 0.5)
"""Shares of the fusion decisions that are turned over."""
_PLANS_AT_LEAST = 8
"""No layout and fusion gives more than this share of a program's kernels."""
MOST_NODES = 128
"""A kernel with more operations and operands is left out."""


def generate(
    programs: Sequence[str],
    machine: str,
    most: int,
    samples: int,
    rng: Generator,
    shown: Callable[[str, int], None],
) -> Kernels:
    """Return different kernels of programs; a kernel that several programs have belongs to the first.

    Kernels whose time is not a positive number are left out, and settings that do not fit into the scratchpad.

    Args:
      most: kernels of one program.
      samples: tiles, and flags, of each kernel.
      shown: called with each program and the kernels that it gave.
    """
    seen: set[int] = set()
    graphs, chosen, owners = [], [], []
    for number, name in enumerate(programs):
        graph, own = _of_program(read_graph(program_file(name)), MACHINES[machine], most, rng, seen)
        graphs.append(graph)
        chosen.append(own)
        owners.append(np.full(len(graph), number))
        shown(name, len(graph))
    every = Chosen.joined(chosen)
    tiles, flags = (sampled(every, MACHINES[machine], slots, samples, rng) for slots in (TILE_SLOTS, FLAG_SLOTS))
    return Kernels(
        machine,
        tuple(programs),
        np.concatenate(owners),
        KernelGraphs.joined(graphs),
        every.rows,
        every.values,
        every.estimates,
        every.seconds,
        tiles,
        flags,
    )


def _of_program(
    graph: ProgramGraph, machine: Machine, most: int, rng: Generator, seen: set[int]
) -> tuple[KernelGraphs, Chosen]:
    """Return kernels that are not yet seen."""
    reader, graphs, chosen, left = KernelReader(graph), [], [], most
    for laid, fusion, config in plans(graph, machine, rng):
        kernels = fusion.kernels(config)
        first = dict(zip(row_keys(kernels.rows).tolist(), range(len(kernels.rows)), strict=True))
        new = np.array([place for key, place in first.items() if key not in seen], np.int64)
        seen |= first.keys()
        new = np.sort(rng.permutation(new)[: min(left, max(1, most // _PLANS_AT_LEAST))])
        read = reader.read(laid, fusion, kernels.result[new])
        own = choose(kernels.rows[new], kernels.cycles[new] / machine.array()[Rate.HERTZ], machine)
        good = np.flatnonzero((np.diff(read.node_starts) <= MOST_NODES) & (own.seconds > 0) & np.isfinite(own.seconds))
        graphs.append(read.take(good))
        chosen.append(own.take(good))
        left -= len(good)
        if left <= 0:
            break
    return KernelGraphs.joined(graphs), Chosen.joined(chosen)


def plans(graph: ProgramGraph, machine: Machine, rng: Generator) -> Iterator[tuple[LaidOutProgram, Fusion, NDArray]]:
    """Yield the program in various layouts, its fusion pass, and a configuration of that: first the compiler's own."""
    layout, buffer = LayoutPass(graph, machine), StateBuffer()
    usual = layout.default()
    for number in range(4 * len(_FLIPPED)):
        config, share = usual.copy(), rng.choice(_RELAID) if number else 0.0
        anew = rng.random(len(config)) < share
        config[anew] = rng.integers(layout.options[anew])
        laid = layout.apply(config)
        fusion = Fusion(laid, machine, buffer)
        fused = fusion.default().copy()
        flipped = rng.random(len(fused)) < _FLIPPED[number % len(_FLIPPED)]
        yield laid, fusion, fused ^ flipped
