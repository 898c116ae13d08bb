"""`run` and `plan`, and the options that define a study."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer

from ..core.level import LEVEL, Level, explained
from ..core.quantities import duration
from ..errors import UserError
from .app import (
    INTERRUPTED,
    AsLines,
    Plugins,
    Quiet,
    Results,
    app,
    count_option,
    draw_main_figures,
    json_line,
    key_values,
    seconds_option,
)

if TYPE_CHECKING:
    from ..plan import PlannedStudies
    from ..registry import Registry
    from ..runs.runner import StudyOutcome
    from ..runs.study_plan import StudyPlan

DEMONSTRATION = ("random", "annealing", "evolution")
PROBLEM = "fusion/resnet50"


@dataclass(frozen=True)
class StudyOptions:
    """The options that define a study, as given on the command line."""

    strategy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID",
            help="Id of a strategy, as `list strategies` shows, or auto: what `recommend` says. May be repeated.",
        ),
    ] = None
    problem: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID", help="Id of a problem: family/instance, or family:path for a file. May be repeated."
        ),
    ] = None
    budget: Annotated[int, count_option("Evaluations per run, such as 500, 1k or 1e4.")] = 10_000
    repeats: Annotated[
        int | None, count_option("Runs of each strategy on each problem, with one seed each (default: 1).")
    ] = None
    seed: Annotated[int, count_option("The first seed.")] = 0
    batch: Annotated[int, count_option("Candidates per call of a strategy.")] = 100
    jobs: Annotated[
        int | None, count_option("Parallel runs, one process each (default: number of cores; 1 if costs are times).")
    ] = None
    workers: Annotated[int, count_option("Compiler processes per run, for problems with a live compiler.")] = 1
    max_seconds: Annotated[
        float | None, seconds_option("Time limit of a run, such as 90 (seconds), 10m or 1h, in addition to the budget.")
    ] = None
    until: Annotated[
        str | None,
        typer.Option(
            metavar="PRICE",
            help="End a run once more evaluations are expected to gain less: 0.1%/100, or worth-it for 0.1%/1000.",
        ),
    ] = None
    only: Annotated[
        str | None,
        typer.Option(metavar="K/N", help="Run only the K-th of N shares of the runs; shares may run at the same time."),
    ] = None
    plan: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A Python file with the runs of a study, in place of the options before."),
    ] = None
    missing: Annotated[
        bool,
        typer.Option(
            "--missing", help="Of a plan, only runs that its table lacks, or whose problem has changed since."
        ),
    ] = False
    study: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the study (default: derived from the settings).")
    ] = None
    results: Results = Path("results")
    plugin: Plugins = None
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="A strategy's option: key=value or strategy.key=value; `show STRATEGY` lists them. May be repeated.",
        ),
    ] = None
    screen: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Let strategies search on a model of the costs, and evaluate only the best: a name that the problem "
            "knows, such as `estimate`, or a file.",
        ),
    ] = None
    keep: Annotated[
        int | None, count_option("Candidates that are evaluated with --screen (default: 10, as many as XTAT keeps).")
    ] = None
    all_configs: Annotated[
        bool, typer.Option("--all-configs", help="Store every candidate in full, not only the improvements.")
    ] = False
    quiet: Quiet = False

    def to_study(self) -> StudyPlan:
        """Return the study that the options describe.

        Raises:
          UserError: an option is wrong.
        """
        from ..forecast import price_of
        from ..recommend import with_choices
        from ..registry import Registry
        from ..runs.study_plan import StudyPlan, chosen_options, default_name

        if self.missing:
            raise UserError("--missing is for runs of a plan; give it with --plan, or leave --missing out")
        registry = Registry(tuple(self.plugin or ()))
        strategies = tuple(dict.fromkeys(self.strategy or from_plugins(registry, "strategies") or DEMONSTRATION))
        problems = tuple(dict.fromkeys(self.problem or from_plugins(registry, "families") or (PROBLEM,)))
        on = with_choices(strategies, problems, self.budget, registry, self.max_seconds)
        if self.screen is not None:
            on = {problem: tuple(f"screened:{name}" for name in names) for problem, names in on.items()}
        strategies = tuple(dict.fromkeys(name for names in on.values() for name in names))
        given = key_values(self.option or [])
        if self.screen is not None:
            given |= {f"{name}.model": self.screen for name in strategies}
            given |= {f"{name}.keep": str(self.keep) for name in strategies if self.keep is not None}
        elif self.keep is not None:
            raise UserError("--keep is for runs on a model; give the model with --screen, or leave --keep out")
        chosen = chosen_options(registry, strategies, given)
        settings = (self.budget, self.batch, self.seed)
        name = default_name(strategies, problems, chosen, *settings) if self.study is None else self.study
        few = self.strategy or self.problem or self.plugin
        repeats = (1 if few else 3) if self.repeats is None else self.repeats
        numbers = (repeats, self.seed, self.budget, self.batch, self.all_configs, self.workers, self.max_seconds)
        until = None if self.until is None else price_of(self.until)
        return StudyPlan(
            name, self.results, registry, problems, chosen, *numbers, _share(self.only), until=until, on=on
        )

    def to_studies(self) -> PlannedStudies:
        """Return the studies of the plan's file.

        Raises:
          UserError: the file has no plan, or an option is given that the plan decides.
        """
        from ..plan import PlannedStudies
        from ..registry import Registry

        assert self.plan is not None
        with_plan = {"plan", "missing", "jobs", "workers", "only", "results", "plugin", "all_configs", "quiet"}
        for field in dataclasses.fields(self):
            if field.name not in with_plan and getattr(self, field.name) != field.default:
                raise UserError(f"--{field.name.replace('_', '-')} is decided by the plan; leave it out, or --plan")
        settings = {"keep_all": self.all_configs, "workers": self.workers, "only": _share(self.only)}
        planned = PlannedStudies.of(self.plan, self.results, Registry(tuple(self.plugin or ())), **settings)
        if not self.missing:
            return planned
        if not self.quiet:
            print(f"loading the problems of {planned.table}, to see which have changed", file=sys.stderr)
        return planned.missing()

    def to_arguments(self) -> list[str]:
        """Return the command-line arguments that give the same options."""
        given = ((field.name, getattr(self, field.name), field.default) for field in dataclasses.fields(self))
        arguments = []
        for name, value, default in given:
            flag = f"--{name.replace('_', '-')}"
            for item in () if value == default else value if isinstance(value, list) else [value]:
                arguments += [flag] if item is True else [flag, str(item)]
        return arguments


def takes_study(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a study; it receives them as its first argument, a `StudyOptions`."""
    hints = get_type_hints(StudyOptions, include_extras=True)
    shared = inspect.signature(StudyOptions).parameters
    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
    parameters = [*(shared[name].replace(annotation=hint) for name, hint in hints.items()), *own]

    @functools.wraps(command)
    def called(**given: object) -> None:
        options = StudyOptions(**{name: given.pop(name) for name in shared})  # type: ignore[arg-type]
        command(options, **given)

    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return called


def _share(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if not found:
        raise UserError(f"--only {text!r} is not a share; write K/N, such as 1/10 for the first of ten")
    return int(found[1]), int(found[2])


def from_plugins(registry: Registry, kind: Literal["strategies", "families"]) -> list[str]:
    """Return the ids of the strategies or problems in the plugin files, which run when none is chosen."""
    from ..core.problem import Problem
    from ..core.strategy import Strategy
    from ..plugins import classes_of

    if kind == "strategies":
        return [path.stem for path in registry.plugins if classes_of(path, Strategy)]
    found = [(path.stem, c) for path in registry.plugins for c in classes_of(path, Problem)]
    for stem, c in found:
        if not c.instances:
            raise UserError(f"problem {stem!r} of the plugin has no instances; give a file: --problem {stem}:path")
    return [f"{stem}/{c.instances[0]}" for stem, c in found]


@app.command()
@takes_study
def run(
    options: StudyOptions,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="tcp://HOST:PORT", help="Run on the workers of a Dask scheduler at this address."),
    ] = None,
    as_json: AsLines = False,
) -> None:
    """Run strategies on problems. The same command again resumes. Without arguments: a short demonstration."""
    from .tables import reserved, summary_table

    if options.plan is not None:
        _run_plan(options, cluster)
    with reserved(as_json):
        study = options.to_study()
        report = _perform(study, options, cluster)
    if study.only and not study.share:
        print(f"share {study.only[0]}/{study.only[1]} is empty: the study has {len(study.runs)} runs", file=sys.stderr)
    for error in report.errors:
        print(f"error: {error}", file=sys.stderr)
    for summary in report.summaries if as_json else ():
        print(json_line(summary), flush=True)
    if report.summaries and not as_json:
        summary_table(report.summaries)
        if study.only:
            print(f"when all shares are done: {_command('report', study)}")
        elif not report.stopped:
            draw_main_figures(study.name, study.results)
            _conclude(study, options)
    if report.stopped:
        print(f"stopped; everything is stored in {study.path}: run the same command to resume", file=sys.stderr)
    raise typer.Exit(INTERRUPTED if report.stopped else 1 if report.errors else 0)


def _run_plan(options: StudyOptions, cluster: str | None) -> None:
    """Make the runs of a plan, add them to its table, and say whether they equal those that it has."""
    planned = options.to_studies()
    studies = [study for *_, study in planned.studies]
    errors, stopped = [], False
    for number, study in enumerate(studies, 1):
        print(f"study {number} of {len(studies)}, {study.name}: {len(study.share):,} runs", file=sys.stderr)
        outcome = _perform(study, options, cluster) if study.share else None
        errors += outcome.errors if outcome else []
        if stopped := outcome is not None and outcome.stopped:
            break
    new, equal, different = planned.update()
    for error in errors:
        print(f"error: {error}", file=sys.stderr)
    for name in different:
        print(f"error: the run {name} differs from the one in {planned.table}", file=sys.stderr)
    print(f"{planned.table}: {new:,} runs are new; {equal:,} are equal to those that it had, {len(different):,} differ")
    if stopped:
        print("stopped; everything is stored: run the same command to resume", file=sys.stderr)
    raise typer.Exit(INTERRUPTED if stopped else 1 if errors or different else 0)


def _conclude(study: StudyPlan, options: StudyOptions) -> None:
    """Print the headlines of the report, which cover all runs of the study, and the commands that come next."""
    from ..forecast import LEAST
    from ..report import headlines
    from .tables import wide_console

    console = wide_console()
    print()
    for sentence in headlines(study.name, study.results):
        console.print(sentence, markup=False, highlight=False, soft_wrap=not console.is_terminal)
    print()
    print(f"next: {_command('report', study)}  (figures and tests on one page)")
    plugins = "".join(f" --plugin {shlex.quote(str(path))}" for path in options.plugin or ())
    print(f"      {_command('best', study)}{plugins}  (what was found, measured again)")
    if study.budget >= LEAST:
        print(f"      {_command('forecast', study)}  (what more evaluations would bring)")


def _command(name: str, study: StudyPlan) -> str:
    """Return a command for the study, with `--results` unless it is in the default folder."""
    results = "" if study.results == Path("results") else f" --results {shlex.quote(str(study.results))}"
    return f"python -m bbo_suite {name} {shlex.quote(study.name)}{results}"


def _perform(study: StudyPlan, options: StudyOptions, cluster: str | None) -> StudyOutcome:
    from ..runs.runner import run_study
    from .progress import display

    try:
        return run_study(study, options.jobs, display(options.quiet), cluster)
    except KeyboardInterrupt:  # before the first run, or the second Ctrl-C: typer would exit without a message
        kept = f"stored evaluations are kept in {study.path}: run the same command to resume"
        print(f"stopped at once; {kept if study.path.exists() else 'nothing was stored'}", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None


@app.command()
@takes_study
def plan(
    options: StudyOptions,
    as_list: Annotated[bool, typer.Option("--list", help="Print one command per run, for a batch system.")] = False,
    as_json: AsLines = False,
) -> None:
    """Check the options of `run`, and show the amount of work and how long it will take. Nothing is stored."""
    from ..runs.processes import default_jobs, one_at_a_time
    from ..runs.study_plan import timed_problems
    from .progress import display
    from .tables import reserved
    from .workload import workload

    if options.jobs is not None and options.jobs < 1:
        raise UserError(f"jobs must be 1 or more, not {options.jobs}")
    if as_list and options.only:
        raise UserError("--list divides the runs itself; leave out --only")
    with reserved(as_json or as_list):
        studies = [s for *_, s in options.to_studies().studies] if options.plan else [options.to_study()]
        if as_list and len(studies) > 1:
            raise UserError("--list is for one study; run shares of a plan with --only K/N")
        planned, items = [], []
        for study in studies:
            with display(options.quiet).preparing(study.problems):
                planned += (own := study.prepare())
                items += [] if as_list else list(workload(study, own))
    command = shlex.join(["python", "-m", "bbo_suite", "run", *options.to_arguments()])
    for number in range(len(planned) if as_list else 0):
        print(f"{command} --only {number + 1}/{len(planned)}")
    for item in items if as_json else ():
        print(json_line(item))
    if not (as_list or as_json):
        timed = timed_problems(planned)
        _print(items, options.jobs or default_jobs(len(planned), timed))
        if timed and options.jobs is None and len(planned) > 1:
            print(one_at_a_time(timed))


def _print(items: Sequence[Mapping[str, Any]], jobs: int) -> None:
    """Print the amount of work: one line per strategy and problem, the total, and how long it will take."""
    from .tables import fitting_table, wide_console

    summed = ("runs", "done", "evaluations", "bytes", "seconds")
    total = {
        "problem": "total",
        "strategy": "",
        LEVEL: Level.COSTS.word,
        "parameters": None,
        **{key: sum(i[key] for i in items) for key in summed},
    }
    console, caption = wide_console(), "time: of all runs one after another, estimated; stored MB: at the full budget"
    caption = "; ".join(filter(None, (caption, explained(set(map(Level.of, items))))))
    lines = [_cells(item) for item in (*items, total)]
    console.print(fitting_table(lines, ("parameters", "stored MB", "done", "evaluations"), console.width, caption))
    left = total["runs"] - total["done"]
    at_once = max(1, min(jobs, left))
    longest = max((item["seconds"] / max(1, item["runs"] - item["done"]) for item in items), default=0.0)
    time = f"{at_once} at a time: about {duration(max(total['seconds'] / at_once, longest))}"
    print(f"{left:,} run{'' if left == 1 else 's'} to do, {time}" if left else "all runs are done")


def _cells(item: Mapping[str, Any]) -> dict[str, str]:
    counts = {
        key: "" if item[key] is None else f"{item[key]:,}" for key in ("runs", "done", "parameters", "evaluations")
    }
    names = {"problem": item["problem"], "strategy": Level.of(item).marked(item["strategy"])}
    return {**names, **counts, "stored MB": f"{item['bytes'] / 1e6:,.1f}", "time": duration(item["seconds"])}
