"""What published runs say of yours: `score`, `forecast`, `recommend`."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from ..core.level import Level
from ..core.quantities import duration, with_noun
from ..errors import UserError, leave_out
from .app import (
    AsJson,
    AsLines,
    Plugins,
    Quiet,
    Results,
    StudyName,
    app,
    count_option,
    json_line,
    seconds_option,
)
from .run import PROBLEM, from_plugins

if TYPE_CHECKING:
    from ..board.reference import Standing
    from ..core.problem import Problem
    from ..forecast import Forecast
    from ..recommend import Choice, Lead
    from ..store.results import RunResult


@app.command()
def score(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Python file with a strategy.")],
    results: Results = Path("results"),
    jobs: Annotated[int | None, count_option("Parallel runs, one process each (default: number of cores).")] = None,
    quiet: Quiet = False,
) -> None:
    """Run a strategy on the reference list, say its rank among published ones, and write its score file.

    The same command again resumes. The file, RESULTS/board/NAME-runs.csv, and the source are what a board takes.
    """
    from ..board.reference import KEPT, reference_list, standings, with_published
    from ..board.score_file import END, code_of, read, studies, write
    from ..core.strategy import Strategy
    from ..plugins import classes_of
    from ..registry import Registry
    from .progress import make

    if not classes_of(file, Strategy):
        raise UserError(f"{file} has no strategy; add a subclass of bbo_suite.Strategy")
    registry, listed, strategy = Registry((file,)), reference_list(), file.stem
    code = code_of(registry, strategy)
    planned = studies(registry, strategy, listed, results)
    listed.check_here(registry)
    for number, study in enumerate(planned):
        what = f"part {number} of {len(planned) - 1}: {len(study.runs)} runs" if number else "a first run"
        if not quiet:
            print(f"reference list {listed.version}, {what}", file=sys.stderr)
        try:
            make(study, jobs, quiet)
        except UserError as error:  # this command names its studies itself
            raise UserError(str(error).replace("another --study", "another --results")) from error
        if code_of(registry, strategy) != code:  # else the score file would name another source than that which ran
            raise UserError(f"{file} was edited while it ran; run the same command again, which scores it as it is now")
    out = results / "board" / f"{strategy}{END}"
    write(out, planned, registry, strategy, listed)
    _print(standings(with_published(read(out, listed)[KEPT]), listed), strategy)
    print(out)


def _print(found: Sequence[Standing], strategy: str) -> None:
    from rich.table import Table

    from ..core.level import explained
    from .tables import escape, wide_console

    columns = ["evaluations", "rank (95 %)", "strategy", "share of the best known gain (95 %)", "simulated", "real"]
    marks = explained({each.level for each in found})
    table = Table(*columns, caption=f"mean over runs, tasks and families; 1 is the best known; {marks}")
    budget = found[0].budget
    for each in found:
        if each.budget != budget:
            budget = each.budget
            table.add_section()
        style = "bold" if each.strategy == strategy else None
        table.add_row(*map(escape, cells(each)), style=style)
    wide_console().print(table)
    for each in found:
        if each.strategy == strategy:
            print(sentence(each))


def cells(each: Standing) -> list[str]:
    """Return a standing as text: evaluations, rank, strategy, share, and the shares of the two halves."""
    rank, first, last = each.rank
    share, low, high = each.share
    halves = [f"{half:.2f}" if half == half else "–" for half in (each.simulated, each.real)]
    place = f"{rank} ({first} to {last})"
    return [
        f"{each.budget:,}",
        place,
        each.level.marked(each.strategy),
        f"{share:.2f} ({low:.2f} to {high:.2f})",
        *halves,
    ]


def sentence(each: Standing) -> str:
    """Return a standing in words."""
    rank, first, last = each.rank
    place, peers = each.among
    spread = f"{first}" if first == last else f"{first} to {last}"
    more = "" if peers == each.strategies else f"; {place} of {peers} that know no more"
    more += "; its best is worse than the default, which a search may evaluate first" if each.share[0] < 0 else ""
    return f"after {with_noun(each.budget, 'evaluation')}: rank {rank} of {each.strategies} (95 %: {spread}){more}"


_FACTORS = (2, 10, 50)
"""How many times as many evaluations are looked at, unless their numbers are given."""


@app.command()
def forecast(
    study: StudyName,
    at: Annotated[list[int] | None, count_option("After so many evaluations in all. May be repeated.")] = None,
    results: Results = Path("results"),
    as_json: AsLines = False,
) -> None:
    """Say which gain more evaluations would bring, by published runs that looked alike, with 80 % intervals."""
    from ..report.study_data import read_study

    data = read_study(study, results)
    for damage in data.damaged:
        leave_out(damage)
    rows = list(_forecasts(data.runs, at or ()))
    if not rows:
        raise UserError(f"no run of {study} can be forecast; see the lines before")
    if as_json:
        for row in rows:
            print(json_line(row | {"forecasts": [vars(each) for each in row["forecasts"]]}))
    else:
        _print_forecast(rows)


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


def _print_forecast(rows: Sequence[Mapping[str, Any]]) -> None:
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


_SHOWN, _TIMED = 4, 5
"""Strategies that are shown, and candidates whose evaluation is timed."""


@app.command()
def recommend(
    problem: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help=f"Id of a problem, as for `run` (default: that of the first plugin, or {PROBLEM})."
        ),
    ] = None,
    budget: Annotated[int, count_option("Evaluations of a run.")] = 200,
    seconds: Annotated[float | None, seconds_option("Time limit of a run, such as 10m; evaluations are timed.")] = None,
    plugin: Plugins = None,
    as_json: AsJson = False,
) -> None:
    """Say which strategy to take, why, and how sure that is, by what each reached in the published study.

    `run --strategy auto` takes it.
    """
    from ..recommend import check_budget, choices, published
    from ..registry import Registry
    from .tables import reserved

    check_budget(budget)  # loading a problem may take minutes
    with reserved(True):
        registry = Registry(tuple(plugin or ()))
        loaded = registry.problem(problem or (*from_plugins(registry, "families"), PROBLEM)[0])
        each = _seconds_of_one(loaded) if seconds is not None else 0.0
        found = choices(loaded, budget, math.inf if seconds is None else seconds, each)
    if as_json:
        leads = [published().lead(found[0], other) for other in found[1:_SHOWN]]
        rows = [asdict(each) | {"level": each.level.word} for each in found]
        print(json_line({"choices": rows, "leads": [asdict(lead) for lead in leads], "seconds_of_one": each or None}))
        return
    _print_choice(found)
    print("\n".join(_sentences(loaded, found, budget, seconds, each)))
    words = ["run", "--problem", loaded.id, "--strategy", found[0].strategy, "--budget", str(budget)]
    limit = [] if seconds is None else ["--max-seconds", f"{seconds:g}"]
    plugins = [word for path in plugin or () for word in ("--plugin", str(path))]
    print(f"next: {shlex.join(['python', '-m', 'bbo_suite', *words, *limit, *plugins])}")


def _seconds_of_one(problem: Problem) -> float:
    """Return the seconds that an evaluation takes, the mean of a few small changes of the default."""
    from ..core.evaluation import evaluate
    from ..core.moves import Moves

    row, rng = problem.default_row()[None], np.random.default_rng(0)
    problem.leave_cache()
    evaluate(problem, row)  # the first one may compile code of ours
    changed = Moves(problem.space).mutate(np.repeat(row, _TIMED, axis=0), np.ones(_TIMED, int), rng)
    seconds = evaluate(problem, changed).seconds
    assert seconds is not None
    return float(seconds.mean())


def _print_choice(choices: Sequence[Choice]) -> None:
    from rich.table import Table

    from .tables import wide_console

    table = Table(caption="share: of the best known gain, as expected; gains: quartiles over tasks of the study")
    for name in ("strategy", "sees", "evaluations", "share", "gains"):
        table.add_column(name, justify="left" if name in ("strategy", "sees") else "right")
    for each in choices[:_SHOWN]:
        low, middle, high = each.gains
        gains = f"{low:.1f}, {middle:.1f}, {high:.1f} %" if middle == middle else ""  # nan: it did not run there
        table.add_row(each.strategy, each.level.sees, f"{each.evaluations:,}", f"{each.share:.2f}", gains)
    wide_console().print(table)


def _sentences(
    problem: Problem, choices: Sequence[Choice], budget: int, seconds: float | None, each: float
) -> Iterator[str]:
    """Yield what to take and why, and how sure that is."""
    from ..core.problem import family_of
    from ..recommend import EXHAUSTIVE, published

    best, *others = choices
    if best.strategy == EXHAUSTIVE:
        finds = "measures each once" if problem.noisy else "finds the best of them"
        yield f"take {EXHAUSTIVE}: the space has {with_noun(best.evaluations, 'candidate')}, and it {finds}"
    else:
        yield f"take {best.strategy}, which sees {best.level.sees}; {_basis(family_of(problem.id))}"
        yield from map(_sure, (published().lead(best, other) for other in others[: _SHOWN - 1]))
    if seconds is not None:
        time = f"{seconds:g} s" if seconds < 120 else duration(seconds)
        yield f"an evaluation takes {each:.2g} s; {best.strategy} makes {best.evaluations:,} in {time}"
    if budget < published().shortest:
        yield f"the study's shortest runs have {published().shortest} evaluations: shares and gains are theirs"
    if budget > (longest := published().longest) and best.strategy != EXHAUSTIVE:
        yield f"the study's longest runs have {longest:,} evaluations: shares and gains are theirs"


def _basis(family: str) -> str:
    from ..recommend import published

    tasks = published().table.drop_duplicates("task")["family"]
    own, families = int((tasks == family).sum()), tasks.nunique()
    if own:
        return f"the study has {own} tasks of {family}, and {families - 1} other families"
    return f"the study has no task of {family}: this is what {families} other families say"


def _sure(lead: Lead) -> str:
    from ..scores import ALPHA

    text = f"against {lead.over}: ahead on {lead.ahead} families of {lead.families}, behind on {lead.behind}"
    return f"{text} (p {lead.p:.2g}){'' if lead.p <= ALPHA else ', so not shown to be better'}"
