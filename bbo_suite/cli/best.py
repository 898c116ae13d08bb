"""`best`."""

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
from .app import AsLines, Plugins, Results, StudyName, app, json_line

if TYPE_CHECKING:
    from ..registry import Registry
    from ..verify.best_result import Best


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

    complaints: list[str] = []
    found = _found(Registry(tuple(plugin or ())), study, results, complaints, minimal, keep, problem)
    while True:
        with reserved(True), _waiting(minimal):  # output of problems must not mix with text to paste
            one = next(found, None)
        if one is None:
            break
        print(json_line(one.facts()) if as_json else one.text() if keep else _text(one), flush=True)
    for complaint in complaints:
        print(f"error: {complaint}", file=sys.stderr)
    raise typer.Exit(1 if complaints else 0)


def _found(
    registry: Registry,
    study: str,
    results: Path,
    complaints: list[str],
    minimal: bool,
    keep: int | None,
    problems: list[str] | None,
) -> Iterator[Any]:
    from ..verify.best import best_of
    from ..verify.selection import selections

    if keep and minimal:
        raise UserError("--keep and --minimal do not go together; leave one out")
    if keep:
        return selections(registry, study, results, complaints, keep, problems)
    return best_of(registry, study, results, complaints, minimal, problems)


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
