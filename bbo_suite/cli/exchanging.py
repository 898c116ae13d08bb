"""`export` and `import`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from .app import Plugins, Results, app

# mirrors exchange.MODULES, which a test compares
To = Literal["ioh", "coco", "t4", "kernel-tuner", "parquet", "csv", "optuna", "digests"]


@app.command()
def export(
    study: Annotated[str, typer.Argument(metavar="STUDY", help="The name of a study.")],
    to: Annotated[To, typer.Option(help="The format.")],
    out: Annotated[Path | None, typer.Option(help="The file or folder; in the study's folder when left out.")] = None,
    results: Results = Path("results"),
    plugin: Plugins = None,
) -> None:
    """Write a study for another tool: IOHanalyzer, cocopp, Kernel Tuner, Optuna's dashboard, pandas, ..."""
    from ..exchange.exporting import export as write
    from ..registry import Registry

    path, notes = write(study, to, out, results, Registry(tuple(plugin or ())))
    for note in notes:
        print(note, file=sys.stderr)
    print(path)


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `export` wrote as csv, parquet, ioh or optuna.")],
    study: Annotated[str | None, typer.Option(help="Name of the study; the file's when left out.")] = None,
    problem: Annotated[
        str | None, typer.Option(help="Which problem its runs are of, if the file does not say.")
    ] = None,
    results: Results = Path("results"),
    plugin: Plugins = None,
) -> None:
    """Bring the runs of a file of another tool into a study, so that `plot` shows them beside its own."""
    from ..exchange.importing import Import
    from ..registry import Registry

    made = Import(file, study, results, Registry(tuple(plugin or ())), problem)
    print(f"{len(made.perform()):,} runs brought in", file=sys.stderr)
    print(made.path)
