"""The options that define a study, shared by the commands that take them."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_type_hints

import typer

from ..errors import UserError
from .app import Plugins, Quiet, Results, count_option, key_values, seconds_option

if TYPE_CHECKING:
    from ..plan import PlannedStudies
    from ..registry import Registry
    from ..runs.study_plan import StudyPlan

DEMONSTRATION = ("random", "annealing", "evolution")
PROBLEM = "fusion/resnet50"


@dataclass(frozen=True)
class StudyOptions:
    """The options that define a study, as given on the command line."""

    strategy: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Id of a strategy, as `list strategies` shows. May be repeated."),
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
    only: Annotated[
        str | None,
        typer.Option(metavar="K/N", help="Run only the K-th of N shares of the runs; shares may run at the same time."),
    ] = None
    plan: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A Python file with the runs of a study, in place of the options before."),
    ] = None
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
        from ..registry import Registry
        from ..runs.strategy_options import chosen_options
        from ..runs.study_name import default_name
        from ..runs.study_plan import StudyPlan

        registry = Registry(tuple(self.plugin or ()))
        strategies = tuple(dict.fromkeys(self.strategy or _from_plugins(registry, "strategies") or DEMONSTRATION))
        problems = tuple(dict.fromkeys(self.problem or _from_plugins(registry, "families") or (PROBLEM,)))
        given = key_values(self.option or [])
        if self.screen is not None:
            strategies = tuple(f"screened:{name}" for name in strategies)
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
        return StudyPlan(name, self.results, registry, problems, chosen, *numbers, _share(self.only))

    def to_studies(self) -> PlannedStudies:
        """Return the studies of the plan's file.

        Raises:
          UserError: the file has no plan, or an option is given that the plan decides.
        """
        from ..plan import PlannedStudies
        from ..registry import Registry

        assert self.plan is not None
        with_plan = {"plan", "jobs", "workers", "only", "results", "plugin", "all_configs", "quiet"}
        for field in dataclasses.fields(self):
            if field.name not in with_plan and getattr(self, field.name) != field.default:
                raise UserError(f"--{field.name.replace('_', '-')} is decided by the plan; leave it out, or --plan")
        settings = {"keep_all": self.all_configs, "workers": self.workers, "only": _share(self.only)}
        return PlannedStudies.of(self.plan, self.results, Registry(tuple(self.plugin or ())), **settings)

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


def _from_plugins(registry: Registry, kind: Literal["strategies", "families"]) -> list[str]:
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
