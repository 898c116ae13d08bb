"""`best`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .app import AsLines, Plugins, Results, StudyName, app, json_line

if TYPE_CHECKING:
    from ..verify.best import Best


@app.command()
def best(
    study: StudyName, results: Results = Path("results"), plugin: Plugins = None, as_json: AsLines = False
) -> None:
    """Print the best configuration of each problem as text to paste, and measure its speedup again."""
    from ..registry import Registry
    from ..verify.best import best_of
    from .tables import reserved

    complaints: list[str] = []
    found = best_of(Registry(tuple(plugin or ())), study, results, complaints)
    while True:
        with reserved(True):  # output of problems must not mix with text to paste
            one = next(found, None)
        if one is None:
            break
        print(json_line(one.facts()) if as_json else _text(one), flush=True)
    for complaint in complaints:
        print(f"error: {complaint}", file=sys.stderr)
    raise typer.Exit(1 if complaints else 0)


def _text(best: Best) -> str:
    if best.run is None or best.row is None:
        runs = _many(best.runs, "run")
        return f"{best.problem}: no candidate succeeded in {best.evaluations:,} evaluations ({runs})\n"
    run, row = best.run.identity, best.row
    mark = " *" if best.run.head["uses_structure"] else ""
    budget = f"{row.evaluation:,} of {best.run.evaluations:,}"
    costs = f"{best.run.head['default']:.6g} -> {row.value:.6g} {best.run.head['unit']}"
    lines = [
        f"{best.problem}: speedup {_number(best.speedup)}{'' if _beats_default(best) else ', no improvement'}",
        f"  found by {run.strategy}{mark}, seed {run.seed}, at evaluation {budget}: {costs}",
        *([f"  all {best.all_tried:,} candidates were tried{_optimum_note(best)}"] if best.all_tried else []),
        f"  measured again: {_remeasured(best)}",
        f"  checked: {best.checked or 'nothing'}",
    ]
    return "\n".join([*lines, "", best.paste or f"configuration {row.config or 'unknown'}", ""])


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
