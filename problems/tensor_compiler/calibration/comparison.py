"""The cycles of each kernel by the hardware model and by the real compiler, and how well they agree."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..hardware.kernel_row import Kernel
from ..hardware.kernel_settings import compile_kernels
from ..hardware.machine import Machine, one_core
from ..hardware.tile_choice import shrink_tile
from ..hardware.timing import kernel_cycles
from .kernels import PLACEHOLDER, kernels
from .rows import row


def half(program: str) -> str:
    """Return the half that a program belongs to: the model's constants are fitted on one and reported on the other."""
    return "report" if zlib.crc32(f"split:{program}".encode()) % 2 else "fit"


def compare(machine: str, names: Iterable[str], text: Callable[[str, str], str]) -> pd.DataFrame:
    """Return a line for each kernel: program, half, kind, cycles of both, steps over tiles of both.

    Args:
      machine: one of `MACHINES`.
      names: of the programs.
      text: returns the scheduled HLO of a program on a machine; a program that raises a RuntimeError is left out.
    """
    rows, records = [], []
    for name in names:
        try:
            scheduled = text(name, machine)
        except RuntimeError:
            continue
        for kernel in kernels(scheduled):
            if kernel.cycles > PLACEHOLDER * kernel.steps:
                numbers, kind = row(kernel)
                rows.append(numbers)
                records.append((name, half(name), kind, kernel.cycles, kernel.steps))
    frame = pd.DataFrame(records, columns=["program", "half", "kind", "xla cycles", "xla steps"])
    frame["cycles"], frame["steps"] = timed(np.array(rows).reshape(len(rows), -1), one_core(machine))
    return frame


def timed(rows: NDArray[np.float64], machine: Machine) -> tuple[list[float], list[float]]:
    """Return the cycles of each kernel with the tile that the compiler's analytical model chooses, and its steps."""
    settings, constants = compile_kernels(rows, np.ones(len(rows)), machine), machine.array()
    cycles = []
    for numbers, chosen in zip(rows, settings.chosen, strict=True):
        tile, flags = chosen[:3].copy(), chosen[3:].copy()
        found = kernel_cycles(constants, numbers, tile, flags)
        cycles.append(found if np.isfinite(found) else shrink_tile(constants, numbers, tile, flags))
    return cycles, [_steps(*pair) for pair in zip(rows, settings.chosen, strict=True)]


def _steps(numbers: NDArray[np.float64], chosen: NDArray[np.float64]) -> float:
    product = numbers[Kernel.TAPS] > 0
    extents = numbers[Kernel.ROWS : Kernel.TAPS] if product else numbers[Kernel.OUTER : Kernel.SIZE]
    return float(np.prod(np.ceil(extents / chosen[:3])))


def scores(frame: pd.DataFrame, launch: float = 0.0) -> pd.DataFrame:
    """Return a line for all kernels and for each kind: how well the model ranks and predicts them.

    Args:
      frame: from `compare`.
      launch: the machine's; `beyond launch` is Spearman's correlation over kernels that take 5 % more than that, since
        many kernels only start and end, and their estimates differ by single cycles.
    """
    lines = []
    for kind, group in [("all", frame), *frame.groupby("kind")]:
        ours, theirs = group["cycles"], group["xla cycles"]
        error, large = (ours / theirs - 1).abs(), theirs > 1.05 * launch
        ranks = ours.corr(theirs, method="spearman"), ours[large].corr(theirs[large], method="spearman")
        same = (group["steps"] == group["xla steps"]).mean()
        lines.append((kind, len(group), *ranks, error.median(), error.quantile(0.9), same))
    columns = ["kind", "kernels", "spearman", "beyond launch", "median error", "90 % error", "same steps"]
    return pd.DataFrame(lines, columns=columns)
