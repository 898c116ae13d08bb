"""The command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from .errors import UserError

if TYPE_CHECKING:
    from .api import Report
    from .registry import Registry
    from .study import Study

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Compare search strategies on compiler tuning problems.",
)

Results = Annotated[Path, typer.Option(help="The folder that holds studies.")]
Plugins = Annotated[
    list[Path] | None, typer.Option("--plugin", help="A file with a strategy or a problem; its stem is the id.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on standard output and nothing else there.")]

DEMONSTRATION = ("random", "annealing", "evolution")
PROBLEM = "fusion/resnet50"
INTERRUPTED = 130
LARGEST = 10**1000
"""The largest integer that `show --json` prints in full: Python refuses to print more than 4,300 digits."""


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
    quiet: Annotated[bool, typer.Option(help="Show no progress.")] = False,
) -> None:
    """Run strategies on problems; the same command again resumes. Without arguments: a short demonstration."""
    from . import api
    from .registry import Registry
    from .study import Study
    from .tables import reserved, summary_table

    with reserved(as_json):
        registry = Registry(tuple(plugin or ()))
        strategies = tuple(dict.fromkeys(strategy or _from_plugins(registry, "strategies") or DEMONSTRATION))
        problems = tuple(dict.fromkeys(problem or _from_plugins(registry, "families") or (PROBLEM,)))
        chosen = api.chosen_options(registry, strategies, _pairs(option or []))
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
        print(_strict(summary), flush=True)
    if report.summaries and not as_json:
        summary_table(report.summaries)
        if not report.stopped:
            _figures(name, results)
    if report.stopped:
        print(f"stopped; everything is stored in {made.path}: run the same command to resume", file=sys.stderr)
    raise typer.Exit(INTERRUPTED if report.stopped else 1 if report.errors else 0)


def _perform(study: Study, jobs: int | None, quiet: bool) -> Report:
    from . import api

    try:
        return api.perform_study(study, jobs, quiet)
    except KeyboardInterrupt:  # the second; typer would end without a word
        print(f"ended; what was stored in {study.path} is kept: run the same command to resume", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None


def _strict(facts: dict[str, Any]) -> str:
    """Return one line of JSON; what JSON has no number for is null."""
    return json.dumps(json.loads(json.dumps(facts, default=str), parse_constant=lambda word: None))


def _from_plugins(registry: Registry, kind: Literal["strategies", "families"]) -> list[str]:
    """Return what the plugin files define, as the default choice of what to run."""
    from .plugins import classes_of
    from .problem_base import Problem
    from .strategy_base import Strategy

    if kind == "strategies":
        return [path.stem for path in registry.plugins if classes_of(path, Strategy)]
    found = [(path.stem, c) for path in registry.plugins for c in classes_of(path, Problem)]
    for stem, c in found:
        if not c.instances:
            raise UserError(f"problem {stem!r} of the plugin has no instances; name a file: --problem {stem}:path")
    return [f"{stem}/{c.instances[0]}" for stem, c in found]


def _pairs(texts: list[str]) -> dict[str, str]:
    pairs = dict(text.partition("=")[::2] for text in texts)
    for text in texts:
        if "=" not in text:
            raise UserError(f"option {text!r} has no value; write key=value")
    return pairs


def _figures(study: str, results: Path) -> None:
    from . import figures, frames

    folder = frames.study_path(study, results) / "figures"
    for path in figures.write(frames.load(study, results), folder, frames.diagnostics(study, results)):
        print(path)


@app.command()
def plot(study: str, results: Results = Path("results")) -> None:
    """Draw a study's figures as PNG and SVG and print their paths."""
    _figures(study, results)


@app.command("list")
def list_(
    what: Annotated[Literal["strategies", "problems"] | None, typer.Argument(help="What to list; both.")] = None,
    plugin: Plugins = None,
    as_json: AsJson = False,
) -> None:
    """List strategies and problems."""
    from . import catalogue
    from .registry import Registry
    from .tables import list_table, reserved

    with reserved(as_json):
        registry = Registry(tuple(plugin or ()))
        items = catalogue.strategies(registry) if what != "problems" else []
        items += catalogue.problems(registry) if what != "strategies" else []
    print(json.dumps(items)) if as_json else list_table(items)


@app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="ID", help="A strategy or a problem.")],
    plugin: Plugins = None,
    as_json: AsJson = False,
) -> None:
    """Say what a strategy or a problem is, with its options, or its space and its default's cost."""
    from . import catalogue
    from .registry import Registry
    from .tables import fact_table, reserved

    with reserved(as_json):
        registry = Registry(tuple(plugin or ()))
        facts = catalogue.facts(registry, name)
    if as_json and facts.get("candidates", 0) > LARGEST:
        facts["candidates"] = None
    print(_strict(facts)) if as_json else fact_table(facts)


@app.command()
def pretrain(
    strategy: Annotated[str, typer.Option(help="The strategy that learns.")],
    problem: Annotated[list[str], typer.Option(help="A problem to learn on; may be repeated.")],
    out: Annotated[Path, typer.Option(help="The file to write; run with --option pretrained=FILE.")],
    budget: Annotated[int, typer.Option(help="Evaluations in all, shared by the problems.")] = 100_000,
    seed: Annotated[int, typer.Option(help="Of the only generator.")] = 0,
    plugin: Plugins = None,
    option: Annotated[list[str] | None, typer.Option(help="key=value; `show STRATEGY` lists them.")] = None,
    quiet: Annotated[bool, typer.Option(help="Show no progress.")] = False,
) -> None:
    """Let a strategy learn on some problems what it will start from on others."""
    from . import api, pretraining, progress
    from .registry import Registry

    registry = Registry(tuple(plugin or ()))
    options = api.chosen_options(registry, (strategy,), _pairs(option or []))[strategy]
    with progress.counted("pretraining", budget, quiet) as shown:
        pretraining.pretrain(registry, strategy, problem, out, budget, seed, options, shown)
    print(out)


@app.command()
def record(
    problem: Annotated[str, typer.Argument(metavar="PROBLEM", help="family/instance, or family:path of your file.")],
    out: Annotated[Path, typer.Option(help="The file to write: .json or .json.gz (T4), or .parquet.")],
    sample: Annotated[int | None, typer.Option(help="Measure so many candidates, drawn at random; all.")] = None,
    seed: Annotated[int, typer.Option(help="Of the sample, and of the order.")] = 0,
    parameter: Annotated[
        list[str] | None, typer.Option(help="Vary only this one; may be repeated. Others keep their default.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes that compile, where a compiler is live.")] = 1,
    plugin: Plugins = None,
    quiet: Annotated[bool, typer.Option(help="Show no progress.")] = False,
) -> None:
    """Measure a problem's candidates once, into a file; `--problem recorded:FILE` searches it in microseconds."""
    from contextlib import ExitStack

    from . import progress, recording
    from .registry import Registry

    registry, names = Registry(tuple(plugin or ())), tuple(parameter or ())
    with ExitStack() as stack:

        def shown(total: int) -> recording.Progress:
            return stack.enter_context(progress.counted("recording", total, quiet))

        try:
            recording.record(registry, problem, out, sample, seed, names, workers, shown)
        except KeyboardInterrupt:
            print(f"stopped; what was measured is kept in {out}.part: run the same command to go on", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
    print(out)


@app.command()
def check(file: Annotated[Path, typer.Argument(help="A plugin file.")]) -> None:
    """Run the conformance kit on a plugin: does it keep the contract of a strategy or a problem?"""
    from .conformance import check_plugin

    failed = 0
    for subject, rule, complaint in check_plugin(file):
        print(f"{'FAIL' if complaint else 'ok  '} {subject}: {rule}{f': {complaint}' if complaint else ''}")
        failed += bool(complaint)
    if failed:
        raise UserError(f"{file} breaks {failed} rules of the contract; see the lines marked FAIL")


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
    quiet: Annotated[bool, typer.Option(help="Show no progress.")] = False,
) -> None:
    """Search a strategy's own options on training problems; the same command again resumes."""
    from . import tuning
    from .registry import Registry
    from .tables import tuning_table

    registry = Registry(tuple(plugin or ()))
    problems = tuple(dict.fromkeys([*(problem or []), *tuning.read_problems(problems_from)]))
    name = tuning.default_name(strategy, problems, budget, batch, repeats, seed) if study is None else study
    work = (trials, budget, repeats, seed, batch, jobs, quiet)
    plan = tuning.Tuning(name, results, registry, strategy, problems, *work)
    verdict = tuning.tune(plan)
    if out is not None:
        tuning.write(plan, verdict, out)
    tuning_table(plan, verdict)
