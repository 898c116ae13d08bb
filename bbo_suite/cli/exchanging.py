"""`export` and `import`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from .app import Plugins, Results, StudyName, app

# the keys of exchange.formats.FORMATS; a test compares them
To = Literal["ioh", "t4", "kernel-tuner", "parquet", "csv", "optuna", "digests"]


@app.command()
def export(
    study: StudyName,
    to: Annotated[To, typer.Option(help="The format to write.")],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file or folder to write (default: in the study's folder).")
    ] = None,
    results: Results = Path("results"),
    plugin: Plugins = None,
) -> None:
    """Write a study in the format of another tool: IOHanalyzer, Kernel Tuner, Optuna, pandas, ..."""
    from ..exchange.formats import export as write
    from ..registry import Registry

    path, notes = write(study, to, out, results, Registry(tuple(plugin or ())))
    for note in notes:
        print(note, file=sys.stderr)
    print(path)


@app.command("import")
def import_(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A file written by `export` as csv, parquet, ioh or optuna.")
    ],
    study: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the study (default: taken from the file).")
    ] = None,
    problem: Annotated[
        str | None, typer.Option(metavar="ID", help="The problem of the runs, if the file does not name it.")
    ] = None,
    results: Results = Path("results"),
    plugin: Plugins = None,
) -> None:
    """Import runs from another tool's file into a study; `plot` then shows them next to other runs."""
    from ..exchange.importing import Import
    from ..registry import Registry

    importer = Import(file, study, results, Registry(tuple(plugin or ())), problem)
    print(f"{len(importer.perform()):,} runs imported", file=sys.stderr)
    print(importer.path)
