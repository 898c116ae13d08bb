"""Compares the hardware model with the XLA:TPU compiler: `python -m bbo_problems.tensor_compiler.calibration`."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track

from bbo_suite.errors import UserError

from ..hardware.machine import MACHINES
from .comparison import compare, counts
from .compiler import Compiler
from .flops import ratios
from .programs import names
from .report import write


def main(
    out: Annotated[Path, typer.Option(help="Folder for the report.")],
    machines: Annotated[str, typer.Option(help="Machines, separated by commas.")] = "v5e,v6e,v4",
) -> None:
    """Compile programs for each machine (results are cached) and report how well the model agrees with XLA."""
    if unknown := sorted(set(machines.split(",")) - set(MACHINES)):
        raise typer.BadParameter(f"no machine {', '.join(unknown)}; there are {', '.join(MACHINES)}")
    try:
        compiler = Compiler()
    except UserError as error:
        sys.exit(str(error))
    programs = names()
    frames = {machine: compare(machine, track(programs, machine), compiler.text) for machine in machines.split(",")}
    flops = {machine: ratios(machine, track(programs, f"{machine}, flops"), compiler.text) for machine in frames}
    alone = {machine: counts(machine, track(programs, f"{machine}, each kernel"), compiler.text) for machine in frames}
    compiler.close()
    write(frames, flops, alone, out, version("libtpu"))


if __name__ == "__main__":
    typer.run(main)
