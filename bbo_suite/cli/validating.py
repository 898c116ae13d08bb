"""`validate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .app import AsLines, Plugins, Quiet, Results, StudyName, app, count_option, json_line

if TYPE_CHECKING:
    from ..verify.same_runs import Comparison
    from ..verify.validate import Verdict


@app.command()
def validate(
    study: StudyName,
    results: Results = Path("results"),
    sample: Annotated[int, count_option("Rows per run to propose and evaluate again.")] = 100,
    digests: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Only compare the runs with a file written by `export --to digests`."),
    ] = None,
    plugin: Plugins = None,
    quiet: Quiet = False,
    as_json: AsLines = False,
) -> None:
    """Check a study's logs, evaluate candidates again and replay strategies. The exit code is 1 if a check fails.

    With --digests: compare the runs with those of a published study. Runs that only one of the two has, or that are
    not complete, are listed. The exit code is 1 if a run differs or is damaged, or if no run can be compared.
    """
    if digests is None:
        holds = _check(study, results, sample, plugin, quiet, as_json)
    else:
        holds = _same(study, results, digests, quiet, as_json)
    raise typer.Exit(0 if holds else 1)


def _same(study: str, results: Path, digests: Path, quiet: bool, as_json: bool) -> bool:
    from ..store.digests import read_digests
    from ..store.folders import run_folders
    from ..verify.same_runs import compare
    from .progress import counted

    published, total = read_digests(digests), len(run_folders(study, results))
    with counted("comparing", total, quiet, "runs") as shown:
        found = compare(study, results, published, shown)
        shown(total, "done")
    print(json_line(found.facts())) if as_json else _print_comparison(found, len(published))
    return found.holds


def _print_comparison(found: Comparison, published: int) -> None:
    from ..report.formatting import listed
    from ..store.plan import together

    for sentence in found.damaged:
        print(f"FAIL {sentence}")
    for name, sentence in found.different.items():
        print(f"FAIL {name.label}: {sentence}")
    notes = {"missing": found.missing, "not complete": found.unfinished, "not published": found.extra}
    for what, names in notes.items():
        if names:
            print(f"note {what}: {listed(together(names))}")
    result = f"{len(found.different):,} differ" if found.different else "all are the same"
    print(f"{found.compared:,} of {published:,} published runs compared" + (f": {result}" if found.compared else ""))


def _check(study: str, results: Path, sample: int, plugin: list[Path] | None, quiet: bool, as_json: bool) -> bool:
    from ..registry import Registry
    from ..store.folders import run_folders
    from ..verify.validate import validate as validated
    from .progress import counted
    from .tables import reserved

    total = len(run_folders(study, results))
    with reserved(True), counted("validating", total, quiet, "runs") as shown:  # problems may print
        verdicts = list(validated(Registry(tuple(plugin or ())), study, results, sample, shown))
        shown(total, "done")
    for verdict in verdicts if as_json else ():
        print(json_line(verdict.facts()))
    if not as_json:
        _print(verdicts)
    return not any(verdict.complaints for verdict in verdicts)


def _print(verdicts: list[Verdict]) -> None:
    from rich.markup import escape
    from rich.table import Table

    from .tables import wide_console

    table = Table("run", "rows", "log", "proposals", "values")
    for verdict in verdicts:
        rows = "-" if verdict.rows is None else f"{verdict.rows:,}"
        if not verdict.absent:
            table.add_row(escape(verdict.label), rows, verdict.log, verdict.replayed, verdict.values)
    wide_console().print(table)
    for verdict in verdicts:
        for sentence in verdict.complaints:
            print(f"FAIL {verdict.label}: {sentence}")
    for sentence, who in _notes(verdicts).items():
        print(f"note {who}: {sentence}")
    broken = sum(bool(verdict.complaints) for verdict in verdicts)
    unchecked = sum(verdict.unchecked for verdict in verdicts)
    result = f"{broken} of {len(verdicts)} runs failed a check" if broken else "all checks passed"
    print(f"{result}; {unchecked} could not be checked: see the notes" if unchecked else result)


def _notes(verdicts: list[Verdict]) -> dict[str, str]:
    """Return each remark with a list of its runs; runs of one strategy on one problem are listed together."""
    from ..report.formatting import listed
    from ..store.plan import together

    about: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        for sentence in verdict.remarks:
            about.setdefault(sentence, []).append(verdict)
    return {
        sentence: listed(together(verdict.run for verdict in found if verdict.run)) for sentence, found in about.items()
    }
