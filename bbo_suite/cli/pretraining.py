"""`pretrain`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .app import Plugins, Quiet, app, count_option, key_values


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
    from ..runs.strategy_options import chosen_options
    from . import progress
    from .tables import reserved

    registry = Registry(tuple(plugin or ()))
    options = chosen_options(registry, (strategy,), key_values(option or []))[strategy]
    with reserved(True), progress.counted("pretraining", budget, quiet) as shown:
        pretraining.pretrain(registry, strategy, problem or [], out, budget, seed, options, shown, family or [], tasks)
    print(out)
