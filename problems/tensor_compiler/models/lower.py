"""Lowers the models to the HLO texts that ship: `python -m bbo_problems.tensor_compiler.models.lower [NAME ...]`.

A program is traced and lowered for abstract arguments; it is neither compiled nor run. `lowered/` has the texts as JAX
writes them, and beside it they are as after XLA's own target-independent passes. `VERSIONS` records what made each.
"""

from __future__ import annotations

import gzip
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import jax
import typer
from jax._src.lib import xla_client

from ..hlo.passes import RECIPE
from ..hlo.xla import simplified
from . import LOWERED, MODELS, SHIPPED, Program
from .catalogue import LAYERED, PROGRAMS

VERSIONS = "VERSIONS"
_KNOWN = PROGRAMS | LAYERED


def hlo_text(program: Program) -> str:
    """The program's HLO before optimisation, in the form that XLA can read back, without sources and metadata."""
    function, arguments = program
    lowered = jax.jit(function).trace(*arguments).lower(lowering_platforms=("cpu",))
    module = lowered.compiler_ir("hlo").as_hlo_module()
    return module.to_string(xla_client.hlo.HloPrintOptions.short_parsable())


def made_by() -> str:
    """Return what would make a program now: the versions of JAX and jaxlib, and of the list of passes."""
    return f"jax-{jax.__version__} jaxlib-{version('jaxlib')} passes-{RECIPE}"


def read_versions(folder: Path) -> dict[str, str]:
    """Return what made each program in the folder."""
    path = folder / VERSIONS
    lines = path.read_text().splitlines() if path.exists() else []
    return {name: made for name, _, made in (line.partition(" ") for line in lines)}


def write_program(folder: Path, name: str) -> Path:
    """Lower the named program, write it as lowered and after XLA's passes, and record what made it."""
    as_lowered = hlo_text(_KNOWN[name]())
    texts = {folder / LOWERED: as_lowered, folder: simplified(as_lowered)[0]}
    for target, text in texts.items():
        target.mkdir(parents=True, exist_ok=True)
        path = target / f"{name}.hlo.gz"
        path.write_bytes(gzip.compress(text.encode(), mtime=0))
    versions = read_versions(folder) | {name: made_by()}
    (folder / VERSIONS).write_text("".join(f"{name} {made}\n" for name, made in sorted(versions.items())))
    return path


def main(
    names: Annotated[list[str] | None, typer.Argument(help="Programs to lower (default: all that ship).")] = None,
    out: Annotated[Path, typer.Option(help="Folder to write the programs to.")] = SHIPPED,
) -> None:
    """Write NAME.hlo.gz for every named program."""
    if unknown := sorted(set(names or ()) - set(_KNOWN)):
        raise typer.BadParameter(f"no program {', '.join(unknown)}; there are {', '.join(_KNOWN)}")
    for name in names or MODELS:
        typer.echo(write_program(out, name))


if __name__ == "__main__":
    typer.run(main)
