"""Data sets from programs of the catalogue: kernels of random layouts and fusions, with random tiles and flags."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..tensor_compiler.fusion.fusion_pass import Fusion
from ..tensor_compiler.fusion.state import StateBuffer
from ..tensor_compiler.graph.build import read_graph
from ..tensor_compiler.graph.graph import ProgramGraph
from ..tensor_compiler.hardware.kernel_settings import FLAG_SLOTS, TILE_SLOTS
from ..tensor_compiler.hardware.machine import MACHINES, Machine, Rate
from ..tensor_compiler.layout.layout_pass import LaidOutProgram, LayoutPass
from ..tensor_compiler.passes import row_keys
from ..tensor_compiler.tasks.programs import program as program_file
from .dataset import Chosen, Kernels, choose, sampled
from .kernels import KernelGraphs, KernelReader

SHIPPED = Path(__file__).parent / "model.npz"
"""The model with the name `learned`; results/learned_models has the commands that made it."""

HELD_OUT = {
    "ConvDRAW": "convdraw-t32-train-b16",
    "WaveRNN": "wavernn-infer-b16-f80",
    "NMT": "nmt-train-b32-s25",
    "SSD": "ssd-resnet34-train-b8",
    "RNN": "rnn-medium-train-b20-s35",
    "ResNet v1": "resnet-50-train-b32",
    "ResNet v2": "resnet_v2-50-train-b32",
    "Translate": "translate-base-train-b64-s64",
}
"""The programs of the catalogue that stand for those of Kaufman et al. 2021, by their names there."""

VALIDATION = (
    *("mobilenet-1.4-infer-b32", "unet-32-infer-b256", "gpt2-124m-decode-b32-s512", "transformer"),
    *("dlrm-kaggle-infer-b64", "moe-32-infer-b32-s512"),
)
"""Training programs on which designs are chosen; then the models are trained on these, too."""

TRAINING = (
    *("mobilenet", "mobilenet-0.5-train-b128", "mobilenet-1.0-train-b16", "mobilenet-1.0-infer-b64"),
    *("unet-32-train-b32", "unet-64-infer-b16", "unet-256-train-b8", "unet-256-infer-b1"),
    *("gpt2-124m-train-b1-s1024", "gpt2-124m-train-b64-s128", "gpt2-124m-prefill-b16-s512"),
    *("bert-base-train-b32-s128", "bert-base-infer-b8-s384", "bert-tiny-train-b256-s128", "bert-tiny-infer-b64-s128"),
    *("dlrm-terabyte-train-b2048", "dlrm-terabyte-infer-b2048", "dlrm-kaggle-train-b16384"),
    *("dlrm-kaggle-adagrad-b2048", "moe-switch-base-infer-b8-s512", "moe-8-train-b8-s1024"),
    *VALIDATION,
)
"""Programs of seven models, none of which is a variant of one that is held out."""
_RELAID = (0.0, 0.0, 0.1, 0.5)
"""Shares of the layouts that are drawn anew; the others are the compiler's."""
_FLIPPED = (0.0, 0.01, 0.05, 0.2, 0.5)
"""Shares of the fusion decisions that are turned over."""
_PLANS_AT_LEAST = 8
"""No layout and fusion gives more than this share of a program's kernels."""
MOST_NODES = 128
"""A kernel with more operations and operands is left out."""


def generate(
    programs: Sequence[str],
    machine: str,
    most: int,
    samples: int,
    rng: Generator,
    shown: Callable[[str, int], None],
    only_default: bool = False,
) -> Kernels:
    """Return different kernels of programs; a kernel that several programs have belongs to the first.

    Kernels whose time is not a positive number are left out, and settings that do not fit into the scratchpad.

    Args:
      most: kernels of one program.
      samples: tiles, and flags, of each kernel.
      shown: called with each program and the kernels that it gave.
      only_default: take the kernels of the compiler's own layouts and fusions only.
    """
    seen: set[int] = set()
    graphs, chosen, owners = [], [], []
    for number, name in enumerate(programs):
        graph, own = _of_program(read_graph(program_file(name)), MACHINES[machine], most, rng, seen, only_default)
        graphs.append(graph)
        chosen.append(own)
        owners.append(np.full(len(graph), number))
        shown(name, len(graph))
    every = Chosen.joined(chosen)
    tiles, flags = (sampled(every, MACHINES[machine], slots, samples, rng) for slots in (TILE_SLOTS, FLAG_SLOTS))
    return Kernels(
        machine,
        tuple(programs),
        np.concatenate(owners),
        KernelGraphs.joined(graphs),
        every.rows,
        every.values,
        every.estimates,
        every.seconds,
        tiles,
        flags,
    )


def _of_program(
    graph: ProgramGraph, machine: Machine, most: int, rng: Generator, seen: set[int], only_default: bool
) -> tuple[KernelGraphs, Chosen]:
    """Return kernels that are not yet seen."""
    reader, graphs, chosen, left = KernelReader(graph), [], [], most
    for laid, fusion, config in plans(graph, machine, rng, only_default):
        kernels = fusion.kernels(config)
        first = dict(zip(row_keys(kernels.rows).tolist(), range(len(kernels.rows)), strict=True))
        new = np.array([place for key, place in first.items() if key not in seen], np.int64)
        seen |= first.keys()
        new = np.sort(rng.permutation(new)[: min(left, max(1, most // _PLANS_AT_LEAST))])
        read = reader.read(laid, fusion, kernels.result[new])
        own = choose(kernels.rows[new], kernels.cycles[new] / machine.array()[Rate.HERTZ], machine)
        good = np.flatnonzero((np.diff(read.node_starts) <= MOST_NODES) & (own.seconds > 0) & np.isfinite(own.seconds))
        graphs.append(read.take(good))
        chosen.append(own.take(good))
        left -= len(good)
        if left <= 0:
            break
    return KernelGraphs.joined(graphs), Chosen.joined(chosen)


def plans(
    graph: ProgramGraph, machine: Machine, rng: Generator, only_default: bool
) -> Iterator[tuple[LaidOutProgram, Fusion, NDArray]]:
    """Yield the program in various layouts, its fusion pass, and a configuration of that: first the compiler's own."""
    layout, buffer = LayoutPass(graph, machine), StateBuffer()
    usual = layout.default()
    for number in range(1 if only_default else 4 * len(_FLIPPED)):
        config, share = usual.copy(), rng.choice(_RELAID) if number else 0.0
        anew = rng.random(len(config)) < share
        config[anew] = rng.integers(layout.options[anew])
        laid = layout.apply(config)
        fusion = Fusion(laid, machine, buffer)
        fused = fusion.default().copy()
        flipped = rng.random(len(fused)) < _FLIPPED[number % len(_FLIPPED)]
        yield laid, fusion, fused ^ flipped
