"""Networks as operators on rectangular iteration domains, each operand read through an affine map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum


class Role(IntEnum):
    """Where a tensor lives before and after the network."""

    INPUT = 0
    WEIGHT = 1  # an input that may be stored in any order: it is packed before the network runs
    INTERMEDIATE = 2
    OUTPUT = 3


@dataclass(frozen=True)
class Tensor:
    """A tensor in DRAM, with its extents and the bytes of an element."""

    name: str
    shape: tuple[int, ...]
    role: Role
    bytes: int = 2


@dataclass(frozen=True)
class Axis:
    """Which elements of a tensor's dimension an operand reads: `stride * dim + window - pad`, clipped to the tensor.

    Attributes:
      dim: the operator's dimension.
      window: the dimension of the window's offsets, -1 for a window of one element; it is never tiled.
    """

    dim: int
    stride: int = 1
    window: int = -1
    pad: int = 0


@dataclass(frozen=True)
class Operand:
    """A tensor with the map of each of its dimensions."""

    tensor: int
    axes: tuple[Axis, ...]


@dataclass(frozen=True)
class Operator:
    """One operator.

    Attributes:
      extents: of the dimensions of its iteration domain.
      reduced: whether each dimension is summed over.
      whole: whether each must stay whole: a row of a softmax, the offsets of a window.
      operands: what it reads, and last what it writes.
      moves: True if it only rearranges a tensor, so that it can be eliminated.
    """

    name: str
    extents: tuple[int, ...]
    reduced: tuple[bool, ...]
    whole: tuple[bool, ...]
    operands: tuple[Operand, ...]
    moves: bool = False

    @property
    def tiled(self) -> list[int]:
        """The dimensions that may be tiled."""
        return [d for d, whole in enumerate(self.whole) if not whole and self.extents[d] > 1]


Index = str | tuple[str, int, str, int]
"""A dimension by its letter, or (dimension, stride, window, padding); the window may be an empty text."""


@dataclass
class Network:
    """Tensors and operators, in the order in which they run."""

    tensors: list[Tensor] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)

    def tensor(self, name: str, shape: Sequence[int], role: Role = Role.WEIGHT) -> int:
        """Add a tensor."""
        self.tensors.append(Tensor(name, tuple(shape), role))
        return len(self.tensors) - 1

    def operator(
        self,
        name: str,
        extents: dict[str, int],
        reads: Sequence[tuple[int, Sequence[Index]]],
        writes: str,
        whole: str = "",
        role: Role = Role.INTERMEDIATE,
    ) -> int:
        """Add an operator and return the tensor that it writes.

        Args:
          extents: of its dimensions, by their letters, in any order.
          reads: the tensors that it reads, each with an index for each of its dimensions.
          writes: the dimensions of what it writes; it sums over all others.
          whole: the dimensions that must not be tiled, besides windows.
        """
        letters = list(extents)
        result = self.tensor(name, [extents[letter] for letter in writes], role)
        windows = {index[2] for _, indices in reads for index in indices if isinstance(index, tuple)}
        axes = [tuple(_axis(index, letters) for index in indices) for _, indices in reads]
        operands = [Operand(tensor, found) for (tensor, _), found in zip(reads, axes, strict=True)]
        operands.append(Operand(result, tuple(Axis(letters.index(letter)) for letter in writes)))
        moves = len(reads) == 1 and not whole and sorted(map(str, reads[0][1])) == sorted(writes)
        self.operators.append(
            Operator(
                name,
                tuple(extents.values()),
                tuple(letter not in writes for letter in letters),
                tuple(letter in whole or letter in windows for letter in letters),
                tuple(operands),
                moves and tuple(reads[0][1]) != tuple(writes),  # an elementwise operator keeps the order
            )
        )
        return result

    def compulsory(self, granule: int) -> int:
        """Return the bytes of all inputs, weights and outputs, which any schedule moves."""
        return sum(size_of(t, granule) for t in self.tensors if t.role != Role.INTERMEDIATE)


def size_of(tensor: Tensor, granule: int) -> int:
    """Return the bytes of a whole tensor, in whole granules."""
    elements = 1
    for extent in tensor.shape:
        elements *= extent
    return -(-elements * tensor.bytes // granule) * granule


def _axis(index: Index, letters: list[str]) -> Axis:
    if isinstance(index, str):
        return Axis(letters.index(index))
    dim, stride, window, pad = index
    return Axis(letters.index(dim), stride, letters.index(window) if window else -1, pad)
