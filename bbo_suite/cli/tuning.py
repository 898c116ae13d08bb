"""`tune-strategy`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .app import AsJson, Plugins, Quiet, Results, app, count_option, json_line


@app.command()
def tune_strategy(
    strategy: Annotated[str, typer.Argument(metavar="STRATEGY", help="Id of the strategy to tune.")],
    problem: Annotated[list[str] | None, typer.Option(help="A training problem. May be repeated.")] = None,
    problems_from: Annotated[Path | None, typer.Option(help="A file of training problems, one id per line.")] = None,
    trials: Annotated[int, count_option("Number of settings to try, including the shipped defaults.")] = 30,
    budget: Annotated[int, count_option("Evaluations per run.")] = 2000,
    repeats: Annotated[int, count_option("Runs (seeds) of each setting on each problem.")] = 2,
    seed: Annotated[int, count_option("The first seed.")] = 0,
    batch: Annotated[int, count_option("Candidates per call of the strategy.")] = 100,
    jobs: Annotated[int | None, count_option("Parallel runs, one process each (default: number of cores).")] = None,
    study: Annotated[
        str | None, typer.Option(help="Name of the study's folder (default: derived from the settings).")
    ] = None,
    results: Results = Path("results"),
    plugin: Plugins = None,
    out: Annotated[Path | None, typer.Option(help="Write the result to this file, as JSON.")] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Tune a strategy's options on training problems. The same command again resumes."""
    from ..registry import Registry
    from ..tuning import tune as tuning
    from .progress import display
    from .tables import reserved, tuning_table

    registry = Registry(tuple(plugin or ()))
    problems = tuple(dict.fromkeys([*(problem or []), *tuning.read_problems(problems_from)]))
    name = tuning.default_name(strategy, problems, budget, batch, repeats, seed) if study is None else study
    work = (trials, budget, repeats, seed, batch, jobs, display(quiet), quiet)
    plan = tuning.Tuning(name, results, registry, strategy, problems, *work)
    with reserved(as_json):
        result = tuning.tune(plan)
    if out is not None:
        tuning.write(plan, result, out)
    print(json_line(tuning.facts(plan, result))) if as_json else tuning_table(plan, result)
