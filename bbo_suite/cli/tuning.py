"""`tune-strategy`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .app import Plugins, Quiet, Results, app


@app.command()
def tune_strategy(
    strategy: Annotated[str, typer.Argument(metavar="STRATEGY", help="A strategy's id.")],
    problem: Annotated[list[str] | None, typer.Option(help="A training problem; may be repeated.")] = None,
    problems_from: Annotated[Path | None, typer.Option(help="A file of training problems, an id a line.")] = None,
    trials: Annotated[int, typer.Option(help="Settings to try, the shipped defaults included.")] = 30,
    budget: Annotated[int, typer.Option(help="Evaluations of a run.")] = 2000,
    repeats: Annotated[int, typer.Option(help="Seeds of each setting on each problem.")] = 2,
    seed: Annotated[int, typer.Option(help="The first seed.")] = 0,
    batch: Annotated[int, typer.Option(help="Candidates that a strategy is asked for at a time.")] = 100,
    jobs: Annotated[int | None, typer.Option(help="Runs at a time, a process each; as many as cores.")] = None,
    study: Annotated[str | None, typer.Option(help="Name of the folder; made of the settings when left out.")] = None,
    results: Results = Path("results"),
    plugin: Plugins = None,
    out: Annotated[Path | None, typer.Option(help="Write the verdict to this file, as JSON.")] = None,
    quiet: Quiet = False,
) -> None:
    """Search a strategy's own options on training problems; the same command again resumes."""
    from ..registry import Registry
    from ..tuning import tune as tuning
    from .progress import display
    from .tables import tuning_table

    registry = Registry(tuple(plugin or ()))
    problems = tuple(dict.fromkeys([*(problem or []), *tuning.read_problems(problems_from)]))
    name = tuning.default_name(strategy, problems, budget, batch, repeats, seed) if study is None else study
    work = (trials, budget, repeats, seed, batch, jobs, display(quiet), quiet)
    plan = tuning.Tuning(name, results, registry, strategy, problems, *work)
    verdict = tuning.tune(plan)
    if out is not None:
        tuning.write(plan, verdict, out)
    tuning_table(plan, verdict)
