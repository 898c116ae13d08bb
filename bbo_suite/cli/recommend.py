"""`recommend`: which strategy for a problem and a budget, by the published study."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from ..core.quantities import duration
from .app import AsJson, Plugins, app, count_option, json_line, seconds_option
from .run import PROBLEM

if TYPE_CHECKING:
    from ..core.problem import Problem
    from ..recommend import Choice, Lead

_SHOWN, _TIMED = 4, 5
"""Strategies that are shown, and candidates whose evaluation is timed."""


@app.command()
def recommend(
    problem: Annotated[str, typer.Option(metavar="ID", help="Id of a problem, as for `run`.")] = PROBLEM,
    budget: Annotated[int, count_option("Evaluations of a run.")] = 200,
    seconds: Annotated[float | None, seconds_option("Time limit of a run, such as 10m; evaluations are timed.")] = None,
    plugin: Plugins = None,
    as_json: AsJson = False,
) -> None:
    """Say which strategy to take, why, and how sure that is, by what each reached in the published study.

    `run --strategy auto` takes it.
    """
    from ..recommend import choices, published
    from ..registry import Registry
    from .tables import reserved

    with reserved(True):
        loaded = Registry(tuple(plugin or ())).problem(problem)
        each = _seconds_of_one(loaded) if seconds is not None else 0.0
        found = choices(loaded, budget, math.inf if seconds is None else seconds, each)
    if as_json:
        leads = [published().lead(found[0], other) for other in found[1:_SHOWN]]
        rows = [asdict(each) | {"level": each.level.word} for each in found]
        print(json_line({"choices": rows, "leads": [asdict(lead) for lead in leads], "seconds_of_one": each or None}))
        return
    _print(found)
    print("\n".join(_sentences(loaded, found, budget, seconds, each)))


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


def _print(choices: Sequence[Choice]) -> None:
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
    """Yield what to take and why, how sure that is, and the command."""
    from ..core.problem import family_of
    from ..recommend import EXHAUSTIVE, published

    best, *others = choices
    if best.strategy == EXHAUSTIVE:
        yield f"take {EXHAUSTIVE}: the space has {best.evaluations:,} candidates, and it finds the best of them"
    else:
        yield f"take {best.strategy}, which sees {best.level.sees}; {_basis(family_of(problem.id))}"
        yield from map(_sure, (published().lead(best, other) for other in others[: _SHOWN - 1]))
    if seconds is not None:
        yield f"an evaluation takes {each:.2g} s; {best.strategy} makes {best.evaluations:,} in {duration(seconds)}"
    if budget < published().shortest:
        yield f"the study's shortest runs have {published().shortest} evaluations: shares and gains are theirs"
    words = ["python", "-m", "bbo_suite", "run", "--problem", problem.id, "--strategy", best.strategy]
    limit = [] if seconds is None else ["--max-seconds", f"{seconds:g}"]
    yield f"next: {shlex.join([*words, '--budget', str(budget), *limit])}"


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
