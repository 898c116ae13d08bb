"""Files for other tools: `record`, `export`, `import`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from .app import INTERRUPTED, Plugins, Quiet, Results, StudyName, app, count_option


@app.command()
def record(
    problem: Annotated[
        str, typer.Argument(metavar="PROBLEM", help="Id of the problem: family/instance, or family:path for a file.")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file to write: .json or .json.gz (T4), or .parquet.")],
    sample: Annotated[
        int | None, count_option("Number of candidates to measure, drawn at random (default: all).")
    ] = None,
    seed: Annotated[int, count_option("Seed of the sample and of the order.")] = 0,
    parameter: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Vary only this parameter; the others keep their default. May be repeated."),
    ] = None,
    workers: Annotated[int, count_option("Compiler processes, for problems with a live compiler.")] = 1,
    plugin: Plugins = None,
    quiet: Quiet = False,
) -> None:
    """Measure a problem's candidates into a file; `run --problem recorded:FILE` searches it in microseconds."""
    from contextlib import ExitStack

    from ..recording import record as recording
    from ..registry import Registry
    from . import progress
    from .tables import reserved

    registry, names = Registry(tuple(plugin or ())), tuple(parameter or ())
    with reserved(True), ExitStack() as stack:  # problems may print

        def shown(total: int) -> recording.Progress:
            return stack.enter_context(progress.counted("recording", total, quiet))

        try:
            recording.record(registry, problem, out, sample, seed, names, workers, shown)
        except KeyboardInterrupt:
            print(f"stopped; the measurements are kept in {out}.part: run the same command to resume", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
    print(out)


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
    strategy: Annotated[
        str | None, typer.Option(metavar="NAME", help="The strategy of the runs, if the file does not name it.")
    ] = None,
    seed: Annotated[int | None, count_option("The seed of the run, if the file does not say it.")] = None,
    results: Results = Path("results"),
    plugin: Plugins = None,
) -> None:
    """Import runs from another tool's file into a study; `plot` then shows them next to other runs."""
    from ..exchange.importing import Import
    from ..registry import Registry

    importer = Import(file, study, results, Registry(tuple(plugin or ())), problem, strategy, seed)
    print(f"{len(importer.perform()):,} runs imported", file=sys.stderr)
    print(importer.path)
