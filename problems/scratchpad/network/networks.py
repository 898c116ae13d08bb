"""The networks that ship: parts of the programs of the simulated compiler, with the same sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .graph import Index, Network, Role


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
