"""`run`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ..errors import UserError
from .app import INTERRUPTED, AsJson, Plugins, Quiet, Results, app, draw, pairs, strict

if TYPE_CHECKING:
    from ..api import Report
    from ..registry import Registry
    from ..study import Study

DEMONSTRATION = ("random", "annealing", "evolution")
PROBLEM = "fusion/resnet50"


@app.command()
def run(
    strategy: Annotated[list[str] | None, typer.Option(help="A strategy's id; may be repeated.")] = None,
    problem: Annotated[list[str] | None, typer.Option(help="family/instance, or family:path of your file.")] = None,
    budget: Annotated[int, typer.Option(help="Evaluations of a run.")] = 10_000,
    repeats: Annotated[int | None, typer.Option(help="Runs of each strategy on each problem, a seed each.")] = None,
    seed: Annotated[int, typer.Option(help="The first seed.")] = 0,
    batch: Annotated[int, typer.Option(help="Candidates that a strategy is asked for at a time.")] = 100,
    jobs: Annotated[int | None, typer.Option(help="Runs at a time, a process each; as many as cores.")] = None,
    workers: Annotated[int, typer.Option(help="Processes of each run that compile, where a compiler is live.")] = 1,
    max_seconds: Annotated[float | None, typer.Option(help="Ends a run by time, beside the budget.")] = None,
    study: Annotated[str | None, typer.Option(help="Name of the study; made of the settings when left out.")] = None,
    results: Results = Path("results"),
    plugin: Plugins = None,
    option: Annotated[
        list[str] | None, typer.Option(help="key=value, or strategy.key=value; `show STRATEGY` lists them.")
    ] = None,
    all_configs: Annotated[bool, typer.Option(help="Store every candidate in full, not only improvements.")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Run strategies on problems; the same command again resumes. Without arguments: a short demonstration."""
    from .. import api
    from ..registry import Registry
    from ..study import Study
    from ..tables import reserved, summary_table

    with reserved(as_json):
        registry = Registry(tuple(plugin or ()))
        strategies = tuple(dict.fromkeys(strategy or _from_plugins(registry, "strategies") or DEMONSTRATION))
        problems = tuple(dict.fromkeys(problem or _from_plugins(registry, "families") or (PROBLEM,)))
        chosen = api.chosen_options(registry, strategies, pairs(option or []))
        name = api.default_name(strategies, problems, chosen, budget, batch, seed) if study is None else study
        if repeats is None:
            repeats = 1 if strategy or problem or plugin else 3
        made = Study(
            name, results, registry, problems, chosen, repeats, seed, budget, batch, all_configs, workers, max_seconds
        )
        report = _perform(made, jobs, quiet)
    for error in report.errors:
        print(f"error: {error}", file=sys.stderr)
    for summary in report.summaries if as_json else ():
        print(strict(summary), flush=True)
    if report.summaries and not as_json:
        summary_table(report.summaries)
        if not report.stopped:
            draw(name, results)
    if report.stopped:
        print(f"stopped; everything is stored in {made.path}: run the same command to resume", file=sys.stderr)
    raise typer.Exit(INTERRUPTED if report.stopped else 1 if report.errors else 0)


def _perform(study: Study, jobs: int | None, quiet: bool) -> Report:
    from .. import api

    try:
        return api.perform_study(study, jobs, quiet)
    except KeyboardInterrupt:  # the second; typer would end without a word
        print(f"ended; what was stored in {study.path} is kept: run the same command to resume", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None


def _from_plugins(registry: Registry, kind: Literal["strategies", "families"]) -> list[str]:
    """Return what the plugin files define, as the default choice of what to run."""
    from ..plugins import classes_of
    from ..problem_base import Problem
    from ..strategy_base import Strategy

    if kind == "strategies":
        return [path.stem for path in registry.plugins if classes_of(path, Strategy)]
    found = [(path.stem, c) for path in registry.plugins for c in classes_of(path, Problem)]
    for stem, c in found:
        if not c.instances:
            raise UserError(f"problem {stem!r} of the plugin has no instances; name a file: --problem {stem}:path")
    return [f"{stem}/{c.instances[0]}" for stem, c in found]
