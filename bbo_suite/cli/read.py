"""The commands that read studies: `best`, `validate`, `report`, `site`."""

from __future__ import annotations

import itertools
import sys
import textwrap
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.level import Level
from ..core.quantities import cost, effect, with_noun
from ..errors import UserError
from ..store.identity import known_speedups
from .app import AsLines, Plugins, Quiet, Results, StudyName, app, count_option, json_line

if TYPE_CHECKING:
    from ..registry import Registry
    from ..verify.best import Best
    from ..verify.digests import Comparison
    from ..verify.validate import Verdict

_FEW = 4
"""Lines of a list or of a text that `best` prints of each problem, at most, unless it is to print all."""


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
    everything: Annotated[
        bool, typer.Option("--all", help="Print all changes and the whole text, however long.")
    ] = False,
    results: Results = Path("results"),
    plugin: Plugins = None,
    as_json: AsLines = False,
) -> None:
    """Print what was found for each problem: the cost, who found it, and the text to paste; and measure it again."""
    from ..registry import Registry
    from .tables import each_reserved

    found = _found(Registry(tuple(plugin or ())), study, results, minimal, keep, problem)
    # what problems print must not mix with text to paste
    nothing, written = False, set[str]()
    for one in each_reserved(found, shown=partial(_waiting, minimal)):
        nothing |= not keep and one.row is None
        text = json_line(one.facts()) if as_json else one.text() if keep else _text(one, everything, written)
        print(text, flush=True)
    if nothing:
        raise typer.Exit(1)


def _found(
    registry: Registry,
    study: str,
    results: Path,
    minimal: bool,
    keep: int | None,
    problems: list[str] | None,
) -> Iterator[Any]:
    from ..verify.best import best_of, selections

    if keep and minimal:
        raise UserError("--keep and --minimal do not go together; leave one out")
    if keep:
        return selections(registry, study, results, keep, problems)
    return best_of(registry, study, results, minimal, problems)


def _waiting(minimal: bool) -> AbstractContextManager[object]:
    """Say on a terminal that many evaluations are being made."""
    from .tables import console

    text = "returning changes to the default, which may take hundreds of evaluations"
    return console(error=True).status(text) if minimal and sys.stderr.isatty() else nullcontext()


def _text(best: Best, everything: bool, written: set[str]) -> str:
    if best.run is None or best.row is None:
        runs = with_noun(best.runs, "run")
        return f"{best.problem}: no candidate succeeded in {best.evaluations:,} evaluations ({runs})\n"
    from ..verify.best import COST_ALONE

    run, row, head = best.run.identity, best.row, best.run.head
    who = Level.of(head).marked(run.strategy)
    answer = [
        f"{best.problem}: {head['default']:.6g} -> {cost(best.cost, head['unit'])}, {_effect(best)}",
        f"  found by {who}, seed {run.seed}, at evaluation {row.evaluation:,} of {best.run.evaluations:,}",
        *_counted(best),
        *([f"  all {best.all_tried:,} candidates were tried{_optimum_note(best)}"] if best.all_tried else []),
        f"  measured again: {_remeasured(best)}",
        *_wrapped(best.better),
        *_wrapped(_baselines(best)),
        *([f"  checked: {best.checked}"] if best.checked not in ("", COST_ALONE) else []),
        *_wrapped(best.needed_text()),
        *_gains(best, everything),
    ]
    return "\n".join([*answer, *_pasted(best, everything, written), ""])


def _counted(best: Best) -> Iterator[str]:
    """Say what the run counts as if that is the result of another candidate."""
    assert best.run is not None and best.row is not None
    counted, first = best.run.speedup, best.run.best
    if counted and first and first.evaluation != best.row.evaluation:
        result = effect(counted, best.run.head["unit"])
        yield f"  the run counts as {result}: of the lowest cost in its search; this is the best of its ten"


def _gains(best: Best, everything: bool) -> Iterator[str]:
    """Yield how much each needed change gains, the largest gain first."""
    lines = best.gain_lines()
    shown = lines if everything or len(lines) <= _FEW else lines[: _FEW - 1]
    yield from shown
    if len(shown) < len(lines):
        yield f"  … {len(lines) - len(shown):,} more: --all"


def _pasted(best: Best, everything: bool, written: set[str]) -> list[str]:
    """Return the text to paste and how to use it; only the size of a long one.

    Args:
      written: names of the files of other problems; that of this one is added.
    """
    assert best.row is not None
    if best.better and not everything:
        return ["  as text: with --all, although it is not the best that is known"]
    text = best.paste or f"configuration {best.row.config or 'unknown'}"
    lines, file = text.splitlines(), best.loaded.pasted_file if best.loaded and best.paste else ""
    if file:
        own = _write(text, file, written)
        replayed = [f"  replayed: {best.replayed}"] if best.replayed else []
        usage = best.usage.replace(file, own, 1)
        return [f"  written: {own}, {with_noun(len(lines), 'line')}", *replayed, "", f"use: {usage}"]
    if not everything and len(lines) > _FEW:
        return [f"  as text: {len(lines):,} lines, with --all"]
    return ["", text, *(["", f"use: {best.usage}"] if best.usage else [])]


def _write(text: str, file: str, written: set[str]) -> str:
    """Write a file, and return its name: with a number if another problem's file has it, as of `a/x.c` and `b/x.c`."""
    path = Path(file)
    names = itertools.chain([file], (f"{path.stem}-{number}{path.suffix}" for number in itertools.count(2)))
    written.add(own := next(name for name in names if name not in written))
    try:
        Path(own).write_text(f"{text}\n")
    except OSError as error:
        raise UserError(f"cannot write {own}: {error.strerror}; run this in a folder that you can write to") from None
    return own


def _effect(best: Best) -> str:
    assert best.run is not None
    better = best.speedup is None or best.speedup > 1
    return effect(best.speedup, best.run.head["unit"]) if better else "no improvement over the default"


def _baselines(best: Best) -> str:
    assert best.run is not None
    unit = best.run.head["unit"]
    known = "; ".join(f"{name}: {effect(ratio, unit)}" for name, ratio in known_speedups(best.run.head).items())
    return f"known: {known}" if known else ""


def _wrapped(text: str) -> list[str]:
    wrapper = textwrap.TextWrapper(100, "  ", "    ", break_long_words=False, break_on_hyphens=False)
    return wrapper.wrap(text)


def _optimum_note(best: Best) -> str:
    return ": this is the optimum" if best.is_optimum else ""


def _remeasured(best: Best) -> str:
    assert best.row is not None and best.run is not None
    again, unit = best.again, best.run.head["unit"]
    if again is None:
        return f"no ({best.why_not})"
    if again.failure:
        return f"it FAILS now ({again.failure})"
    if again.noisy:
        many = f"median of {len(again.values)}, which differ by {again.spread:.1%}"
        searched = f"the search measured {cost(best.row.value, unit)}"
        return f"{cost(again.value, unit)}, {effect(again.speedup, unit)} ({many}); {searched}"
    if again.value == best.row.value:
        return "the same"
    return f"{cost(again.value, unit)}, NOT what was stored ({best.row.value:.6g})"


@app.command()
def validate(
    study: Annotated[str, typer.Argument(metavar="STUDY", help="Name of the study, or a score file.")],
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

    Of a score file, NAME-runs.csv, one run of each task is made again, with the source NAME.py beside it.
    """
    if study.endswith(".csv"):
        if digests is not None:
            raise UserError(f"{study} is a score file, and --digests compares a study; leave out --digests")
        holds = _score(Path(study), plugin, as_json)
    elif digests is None:
        holds = _check(study, results, sample, plugin, quiet, as_json)
    else:
        holds = _same(study, results, digests, quiet, as_json)
    raise typer.Exit(0 if holds else 1)


def _score(file: Path, plugin: list[Path] | None, as_json: bool) -> bool:
    """Make a share of the runs in a score file again."""
    from ..board import score_file
    from ..board.reference import reference_list
    from ..registry import Registry
    from .tables import each_reserved

    listed = reference_list()
    runs = score_file.read(file, listed)
    beside = file.with_name(file.name.removesuffix(score_file.END) + ".py")
    sources = tuple(plugin or ([beside] if runs["code"].iloc[0] else []))
    if not plugin and sources and not beside.exists():
        raise UserError(f"{file} needs its source: copy it to {beside}, or name it by --plugin")
    found = score_file.made_again(file, runs, Registry(sources), listed)
    different = again = 0
    for run, equal in each_reserved(found):  # strategies may print
        again, different = again + 1, different + (not equal)
        if as_json:
            print(json_line({"run": run, "equal": equal}))
        elif not equal:
            print(f"FAIL {run}: made again, it is another run")
    if not as_json:
        result = f"{different} differ" if different else "all are the same"
        print(f"{again} of {len(runs)} runs made again: {result}")
    return not different


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
    from rich.table import Table

    from .tables import escape, wide_console

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
    """Write a study's results, statistical tests, figures and limits as one HTML page, and print its path.

    With --compare: print for each strategy whether it is better or worse than in the other study, or undecided. The
    exit code is 1 if one is worse.
    """
    from ..report import write
    from .tables import reserved

    told: list[str] = []
    with reserved(True):  # problems may print
        path = write(study, results, out, compare, plugin or (), told)
    for sentence in told:
        print(sentence)
    print(path)
    raise typer.Exit(1 if told and told[0].endswith(": worse") else 0)


@app.command()
def site(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The folder to write to.")],
    results: Results = Path("results"),
    plugin: Plugins = None,
    quiet: Quiet = False,
) -> None:
    """Write all studies as a static site, and print its first page: leaderboards, reports, and numbers as files."""
    from ..site import write
    from .progress import counted
    from .tables import reserved

    with reserved(True), counted("writing", 0, quiet, "studies") as shown:  # problems may print
        path = write(results, out, plugin or (), lambda number, total, name: shown(number, name, total))
    print(path)
