"""Networks as operators on rectangular iteration domains, each operand read through an affine map; and those that ship.

They are parts of the programs of the simulated compiler, with the same sizes. This file is read when problems are
listed, so it imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


def bert(tokens: int = 512, heads: int = 12, depth: int = 64, hidden: int = 3072) -> Network:
    """Return a layer of BERT (base: 12 heads of 64), for one sequence, in bfloat16."""
    net, width = Network(), heads * depth
    x = net.tensor("x", (tokens, width), Role.INPUT)
    sizes = {"s": tokens, "h": heads, "e": depth, "m": width}

    def project(name: str) -> int:
        weight = net.tensor(f"{name} weight", (width, heads, depth))
        made = net.operator(name, sizes, [(x, "sm"), (weight, "mhe")], "she")
        turn = {key: sizes[key] for key in "hse"}
        return net.operator(f"{name} by head", turn, [(made, "she")], "hse")

    key, value, query = (project(name) for name in ("key", "value", "query"))
    square = {"h": heads, "s": tokens, "t": tokens, "e": depth}
    scores = net.operator("scores", square, [(query, "hse"), (key, "hte")], "hst")
    plain = {"h": heads, "s": tokens, "t": tokens}
    shares = net.operator("softmax", plain, [(scores, "hst")], "hst", whole="t")
    mixed = net.operator("context", square, [(shares, "hst"), (value, "hte")], "hse")
    turned = net.operator("context by token", {key: sizes[key] for key in "she"}, [(mixed, "hse")], "she")
    weight = net.tensor("output weight", (heads, depth, width))
    made = net.operator("output", sizes, [(turned, "she"), (weight, "hem")], "sm")
    rows = {"s": tokens, "m": width}
    first = net.operator("first norm", rows, [(made, "sm"), (x, "sm")], "sm", whole="m")
    wide = {"s": tokens, "f": hidden, "m": width}
    expanded = net.operator("expand", wide, [(first, "sm"), (net.tensor("expand weight", (width, hidden)), "mf")], "sf")
    gelu = net.operator("gelu", {"s": tokens, "f": hidden}, [(expanded, "sf")], "sf")
    shrunk = net.operator(
        "contract", wide, [(gelu, "sf"), (net.tensor("contract weight", (hidden, width)), "fm")], "sm"
    )
    net.operator("second norm", rows, [(shrunk, "sm"), (first, "sm")], "sm", whole="m", role=Role.OUTPUT)
    return net


def _convolution(net: Network, name: str, x: int, channels: int, kernel: int = 1, stride: int = 1) -> int:
    batch, rows, columns, depth = net.tensors[x].shape
    sizes = {"n": batch, "y": rows // stride, "x": columns // stride, "o": channels, "c": depth}
    if kernel == 1:
        weight: tuple[int, Sequence[Index]] = (net.tensor(f"{name} weight", (depth, channels)), "co")
        seen: Sequence[Index] = ["n", ("y", stride, "", 0), ("x", stride, "", 0), "c"] if stride > 1 else "nyxc"
    else:
        weight = (net.tensor(f"{name} weight", (kernel, kernel, depth, channels)), "jico")
        sizes |= {"j": kernel, "i": kernel}
        pad = (kernel - 1) // 2
        seen = ["n", ("y", stride, "j", pad), ("x", stride, "i", pad), "c"]
    return net.operator(name, sizes, [(x, seen), weight], "nyxo")


def resnet(batch: int = 8, side: int = 28, wide: int = 512, narrow: int = 128, blocks: int = 3) -> Network:
    """Return bottlenecks of ResNet (of the second stage of ResNet-50), in bfloat16, between two changes of layout."""
    net = Network()
    sizes = {"n": batch, "y": side, "x": side, "c": wide}
    x = net.operator("to NHWC", sizes, [(net.tensor("image", (batch, wide, side, side), Role.INPUT), "ncyx")], "nyxc")
    for block in range(1, blocks + 1):
        made = _convolution(net, f"reduce {block}", x, narrow)
        made = _convolution(net, f"middle {block}", made, narrow, kernel=3)
        made = _convolution(net, f"widen {block}", made, wide)
        x = net.operator(f"add {block}", sizes, [(made, "nyxc"), (x, "nyxc")], "nyxc")
    net.operator("to NCHW", sizes, [(x, "nyxc")], "ncyx", role=Role.OUTPUT)
    return net


def transition(batch: int = 8, side: int = 56, wide: int = 256, narrow: int = 128) -> Network:
    """Return the bottleneck of ResNet-50 that halves the image, and the one after it, in bfloat16."""
    net = Network()
    x = net.tensor("image", (batch, side, side, wide), Role.INPUT)
    made = _convolution(net, "reduce", x, narrow)
    made = _convolution(net, "middle", made, narrow, kernel=3, stride=2)
    made = _convolution(net, "widen", made, 2 * wide)
    short = _convolution(net, "shortcut", x, 2 * wide, stride=2)
    sizes = {"n": batch, "y": side // 2, "x": side // 2, "c": 2 * wide}
    x = net.operator("add", sizes, [(made, "nyxc"), (short, "nyxc")], "nyxc")
    made = _convolution(net, "reduce 2", x, narrow)
    made = _convolution(net, "middle 2", made, narrow, kernel=3)
    made = _convolution(net, "widen 2", made, 2 * wide)
    net.operator("add 2", sizes, [(made, "nyxc"), (x, "nyxc")], "nyxc", role=Role.OUTPUT)
    return net


def lstm(steps: int = 4, batch: int = 64, units: int = 1024) -> Network:
    """Return steps of an LSTM, in bfloat16; all steps share their weights."""
    net = Network()
    hidden, cell = (net.tensor(name, (batch, units), Role.INPUT) for name in ("hidden", "cell"))
    across, deep = (net.tensor(name, (units, 4, units)) for name in ("input weight", "hidden weight"))
    inner = {"b": batch, "g": 4, "u": units, "k": units}
    for step in range(1, steps + 1):
        x = net.tensor(f"x {step}", (batch, units), Role.INPUT)
        role = Role.OUTPUT if step == steps else Role.INTERMEDIATE
        seen = net.operator(f"from input {step}", inner, [(x, "bk"), (across, "kgu")], "bgu")
        gates = net.operator(f"from hidden {step}", inner, [(hidden, "bk"), (deep, "kgu")], "bgu")
        row = {"b": batch, "u": units, "g": 4}
        cell = net.operator(f"cell {step}", row, [(seen, "bgu"), (gates, "bgu"), (cell, "bu")], "bu", "g", role)
        reads = [(seen, "bgu"), (gates, "bgu"), (cell, "bu")]
        hidden = net.operator(f"hidden {step}", row, reads, "bu", "g", Role.OUTPUT)
    return net


NETWORKS: dict[str, Callable[[], Network]] = {"bert": bert, "resnet": resnet, "transition": transition, "lstm": lstm}


INSTANCES = (
    *("bert@1MiB", "bert@2MiB", "bert@4MiB"),
    *("resnet@2MiB", "resnet@4MiB", "resnet@8MiB"),
    *("transition@0.5MiB", "transition@1MiB", "transition@4MiB"),
    *("lstm@1MiB", "lstm@4MiB", "lstm@12MiB"),
    *("bert@8MiB@banks", "resnet@12MiB@banks", "transition@4MiB@banks", "lstm@4MiB@banks"),
)
"""At these capacities the default moves 1.5 to 5 times the compulsory bytes."""
_BANKS = 128
"""As many partitions as the scratchpad of AWS's NeuronCores has."""


def split(instance: str) -> tuple[str, int, int]:
    """Return the network, the capacity in bytes, and the banks, 0 if they do not matter."""
    plain, mark, _ = instance.partition("@banks")
    name, _, capacity = plain.partition("@")
    return name, int(float(capacity.removesuffix("MiB")) * (1 << 20)), _BANKS if mark else 0
