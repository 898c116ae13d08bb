"""Data sets of kernels with their run times, in files without pickles."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bbo_suite import UserError
from bbo_suite.core.versions import content
from bbo_suite.files.reading import parse_json

from ..tensor_compiler.hardware.machine import COST_MODEL
from .kernels import OPCODES, KernelGraphs

VERSION = 1
"""Version of the files: raised whenever the meaning of an array changes."""
LARGEST = 1 << 30
"""Most bytes that the arrays of a file may unpack to."""


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
        """Return those of some kernels, in a given order."""
        counts = np.diff(self.starts)[kernels]
        starts = np.concatenate([[0], np.cumsum(counts)])
        places = np.repeat(self.starts[kernels] - starts[:-1], counts) + np.arange(starts[-1])
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

    def take(self, kernels: NDArray[np.int64]) -> Self:
        """Return some of the kernels, in a given order."""
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
    header = {**_needs(), "machine": kernels.machine, "programs": kernels.programs}
    try:
        with path.open("wb") as file:
            np.savez_compressed(file, header=np.array(json.dumps(header)), **_arrays(kernels))  # type: ignore[arg-type]
    except OSError as error:
        raise UserError(f"data {path} cannot be written: {error.strerror}") from None


def load(path: Path) -> Kernels:
    """Return a data set.

    Raises:
      UserError: the file cannot be read, is not a data set, or is of another version.
    """
    arrays = read_arrays(str(path), content(str(path))[1])
    header = read_header(arrays, str(path), "a data set; make one with `python -m bbo_problems.learned data`")
    for key, value in _needs().items():
        if header.get(key) != value:
            raise UserError(f"data {path} has {key} {header.get(key)}, but {value} is needed; make it again")
    try:
        kernels = _kernels(header, arrays)
    except (KeyError, ValueError, TypeError):
        raise UserError(f"data {path} lacks arrays or has damaged ones; make it again") from None
    return kernels


def read_arrays(name: str, data: bytes) -> dict[str, NDArray]:
    """Return the arrays of an npz file; one with Python objects, which could run code, is refused.

    Raises:
      UserError: it is no such file, or unpacks to too much.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            if sum(entry.file_size for entry in packed.infolist()) > LARGEST:
                raise ValueError(f"it unpacks to more than {LARGEST >> 20:,} MiB")
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            return {key: file[key] for key in file.files}
    except Exception as error:  # whatever a file that somebody wrote by hand makes zipfile and numpy raise
        raise UserError(f"{name} is not a file of arrays ({error})") from None


def read_header(arrays: Mapping[str, NDArray], name: str, wanted: str) -> dict[str, Any]:
    """Return the JSON object that the array `header` holds.

    Raises:
      UserError: there is none, so the file is not what is `wanted`.
    """
    try:
        header = parse_json(str(arrays["header"].item()))
    except (KeyError, ValueError):
        header = None
    if not isinstance(header, dict):
        raise UserError(f"{name} is not {wanted}")
    return header


def _needs() -> dict[str, Any]:
    return {"version": VERSION, "cost model": COST_MODEL, "opcodes": len(OPCODES)}


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
