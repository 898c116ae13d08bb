"""The dimensions of a window: of a convolution, a reduction by windows, or a call of cuDNN."""

from __future__ import annotations

from dataclasses import dataclass

from .module import Instruction


@dataclass(frozen=True)
class Axis:
    """A dimension of a window."""

    size: int
    stride: int
    low: int
    high: int
    lhs_dilate: int
    rhs_dilate: int

    def positions(self, size: int) -> int:
        """Return how many positions the window has along an array's dimension of a size."""
        whole = max(0, size - 1) * self.lhs_dilate + (size > 0) + self.low + self.high
        return max(0, (whole - (self.size - 1) * self.rhs_dilate - 1) // self.stride + 1)


def axes(instruction: Instruction) -> list[Axis]:
    """Return the dimensions of an instruction's window; none if it has no window, as for products of pixels."""
    fields = instruction.window
    sizes = fields.get("size", [])
    rest = [fields.get(key, ["1"] * len(sizes)) for key in ("stride", "lhs_dilate", "rhs_dilate")]
    pads = [map(int, pad.split("_")) for pad in fields.get("pad", ["0_0"] * len(sizes))]
    return [
        Axis(int(size), int(stride), low, high, int(left), int(right))
        for size, stride, left, right, (low, high) in zip(sizes, *rest, pads, strict=True)
    ]
