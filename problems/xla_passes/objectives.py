"""What a candidate may cost. All are counts that XLA gives without running the program."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from .census import census, computations, operations

OPERATIONS = "operations"
_NO_KERNEL = frozenset({"bitcast", "while", "conditional", "call"})
"""Operations of a fused module that move no data themselves."""
_SHAPE = re.compile(r"\b(pred|bf16|[suf]\d+|c\d+)(?:e\d\w*)?\[([\d,]*)\]")
_ATTRIBUTES = re.compile(r"\), \w+=")


@dataclass(frozen=True)
class Objective:
    """A count of a module in canonical text, and its unit.

    Attributes:
      fused: whether XLA:CPU must first assign layouts and fuse.
    """

    unit: str
    count: Callable[[str], float]
    fused: bool = False


def kernels(text: str) -> int:
    """Return the operations of a fused module that run as a kernel: fusions, and what is not fused."""
    return sum(count for kind, count in census(text).items() if kind not in _NO_KERNEL)


def moved_bytes(text: str) -> int:
    """Return the bytes that the kernels of a fused module read and write, if each operand and result moves once.

    This is the roofline of memory. The body of a loop counts once; a kernel that reads a slice counts all of its
    operand.
    """
    lines = (line for _, kind, line in operations(text) if kind not in _NO_KERNEL)
    return sum(_bytes(*shape) for line in lines for shape in _SHAPE.findall(_ATTRIBUTES.split(line)[0]))


def _bytes(kind: str, sizes: str) -> int:
    bits = 8 if kind == "pred" else int(kind.lstrip("bcfsu"))
    number = (bits + 7) // 8
    for size in filter(None, sizes.split(",")):
        number *= int(size)
    return number


OBJECTIVES = {
    OPERATIONS: Objective("operations", lambda text: census(text).total()),
    "computations": Objective("computations", lambda text: len(computations(text))),
    "kernels": Objective("kernels", kernels, fused=True),
    "bytes": Objective("bytes", moved_bytes, fused=True),
}
