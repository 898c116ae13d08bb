"""`list` and `show`."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer

from .app import AsJson, Plugins, app, json_line

LARGEST = 10**1000
"""The largest integer that `show --json` prints; Python cannot print more than 4,300 digits."""


@app.command("list")
def list_(
    what: Annotated[
        Literal["strategies", "problems"] | None, typer.Argument(help="What to list (default: both).")
    ] = None,
    plugin: Plugins = None,
    as_json: AsJson = False,
) -> None:
    """List strategies and problems."""
    from ..registry import Registry
    from . import catalogue
    from .tables import list_table, reserved

    with reserved(as_json):
        registry = Registry(tuple(plugin or ()))
        items = catalogue.strategies(registry) if what != "problems" else []
        items += catalogue.problems(registry) if what != "strategies" else []
    print(json.dumps(items)) if as_json else list_table(items)


@app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="ID", help="Id of a strategy or a problem.")],
    plugin: Plugins = None,
    as_json: AsJson = False,
) -> None:
    """Describe a strategy with its options, or a problem with its search space and the cost of its default."""
    from ..registry import Registry
    from . import catalogue
    from .tables import fact_table, reserved

    with reserved(as_json):
        registry = Registry(tuple(plugin or ()))
        facts = catalogue.facts(registry, name)
    if as_json and facts.get("candidates", 0) > LARGEST:
        facts["candidates"] = None
    print(json_line(facts)) if as_json else fact_table(facts)
