"""The parameters of each kernel. Imports neither Triton nor PyTorch, so that problems are listed quickly."""

from __future__ import annotations

from dataclasses import dataclass

WARPS, STAGES = "warps", "stages"


@dataclass(frozen=True)
class Tuned:
    """A kernel with its sizes and parameters.

    Attributes:
      kernel: its name in `kernels`.
      shape: rows, columns and, for a product, depth.
      values: of each parameter, ascending; all but `warps` and `stages` are arguments of the kernel.
      default: values of the published tutorial kernels.
    """

    kernel: str
    shape: tuple[int, ...]
    values: dict[str, tuple[int, ...]]
    default: tuple[int, ...]


_MATMUL = {
    "ROWS": (32, 64, 128, 256),
    "COLUMNS": (32, 64, 128, 256),
    "DEPTH": (32, 64, 128),
    "GROUP": (1, 4, 8, 16),
    WARPS: (2, 4, 8),
    STAGES: (2, 3, 4, 5),
}
_SOFTMAX = {
    "ROWS": (1, 2, 4, 8),
    "COLUMNS": (256, 512, 1024, 2048, 4096, 8192),
    WARPS: (1, 2, 4, 8, 16),
    STAGES: (1, 2, 3, 4),
}

TUNED = {
    "matmul-4096": Tuned("matmul", (4096, 4096, 4096), _MATMUL, (128, 256, 64, 8, 8, 3)),
    "matmul-512x8192x1024": Tuned("matmul", (512, 8192, 1024), _MATMUL, (128, 256, 64, 8, 8, 3)),
    "softmax-8192x4096": Tuned("softmax", (8192, 4096), _SOFTMAX, (1, 4096, 8, 2)),
    "softmax-65536x1000": Tuned("softmax", (65536, 1000), _SOFTMAX, (1, 1024, 8, 2)),
}
"""By instance."""
