"""Lowers the models to the HLO texts that ship: `python -m bbo_problems.tensor_compiler.models.lower [NAME ...]`.

A program is traced and lowered for abstract arguments; it is neither compiled nor run. `VERSIONS`, beside the programs,
records the version of JAX that made each of them.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Annotated

import jax
import typer
from jax._src.lib import xla_client

from . import MODELS, SHIPPED, Program
from .catalogue import LAYERED, PROGRAMS

VERSIONS = "VERSIONS"
_KNOWN = PROGRAMS | LAYERED


def hlo_text(program: Program) -> str:
    """The program's HLO before optimisation, in the form that XLA can read back, without sources and metadata."""
    function, arguments = program
    lowered = jax.jit(function).trace(*arguments).lower(lowering_platforms=("cpu",))
    module = lowered.compiler_ir("hlo").as_hlo_module()
    return module.to_string(xla_client.hlo.HloPrintOptions.short_parsable())


def read_versions(folder: Path) -> dict[str, str]:
    """The version of JAX that made each program in the folder."""
    path = folder / VERSIONS
    return dict(line.split() for line in path.read_text().splitlines()) if path.exists() else {}


def write_program(folder: Path, name: str) -> Path:
    """Lower the named program into the folder and record the version of JAX."""
    path = folder / f"{name}.hlo.gz"
    path.write_bytes(gzip.compress(hlo_text(_KNOWN[name]()).encode(), mtime=0))
    versions = read_versions(folder) | {name: jax.__version__}
    (folder / VERSIONS).write_text("".join(f"{name} {version}\n" for name, version in sorted(versions.items())))
    return path


def main(
    names: Annotated[list[str] | None, typer.Argument(help="Programs to lower (default: all that ship).")] = None,
    out: Annotated[Path, typer.Option(help="Folder to write the programs to.")] = SHIPPED,
) -> None:
    """Write NAME.hlo.gz for every named program."""
    if unknown := sorted(set(names or ()) - set(_KNOWN)):
        raise typer.BadParameter(f"no program {', '.join(unknown)}; there are {', '.join(_KNOWN)}")
    out.mkdir(parents=True, exist_ok=True)
    for name in names or MODELS:
        typer.echo(write_program(out, name))


if __name__ == "__main__":
    typer.run(main)
