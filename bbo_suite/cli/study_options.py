"""The options that say what a study is, once for all commands that take them."""

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
from .app import Plugins, Quiet, Results, pairs

if TYPE_CHECKING:
    from ..registry import Registry
    from ..runs.study_plan import StudyPlan

DEMONSTRATION = ("random", "annealing", "evolution")
PROBLEM = "fusion/resnet50"


@dataclass(frozen=True)
class StudyOptions:
    """What was asked for on the command line."""

    strategy: Annotated[list[str] | None, typer.Option(help="A strategy's id; may be repeated.")] = None
    problem: Annotated[list[str] | None, typer.Option(help="family/instance, or family:path of your file.")] = None
    budget: Annotated[int, typer.Option(help="Evaluations of a run.")] = 10_000
    repeats: Annotated[int | None, typer.Option(help="Runs of each strategy on each problem, a seed each.")] = None
    seed: Annotated[int, typer.Option(help="The first seed.")] = 0
    batch: Annotated[int, typer.Option(help="Candidates that a strategy is asked for at a time.")] = 100
    jobs: Annotated[int | None, typer.Option(help="Runs at a time, a process each; as many as cores.")] = None
    workers: Annotated[int, typer.Option(help="Processes of each run that compile, where a compiler is live.")] = 1
    max_seconds: Annotated[float | None, typer.Option(help="Ends a run by time, beside the budget.")] = None
    only: Annotated[
        str | None, typer.Option(metavar="K/N", help="The K-th of N shares of the runs; they may run side by side.")
    ] = None
    study: Annotated[str | None, typer.Option(help="Name of the study; made of the settings when left out.")] = None
    results: Results = Path("results")
    plugin: Plugins = None
    option: Annotated[
        list[str] | None, typer.Option(help="key=value, or strategy.key=value; `show STRATEGY` lists them.")
    ] = None
    all_configs: Annotated[bool, typer.Option(help="Store every candidate in full, not only improvements.")] = False
    quiet: Quiet = False

    def made(self) -> StudyPlan:
        """Return the study.

        Raises:
          UserError: a mistake in the options.
        """
        from ..registry import Registry
        from ..runs.strategy_options import chosen_options
        from ..runs.study_plan import StudyPlan, default_name

        registry = Registry(tuple(self.plugin or ()))
        strategies = tuple(dict.fromkeys(self.strategy or _from_plugins(registry, "strategies") or DEMONSTRATION))
        problems = tuple(dict.fromkeys(self.problem or _from_plugins(registry, "families") or (PROBLEM,)))
        chosen = chosen_options(registry, strategies, pairs(self.option or []))
        settings = (self.budget, self.batch, self.seed)
        name = default_name(strategies, problems, chosen, *settings) if self.study is None else self.study
        few = self.strategy or self.problem or self.plugin
        repeats = (1 if few else 3) if self.repeats is None else self.repeats
        numbers = (repeats, self.seed, self.budget, self.batch, self.all_configs, self.workers, self.max_seconds)
        return StudyPlan(name, self.results, registry, problems, chosen, *numbers, _share(self.only))

    def words(self) -> list[str]:
        """Return the words of the command line that ask for the same."""
        given = ((field.name, getattr(self, field.name), field.default) for field in dataclasses.fields(self))
        words = []
        for name, value, default in given:
            flag = f"--{name.replace('_', '-')}"
            for item in () if value == default else value if isinstance(value, list) else [value]:
                words += [flag] if item is True else [flag, str(item)]
        return words


def takes_study(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take the options of a study, which come to it together as its first argument."""
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
        raise UserError(f"--only {text!r} is no share; write K/N, as 1/10 for the first of ten")
    return int(found[1]), int(found[2])


def _from_plugins(registry: Registry, kind: Literal["strategies", "families"]) -> list[str]:
    """Return what the plugin files define, as the default choice of what to run."""
    from ..core.problem import Problem
    from ..core.strategy import Strategy
    from ..plugins import classes_of

    if kind == "strategies":
        return [path.stem for path in registry.plugins if classes_of(path, Strategy)]
    found = [(path.stem, c) for path in registry.plugins for c in classes_of(path, Problem)]
    for stem, c in found:
        if not c.instances:
            raise UserError(f"problem {stem!r} of the plugin has no instances; name a file: --problem {stem}:path")
    return [f"{stem}/{c.instances[0]}" for stem, c in found]
