"""`forecast`: what more evaluations would bring."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.level import Level
from ..errors import UserError, leave_out
from .app import AsLines, Results, StudyName, app, json_line

if TYPE_CHECKING:
    from ..forecast import Forecast
    from ..store.results import RunResult

_FACTORS = (2, 10, 50)
"""How many times as many evaluations are looked at, unless their numbers are given."""


@app.command()
def forecast(
    study: StudyName,
    at: Annotated[
        list[int] | None, typer.Option(metavar="N", min=1, help="After N evaluations in all. May be repeated.")
    ] = None,
    results: Results = Path("results"),
    as_json: AsLines = False,
) -> None:
    """Say which gain more evaluations would bring, by published runs that looked alike, with 80 % intervals."""
    from ..report.study_data import read_study

    rows = list(_forecasts(read_study(study, results).runs, at or ()))
    if not rows:
        raise UserError(f"no run of {study} can be forecast; see the lines before")
    if as_json:
        for row in rows:
            print(json_line(row | {"forecasts": [vars(each) for each in row["forecasts"]]}))
    else:
        _print(rows)


def _forecasts(runs: Sequence[RunResult], at: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield for each problem and strategy the median forecast of its runs."""
    from ..forecast import Curve, published

    groups: dict[tuple[str, str], list[RunResult]] = {}
    for run in runs:
        groups.setdefault((run.problem, run.strategy), []).append(run)
    for (problem, strategy), own in groups.items():
        evaluations = min(run.evaluations for run in own)
        try:
            curves, targets = [Curve.of(run) for run in own], at or [f * evaluations for f in _FACTORS]
            made = [published().middle(curves, target) for target in targets]
        except UserError as error:
            leave_out(f"{strategy} on {problem}: {error}")
            continue
        gain = median(max(run.speedup(evaluations) - 1, 0.0) for run in own)
        facts = {"problem": problem, "strategy": Level.of(own[0].head).marked(strategy), "runs": len(own)}
        yield facts | {"evaluations": evaluations, "gain": gain, "forecasts": made}


def _print(rows: Sequence[Mapping[str, Any]]) -> None:
    from rich.table import Table

    from ..forecast import percent
    from .tables import wide_console

    table = Table(caption="gain: default / best - 1, the median of the runs; in brackets 80 % intervals")
    for name in ("problem", "strategy", "evaluations", "gain"):
        table.add_column(name)
    for place in range(max(len(row["forecasts"]) for row in rows)):
        same = {row["forecasts"][place].evaluations for row in rows}
        table.add_column(f"after {same.pop():,}" if len(same) == 1 else f"after {_FACTORS[place]} times as many")
    for row in rows:
        cells = (_cell(each) for each in row["forecasts"])
        table.add_row(row["problem"], row["strategy"], f"{row['evaluations']:,}", percent(row["gain"]), *cells)
    wide_console().print(table)
    print("forecasts are for these runs going on; a strategy that plans by its budget may do more with a larger one")


def _cell(made: Forecast) -> str:
    from ..forecast import percent

    return f"{percent(made.median)} ({percent(made.low)} to {percent(made.high)})"
