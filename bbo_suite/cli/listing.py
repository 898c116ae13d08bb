"""`list` and `show`."""

from __future__ import annotations

import difflib
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UserError
from .app import AsJson, Plugins, Results, app, json_line
from .watch import studies

if TYPE_CHECKING:
    from ..registry import Registry

PICTURES = (".svg", ".png", ".pdf")
KINDS = ("strategies", "problems", "studies")

LARGEST = 10**1000
"""The largest integer that `show --json` prints; Python cannot print more than 4,300 digits."""


@app.command("list")
def list_(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[WHAT]",
            help="strategies, problems or studies; any other text, such as a family: the ids that contain it.",
        ),
    ] = None,
    results: Results = Path("results"),
    plugin: Plugins = None,
    as_json: AsJson = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the tables of families and strategies that README has.")
    ] = False,
) -> None:
    """List strategies, and problems by family; stored studies; or all ids that contain a text."""
    from .catalogue import study_table

    if what == "studies":
        found = list(studies(results))
        print(json.dumps(found)) if as_json else study_table(found, results)
    elif markdown:
        from ..registry import Registry
        from .catalogue import overview

        print(overview(Registry(tuple(plugin or ()))))
    else:
        _list_ids(what, plugin, as_json)


def _list_ids(what: str | None, plugin: list[Path] | None, as_json: bool) -> None:
    from ..registry import Registry
    from . import catalogue
    from .tables import reserved

    with reserved(as_json):
        registry = Registry(tuple(plugin or ()))
        items = catalogue.strategies(registry) if what != "problems" else []
        items += catalogue.problems(registry) if what != "strategies" else []
    is_text = what not in (None, *KINDS)
    if is_text:
        items = _containing(str(what), items)
    if as_json:
        print(json.dumps(items))
        return
    catalogue.list_table([item for item in items if item["kind"] == "strategy"])
    catalogue.family_table(catalogue.families(items), in_full=is_text)


def _containing(text: str, items: list[dict[str, str]]) -> list[dict[str, str]]:
    found = [item for item in items if text.lower() in item["id"].lower()]
    if not found:
        words = {word for item in items for word in re.split("[:/]", item["id"])}
        close = difflib.get_close_matches(text, {*words, *KINDS}, n=1, cutoff=0.5)
        hint = f"did you mean {close[0]!r}?" if close else "`list` shows families and strategies"
        raise UserError(f"no strategy and no problem has {text!r} in its id; {hint}")
    return found


@app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="ID", help="Id of a strategy or a problem.")],
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also draw a problem's space into a .svg, .png or .pdf file.")
    ] = None,
    plugin: Plugins = None,
    as_json: AsJson = False,
) -> None:
    """Describe a strategy with its options, or a problem with its search space and the cost of its default."""
    from ..registry import Registry
    from . import catalogue
    from .tables import reserved

    if picture is not None and picture.suffix not in PICTURES:
        raise UserError(f"--picture {picture} does not end in {', '.join(PICTURES)}")
    with reserved(as_json):
        registry = Registry(tuple(plugin or ()))
        facts = catalogue.facts(registry, name)
    if as_json and facts.get("candidates", 0) > LARGEST:
        facts["candidates"] = None
    print(json_line(facts)) if as_json else catalogue.fact_table(facts)
    if picture is not None:
        _draw(registry, name, picture)


def _draw(registry: Registry, problem: str, file: Path) -> None:
    import numpy as np

    from ..figures import save, space

    loaded = registry.problem(problem)
    figure, data = space.draw(loaded, space.sample(loaded, np.random.default_rng(0)))
    for path in save([(file.stem, figure, data)], file.parent, [file.suffix.removeprefix(".")]):
        print(path, file=sys.stderr)
