"""`pretrain`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .app import Plugins, Quiet, app, pairs


@app.command()
def pretrain(
    strategy: Annotated[str, typer.Option(help="The strategy that learns.")],
    problem: Annotated[list[str], typer.Option(help="A problem to learn on; may be repeated.")],
    out: Annotated[Path, typer.Option(help="The file to write; run with --option pretrained=FILE.")],
    budget: Annotated[int, typer.Option(help="Evaluations in all, shared by the problems.")] = 100_000,
    seed: Annotated[int, typer.Option(help="Of the only generator.")] = 0,
    plugin: Plugins = None,
    option: Annotated[list[str] | None, typer.Option(help="key=value; `show STRATEGY` lists them.")] = None,
    quiet: Quiet = False,
) -> None:
    """Let a strategy learn on some problems what it will start from on others."""
    from ..registry import Registry
    from ..runs.strategy_options import chosen_options
    from ..tuning import pretraining
    from . import progress

    registry = Registry(tuple(plugin or ()))
    options = chosen_options(registry, (strategy,), pairs(option or []))[strategy]
    with progress.counted("pretraining", budget, quiet) as shown:
        pretraining.pretrain(registry, strategy, problem, out, budget, seed, options, shown)
    print(out)
