"""Whole programs: our default beside XLA:TPU's schedule of the same text, and the default's share of the roofline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from pathlib import Path

import numpy as np
import pandas as pd

from ..graph.build import build
from ..hardware.kernel_row import Kernel
from ..hardware.machine import MACHINES, one_core
from ..hlo.module import Instruction, Module
from ..hlo.reader import read
from ..hlo.simplify import read_simplified
from ..passes import Passes
from ..tasks.programs import lowered, program
from .estimates import Schedule, traffic

_MOVING = """parameter constant tuple get-tuple-element bitcast bitcast-convert iota broadcast copy transpose reshape
    reverse slice dynamic-slice dynamic-update-slice pad concatenate gather select compare"""
"""Operations of a kernel that only moves data."""
_LOW, _WEIGHT = 0.1, 0.02
"""A kernel is slow below this share of its roofline, and counts from this share of its program's time on."""


def ours(name: str, machine: str) -> pd.DataFrame:
    """Return a line for each kernel of our default: its result's opcode, seconds, roofline and bytes of all runs.

    `moves` says whether it only moves data.

    The roofline is the longest time at the machine's peaks: for its bytes, its multiply-adds or its vector operations.
    """
    file, made = Path(name), MACHINES[machine]
    graph = build(read_simplified(file).module if file.is_file() else read(program(name)), name)
    passes = Passes(graph, made)
    row = passes.start()
    laid = passes.apply("layout", graph, row)
    kernels = laid.fusion.kernels(row[laid.decisions.columns])
    found, rows = laid.fusion.last_program(), kernels.rows
    groups = np.split(found.members, found.starts[1:-1])
    moved = rows[:, Kernel.READ : Kernel.WORK].sum(axis=1) + rows[:, Kernel.WRITTEN]
    dense = 2 * rows[:, Kernel.GROUPS : Kernel.SUMS].prod(axis=1)
    work = rows[:, Kernel.WORK : Kernel.WRITTEN].sum(axis=1)
    bound = np.max([moved / made.memory, dense / made.matrix, work / made.vector], axis=0)
    return pd.DataFrame(
        {
            "kernel": [laid.laid.opcode(node) for node in found.result],
            "seconds": found.cycles / made.hertz,
            "roofline": bound * kernels.runs / made.hertz,
            "bytes": moved * kernels.runs,
            "moves": [_only_moves({laid.laid.opcode(node) for node in group.tolist()}) for group in groups],
        }
    )


def theirs(text: str, machine: str) -> pd.DataFrame:
    """Return a line for each kernel of a scheduled program, as `ours` does without rooflines.

    `fetching` is the time that memory needs for a copy in the background, whose seconds are 0.
    """
    made = one_core(machine)
    schedule, lines = Schedule(text, made), []
    for trips, computation, one in schedule.walk(schedule.module.entry, 1):
        cycles, _, main = schedule.costs(computation, one)
        moved = sum(traffic(schedule.module, computation, one, schedule.buffers))
        fetches = one.opcode.endswith("-start")
        moves = not fetches and _only_moves({inner.opcode for inner in _operations(schedule.module, one)})
        lines.append((trips * cycles / made.hertz, trips * moved, moves, trips * main * fetches / made.hertz))
    return pd.DataFrame(lines, columns=["seconds", "bytes", "moves", "fetching"])


def _operations(module: Module, one: Instruction) -> Iterator[Instruction]:
    if one.opcode != "fusion":
        yield one
        return
    for inner in module.computations[one.called_computations[0]].instructions:
        yield from _operations(module, inner)


def _only_moves(opcodes: Set[str]) -> bool:
    return opcodes <= set(_MOVING.split())


def compare_whole(
    machine: str, names: Iterable[str], text: Callable[[str, str], str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a line for each program, and one for each of its slow kernels.

    The first have the seconds in all, the share of the roofline, the bytes and the number of the kernels that only move
    data, the same of XLA:TPU, and how long memory needs for its copies in the background; its columns are empty if it
    cannot compile the program. The second have the kernels of our default below a tenth of their roofline that take 2 %
    of the time.

    Args:
      machine: one of `MACHINES` with one core, whose estimates are for the whole machine.
      names: of programs of the tasks, or of files in HLO text.
      text: returns the scheduled HLO of a file on a machine; a program that raises a RuntimeError is not compared.
    """
    lines, slow = [], []
    for name in names:
        own, short = ours(name, machine), Path(name).name.partition(".hlo")[0]
        total = own["seconds"].sum()
        low = own[(own["roofline"] < _LOW * own["seconds"]) & (own["seconds"] > _WEIGHT * total)]
        slow.append(low.assign(program=short, weight=low["seconds"] / total, share=low["roofline"] / low["seconds"]))
        try:
            file = name if Path(name).is_file() else str(lowered(name))
            side = theirs(text(file, machine), machine)
            real = (*_summary(side), side["fetching"].sum())
        except RuntimeError:
            real = (np.nan,) * 4
        lines.append((short, own["roofline"].sum() / total, *_summary(own), *real))
    columns = ["seconds", "moved", "movers"]
    columns = ["program", "roofline", *columns, *(f"xla {column}" for column in [*columns, "fetching"])]
    return pd.DataFrame(lines, columns=columns), pd.concat(slow)[["program", "kernel", "weight", "share"]]


def _summary(side: pd.DataFrame) -> tuple[float, float, float]:
    moves = side[side["moves"]]
    return side["seconds"].sum(), moves["bytes"].sum(), len(moves)
