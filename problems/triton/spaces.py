"""The parameters of each kernel. Imports neither Triton nor PyTorch, so that problems are listed quickly."""

from __future__ import annotations

from dataclasses import dataclass

WARPS, STAGES = "warps", "stages"
PASSED = ("GROUP", "SPLIT", "LAST_FIRST")
"""Parameters that a kernel is told when it runs; for the others it is compiled."""
STATISTICS = ("registers", "spilled registers", "bytes of shared memory", "bytes of code", "programs")
LIBRARY = "PyTorch"
"""What the same costs in PyTorch, which calls cuBLAS and FlashAttention."""


@dataclass(frozen=True)
class Tuned:
    """A kernel with its sizes and parameters.

    Attributes:
      kernel: its name in `kernels`.
      shape: rows, columns and, for a product, depth; for attention, heads, tokens and the width of a head.
      values: of each parameter, ascending; all but `warps` and `stages` are arguments of the kernel.
      default: what the published tutorial kernels take, or for a product with few rows, what its authors would write.
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
_FEW_ROWS = {
    "ROWS": (16, 32),
    "COLUMNS": (16, 32, 64, 128, 256),
    "DEPTH": (32, 64, 128, 256),
    "SPLIT": (1, 2, 4, 8, 16),
    WARPS: (2, 4, 8),
    STAGES: (2, 3, 4, 5),
}
_SOFTMAX = {
    "ROWS": (1, 2, 4, 8),
    "COLUMNS": (256, 512, 1024, 2048, 4096, 8192),
    WARPS: (1, 2, 4, 8, 16),
    STAGES: (1, 2, 3, 4),
}
_ATTENTION = {
    "QUERIES": (32, 64, 128, 256),
    "KEYS": (16, 32, 64, 128),
    "LAST_FIRST": (0, 1),
    WARPS: (4, 8, 16),
    STAGES: (1, 2, 3, 4),
}

TUNED = {
    "matmul-4096": Tuned("matmul", (4096, 4096, 4096), _MATMUL, (128, 256, 64, 8, 8, 3)),
    "matmul-512x8192x1024": Tuned("matmul", (512, 8192, 1024), _MATMUL, (128, 256, 64, 8, 8, 3)),
    "matmul-16x4096x14336": Tuned("matmul", (16, 4096, 14336), _FEW_ROWS, (16, 64, 128, 1, 4, 3)),
    "softmax-8192x4096": Tuned("softmax", (8192, 4096), _SOFTMAX, (1, 4096, 8, 2)),
    "softmax-65536x1000": Tuned("softmax", (65536, 1000), _SOFTMAX, (1, 1024, 8, 2)),
    "attention-32x4096x128": Tuned("attention", (32, 4096, 128), _ATTENTION, (128, 64, 0, 8, 3)),
}
"""By instance."""
