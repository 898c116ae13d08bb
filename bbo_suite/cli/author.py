"""The commands for authors of strategies: `check`, `pretrain`, `tune-strategy`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UserError
from .app import AsJson, AsLines, Plugins, Quiet, Results, app, count_option, json_line, key_values

if TYPE_CHECKING:
    from ..runs.tune import Tuning, TuningResult


@app.command()
def pretrain(
    strategy: Annotated[str, typer.Option(metavar="ID", help="The strategy to train.")],
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The file to write; use it with `run --option pretrained=FILE`.")
    ],
    problem: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="A training problem. May be repeated.")
    ] = None,
    family: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="A family of training problems, such as kernel/prior. May be repeated."),
    ] = None,
    tasks: Annotated[int, count_option("Problems that are drawn from each family.")] = 1000,
    budget: Annotated[int, count_option("Total evaluations, shared by the problems.")] = 100_000,
    seed: Annotated[int, count_option("Seed of the random generator.")] = 0,
    plugin: Plugins = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="An option of the strategy, as key=value; `show STRATEGY` lists them. May be repeated.",
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Train a strategy on some problems, so that it starts from what it learned on others."""
    from .. import pretraining
    from ..registry import Registry
    from ..runs.study_plan import chosen_options
    from . import progress
    from .tables import reserved

    registry = Registry(tuple(plugin or ()))
    options = chosen_options(registry, (strategy,), key_values(option or []))[strategy]
    with reserved(True), progress.counted("pretraining", budget, quiet) as shown:
        pretraining.pretrain(registry, strategy, problem or [], out, budget, seed, options, shown, family or [], tasks)
    print(out)


@app.command()
def tune_strategy(
    strategy: Annotated[str, typer.Argument(metavar="STRATEGY", help="Id of the strategy to tune.")],
    problem: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="A training problem. May be repeated.")
    ] = None,
    problems_from: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file of training problems, one id per line.")
    ] = None,
    trials: Annotated[int, count_option("Number of settings to try, including the shipped defaults.")] = 30,
    budget: Annotated[int, count_option("Evaluations per run.")] = 2000,
    repeats: Annotated[int, count_option("Runs (seeds) of each setting on each problem.")] = 2,
    seed: Annotated[int, count_option("The first seed.")] = 0,
    batch: Annotated[int, count_option("Candidates per call of the strategy.")] = 100,
    jobs: Annotated[int | None, count_option("Parallel runs, one process each (default: number of cores).")] = None,
    study: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name of the study's folder (default: derived from the settings)."),
    ] = None,
    results: Results = Path("results"),
    plugin: Plugins = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the result to this file, as JSON.")] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Tune a strategy's options on training problems. The same command again resumes."""
    from ..registry import Registry
    from ..runs import tune as tuning
    from .progress import display
    from .tables import reserved

    registry = Registry(tuple(plugin or ()))
    problems = tuple(dict.fromkeys([*(problem or []), *tuning.read_problems(problems_from)]))
    name = tuning.default_name(strategy, problems, budget, batch, repeats, seed) if study is None else study
    work = (trials, budget, repeats, seed, batch, jobs, display(quiet), quiet)
    plan = tuning.Tuning(name, results, registry, strategy, problems, *work)
    with reserved(as_json):
        result = tuning.tune(plan)
    if out is not None:
        tuning.write(plan, result, out)
    print(json_line(tuning.facts(plan, result))) if as_json else _print(plan, result)


def _print(plan: Tuning, result: TuningResult) -> None:
    """Print the tuned setting next to the shipped defaults, and the command that uses it."""
    from rich.table import Table

    from ..runs.tune import changed, option_text
    from .tables import escape, wide_console

    table = Table("problem", "shipped defaults", "tuned")
    for problem, gain in result.shipped.items():
        table.add_row(escape(problem), f"{math.exp(gain):.4f}", f"{math.exp(result.tuned[problem]):.4f}")
    seeds = f"{2 * plan.repeats} fresh seeds"
    table.caption = f"speedup after {plan.budget:,} evaluations, geometric mean of {seeds}; higher is better"
    console, setting = wide_console(), changed(result)
    console.print(table)
    print(f"score: {result.score:.4f} in the search, {result.fresh_score:.4f} on {seeds}; the shipped defaults score 1")
    if not setting or result.fresh_score <= 1:
        print(f"keep the shipped defaults: none of {plan.trials} settings is better")
        return
    options = " ".join(f"--option {plan.strategy}.{text}" for text in option_text(setting).split(" "))
    print(f"python -m bbo_suite run --strategy {plan.strategy} {options}")


@app.command()
def check(file: Annotated[Path, typer.Argument(help="The plugin file to check.")], as_json: AsLines = False) -> None:
    """Check that a plugin follows the rules for strategies and problems."""
    from ..conformance.kit import check_plugin
    from .tables import each_reserved

    failed = 0
    for found in each_reserved(check_plugin(file), as_json):  # plugins may print
        subject, rule, complaint = found
        line = f"{'FAIL' if complaint else 'ok  '} {subject}: {rule}{f': {complaint}' if complaint else ''}"
        print(json_line(dict(zip(("subject", "rule", "complaint"), found, strict=True))) if as_json else line)
        failed += bool(complaint)
    if failed:
        raise UserError(f"{file} breaks {failed} of the rules; see the lines marked FAIL")
