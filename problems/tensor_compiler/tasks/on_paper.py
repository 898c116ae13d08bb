"""A candidate compiled for the machine of the data sheet: its kernels without their costs, for models that predict."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..fusion.fusion_pass import Fusion
from ..layout.layout_pass import LaidOutProgram


class OnPaper(NamedTuple):
    """The k kernels of a candidate.

    Attributes:
      laid: the program.
      fusion: the fusion pass, for the machine on paper; it has seen the candidate last.
      rows: `(k, KERNEL_WIDTH)` with the columns of `Kernel`.
      result, runs: `(k,)` the node that each kernel computes, and how often it runs.
      values: `(k, 9)` settings, in the order of `SLOTS`; None for the compiler's own.
    """

    laid: LaidOutProgram
    fusion: Fusion
    rows: NDArray[np.float64]
    result: NDArray[np.int64]
    runs: NDArray[np.float64]
    values: NDArray[np.float64] | None = None


def on_paper(laid: LaidOutProgram, fusion: Fusion, config: NDArray) -> OnPaper:
    """Return the kernels that `(d,)` fusion decisions make, with the compiler's own settings."""
    kernels = fusion.kernels(config)
    return OnPaper(laid, fusion, kernels.rows, kernels.result, kernels.runs)
