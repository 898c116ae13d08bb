"""The commands that read studies: `best`, `validate`, `report`, `site`."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.level import Level
from ..errors import UserError
from ..store.identity import known_speedups
from .app import AsLines, Plugins, Quiet, Results, StudyName, app, count_option, json_line

if TYPE_CHECKING:
    from ..registry import Registry
    from ..verify.best import Best
    from ..verify.digests import Comparison
    from ..verify.validate import Verdict


@app.command()
def best(
    study: StudyName,
    minimal: Annotated[
        bool, typer.Option("--minimal", help="Drop changes that gain nothing, and rank the others by their gain.")
    ] = False,
    keep: Annotated[
        int | None, typer.Option(min=1, metavar="K", help="For several:...: the K candidates that serve best together.")
    ] = None,
    problem: Annotated[list[str] | None, typer.Option(metavar="ID", help="Only this problem. May be repeated.")] = None,
    results: Results = Path("results"),
    plugin: Plugins = None,
    as_json: AsLines = False,
) -> None:
    """Print the best configuration of each problem as text to paste, and measure its speedup again."""
    from ..registry import Registry
    from .tables import reserved

    found = _found(Registry(tuple(plugin or ())), study, results, minimal, keep, problem)
    while True:
        with reserved(True), _waiting(minimal):  # output of problems must not mix with text to paste
            one = next(found, None)
        if one is None:
            break
        print(json_line(one.facts()) if as_json else one.text() if keep else _text(one), flush=True)


def _found(
    registry: Registry,
    study: str,
    results: Path,
    minimal: bool,
    keep: int | None,
    problems: list[str] | None,
) -> Iterator[Any]:
    from ..verify.best import best_of
    from ..verify.selection import selections

    if keep and minimal:
        raise UserError("--keep and --minimal do not go together; leave one out")
    if keep:
        return selections(registry, study, results, keep, problems)
    return best_of(registry, study, results, minimal, problems)


def _waiting(minimal: bool) -> AbstractContextManager[object]:
    """Say on a terminal that many evaluations are being made."""
    from rich.console import Console

    text = "returning changes to the default, which may take hundreds of evaluations"
    return Console(stderr=True).status(text) if minimal and sys.stderr.isatty() else nullcontext()


def _text(best: Best) -> str:
    if best.run is None or best.row is None:
        runs = _many(best.runs, "run")
        return f"{best.problem}: no candidate succeeded in {best.evaluations:,} evaluations ({runs})\n"
    run, row = best.run.identity, best.row
    who = Level.of(best.run.head).marked(run.strategy)
    budget = f"{row.evaluation:,} of {best.run.evaluations:,}"
    costs = f"{best.run.head['default']:.6g} -> {row.value:.6g} {best.run.head['unit']}"
    lines = [
        f"{best.problem}: speedup {_number(best.speedup)}{'' if _beats_default(best) else ', no improvement'}",
        f"  found by {who}, seed {run.seed}, at evaluation {budget}: {costs}",
        *([f"  all {best.all_tried:,} candidates were tried{_optimum_note(best)}"] if best.all_tried else []),
        f"  measured again: {_remeasured(best)}",
        *_wrapped(_baselines(best)),
        f"  checked: {best.checked or 'nothing'}",
        *_wrapped(f"use: {best.usage}" if best.usage else ""),
        *_minimal_lines(best),
    ]
    return "\n".join([*lines, "", best.paste or f"configuration {row.config or 'unknown'}", ""])


def _baselines(best: Best) -> str:
    assert best.run is not None
    known = ", ".join(f"{name} {_number(speedup)}" for name, speedup in known_speedups(best.run.head).items())
    return f"speedup of what the problem knows: {known}" if known else ""


def _wrapped(text: str) -> list[str]:
    wrapper = textwrap.TextWrapper(100, "  ", "    ", break_long_words=False, break_on_hyphens=False)
    return wrapper.wrap(text)


def _minimal_lines(best: Best) -> Iterator[str]:
    """Yield how many changes are needed, then each with its gain: how much the cost rises without it."""
    least, again = best.minimal, best.minimal_again
    if least is None or again is None:
        return
    from ..verify.minimal import gain_text

    changes = best.changes()
    if not least.changes:
        yield "  minimal: it is the default"
        return
    noise = f", where a rise of up to {least.noise:.2%} counts as noise" if again.noisy else ""
    verb = "is" if len(changes) == 1 else "are"
    yield f"  minimal: {len(changes):,} of {_many(least.changes, 'change')} {verb} needed{noise}"
    yield f"  its cost: {again.value:.6g}, speedup {_number(again.speedup)}; found in {least.evaluations:,} evaluations"
    if changes:
        yield ""
    yield from (f"  {gain_text(gain):>9}  {c.name}: {c.default} -> {c.value}" for c, gain in changes)


def _optimum_note(best: Best) -> str:
    return ": this is the optimum" if best.is_optimum else ""


def _remeasured(best: Best) -> str:
    assert best.row is not None
    again = best.again
    if again is None:
        return f"no ({best.why_not})"
    if again.failure:
        return f"it FAILS now ({again.failure})"
    if again.noisy:
        many = f"median of {len(again.values)}, which differ by {again.spread:.1%}"
        stored = f"the run had {best.row.value:.6g}, a speedup of {_number(best.stored_speedup)}"
        return f"{again.value:.6g} ({many}); {stored}"
    if again.value == best.row.value:
        return f"{again.value:.6g}, the same"
    return f"{again.value:.6g}, NOT what was stored ({best.row.value:.6g})"


def _beats_default(best: Best) -> bool:
    return best.speedup is None or best.speedup > 1


def _number(speedup: float | None) -> str:
    return "unknown" if speedup is None else f"{speedup:.4f}"


def _many(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


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
    from ..store.folders import run_folders
    from ..verify.digests import compare, read_digests
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


@app.command()
def report(
    study: StudyName,
    results: Results = Path("results"),
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The file to write (default: report.html in the study's folder)."),
    ] = None,
    compare: Annotated[
        str | None, typer.Option(metavar="STUDY", help="Another study to compare with: its name or its folder.")
    ] = None,
    plugin: Plugins = None,
) -> None:
    """Write a study's results, statistical tests, figures and limits as one HTML page, and print its path."""
    from ..report import write
    from .tables import reserved

    with reserved(True):  # problems may print
        path = write(study, results, out, compare, plugin or ())
    print(path)


@app.command()
def site(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The folder to write to.")],
    results: Results = Path("results"),
    plugin: Plugins = None,
    quiet: Quiet = False,
) -> None:
    """Write all studies as a static site, and print its first page: leaderboards, reports, and numbers as files."""
    from ..site import number_of_studies, write
    from .progress import counted
    from .tables import reserved

    total = number_of_studies(results)
    with reserved(True), counted("writing", total, quiet, "studies") as shown:  # problems may print
        path = write(results, out, plugin or (), shown)
        shown(total, "done")
    print(path)
