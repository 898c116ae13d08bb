"""Writes the pages that repeat what the code and the results folder say: strategies, problems, commands, studies."""

from __future__ import annotations

import contextlib
import inspect
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bbo_suite import site
from bbo_suite.cli import app
from bbo_suite.cli.catalogue import facts
from bbo_suite.errors import UserError
from bbo_suite.registry import Registry
from bbo_suite.store.run_table import run_tables

RESULTS = Path(__file__).parents[1] / "results"


def write_pages(folder: Path) -> None:
    """Write all generated pages into a folder, which is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "results").mkdir(parents=True)
    for name, lines in {"strategies": strategies(), "problems": problems(), "commands": commands()}.items():
        (folder / f"{name}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for study in studies():
        copy_study(study, folder / "results")


def strategies() -> Iterator[str]:
    """Yield what `show` says of every strategy, with its options."""
    registry = Registry()
    for name in sorted(registry.strategies()):
        with contextlib.suppress(UserError):  # a library of peers that is not installed here
            known = facts(registry, name)
            yield from (f"## {name}", "", mark(known), "", known["what"], "")
            yield from options(known.get("options", []))


def mark(known: Mapping[str, Any]) -> str:
    """Return what a strategy knows of a problem, in a line."""
    if "names" in known:
        return f"One strategy for each of {len(known['names'])} names, such as `{known['names'][0]}`."
    return f"Sees: {known['sees']}."


def options(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a table of options."""
    if rows:
        yield from ("| option | type | default | meaning |", "|---|---|---|---|")
        for row in rows:
            cells = [f"`{row['name']}`", row["type"], f"`{row['default']!r}`", row["help"]]
            yield "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"
        yield ""


def problems() -> Iterator[str]:
    """Yield each family of problems: what it is, its unit, and its instances."""
    for name, load in sorted(Registry().families().items()):
        family = load()
        names = ", ".join(f"`{name}/{instance}`" for instance in family.instances[:4]) or f"`{name}:path`"
        more = f" and {len(family.instances) - 4} more" if len(family.instances) > 4 else ""
        yield from (f"## {name}", "", inspect.getdoc(family) or "", "", f"Instances: {names}{more}.", "")


def commands() -> Iterator[str]:
    """Yield every command with its arguments and options."""
    import typer.cli
    import typer.main

    command = typer.main.get_command(app)
    context = typer.Context(command, info_name="python -m bbo_suite")
    yield typer.cli.get_docs_for_click(obj=command, ctx=context, name="python -m bbo_suite", title="Command line")


def studies() -> list[Path]:
    """Return the folders of the published studies."""
    return sorted(page.parent for page in RESULTS.glob("*/README.md"))


def write_site(out: Path) -> None:
    """Write the site of the published studies that keep a table of runs, without what else the results folder holds."""
    with tempfile.TemporaryDirectory() as folder:
        for study in studies():
            (Path(folder) / study.name).mkdir()
            for table in run_tables(study):
                shutil.copy(table, Path(folder) / study.name)
        site.write(Path(folder), out)


def copy_study(study: Path, folder: Path) -> None:
    """Copy a study's README and its figures; figures that README does not show come at the end."""
    text = (study / "README.md").read_text(encoding="utf-8")
    (folder / study.name).mkdir()
    shown = []
    for figure in sorted(study.rglob("*.png")):
        place = figure.relative_to(study)
        (folder / study.name / place).parent.mkdir(exist_ok=True)
        shutil.copy(figure, folder / study.name / place)
        if f"]({place})" not in text:
            shown.append(f"![{place.stem}]({place})\n")
    more = "\n## More figures\n\n" + "\n".join(shown) if shown else ""
    (folder / study.name / "index.md").write_text(text + more, encoding="utf-8")
