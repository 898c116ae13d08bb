"""`record`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from .app import INTERRUPTED, Plugins, Quiet, app, count_option


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
