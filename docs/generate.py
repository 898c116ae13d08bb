"""Writes what repeats the code and the results folder: strategies, problems, folders, commands, the API, studies."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import inspect
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from bbo_suite import site
from bbo_suite.cli import app
from bbo_suite.cli.catalogue import facts, first_line, markdown_table
from bbo_suite.errors import UserError
from bbo_suite.registry import Registry
from bbo_suite.store.run_table import run_tables

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
DESCRIBED = ("published",)
"""Strategies whose variants are described one by one."""
API = {
    "Run and read": ("bbo_suite", "bbo_suite.scores"),
    "Figures": ("bbo_suite.figures",),
    "Statistics": ("bbo_suite.stats",),
    "Fleets": ("bbo_suite.fleet.policy", "bbo_suite.fleet.library"),
    "Live compilers": ("bbo_suite.supervised",),
    "Tests of your own strategies and problems": ("bbo_suite.testing", "bbo_suite.conformance.kit"),
}
"""The modules of the API page, by heading."""


def write_pages(folder: Path) -> None:
    """Write all generated pages into a folder, which is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "results").mkdir(parents=True)
    made = (strategies, families, problems, policies, folders, commands, api)
    for page in made:
        (folder / f"{page.__name__}.md").write_text("\n".join(page()) + "\n", encoding="utf-8")
    (folder / "results" / "index.md").write_text("\n".join(results()) + "\n", encoding="utf-8")
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
            for variant in known.get("names", []) if name in DESCRIBED else []:
                known = facts(registry, variant)
                yield from (f"### {variant}", "", mark(known), "", known["what"], "")


def mark(known: Mapping[str, Any]) -> str:
    """Return what a strategy knows of a problem, in a line."""
    if "names" in known:
        return f"One strategy for each of {len(known['names'])} names, such as `{known['names'][0]}`."
    return f"Sees: {known['sees']}."


def options(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a table of options."""
    yield from markdown_table(
        {
            "option": f"`{row['name']}`",
            "type": str(row["type"]),
            "default": f"`{row['default']!r}`",
            "meaning": str(row["help"]),
        }
        for row in rows
    )
    yield ""


def families() -> list[str]:
    """Return a table of all families, from their attributes."""
    return markdown_table(
        {
            "family": f"`{name}`",
            "decision": family.decision,
            "cost": family.costs or family.unit,
            "optimum known": family.optimum_known,
            "extra": family.extra and f"`{family.extra}`",
            "time per candidate": family.time_per_candidate,
        }
        for name, family in ((name, load()) for name, load in sorted(Registry().families().items()))
    )


def problems() -> Iterator[str]:
    """Yield each family of problems: what it is, and its instances."""
    for name, load in sorted(Registry().families().items()):
        family = load()
        names = ", ".join(f"`{name}/{instance}`" for instance in family.instances[:4]) or f"`{name}:path`"
        more = f" and {len(family.instances) - 4} more" if len(family.instances) > 4 else ""
        yield from (f"## {name}", "", inspect.getdoc(family) or "", "", f"Instances: {names}{more}.", "")


def policies() -> list[str]:
    """Return a table of the policies of a fleet."""
    found = sorted(metadata.entry_points(group="bbo_suite.fleet_policies"))
    return markdown_table({"policy": f"`{each.name}`", "what it does": first_line(each.load())} for each in found)


def folders() -> Iterator[str]:
    """Yield two levels of the tree, each folder and file with the first sentence of its docstring."""
    for top in ("bbo_suite", "strategies", "problems"):
        inside = sorted((ROOT / top).glob("*/__init__.py")) + sorted((ROOT / top).glob("[!_]*.py"))
        rows = []
        for file in inside:
            name = f"{file.parent.name}/" if file.stem == "__init__" else file.name
            said = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
            rows.append(
                {f"`{top}/`": f"`{name}`", "holds": re.split(r"\n|(?<=[^ .]{2}\.) ", said)[0].removesuffix(".")}
            )
        yield from (*markdown_table(rows), "")


def api() -> Iterator[str]:
    """Yield the page of the API."""
    yield "# API"
    for heading, modules in API.items():
        yield from ("", f"## {heading}")
        for module in modules:
            yield from ("", "```{eval-rst}", f".. automodule:: {module}", "   :members:")
            yield from ("   :imported-members:", "```") if _is_folder(module) else ("```",)


def commands() -> Iterator[str]:
    """Yield every command with its arguments and options."""
    import typer.cli
    import typer.main

    command = typer.main.get_command(app)
    context = typer.Context(command, info_name="python -m bbo_suite")
    yield typer.cli.get_docs_for_click(obj=command, ctx=context, name="python -m bbo_suite", title="Command line")


def _is_folder(module: str) -> bool:
    spec = importlib.util.find_spec(module)
    return spec is not None and spec.submodule_search_locations is not None


def results() -> Iterator[str]:
    """Yield the page of all published studies: README of the folder, with links to the copies."""
    text = (RESULTS / "README.md").read_text(encoding="utf-8")
    yield re.sub(r"`([\w]+)/`", r"[\1](\1/index.md)", text)
    yield from ("", '<p><a href="../../site/index.html">Leaderboards by family and budget</a></p>', "")
    yield from ("```{toctree}", ":hidden:", ":glob:", "", "*/index", "```")


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
