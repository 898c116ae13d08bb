"""`plan`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from ..core.level import LEVEL, Level, explained
from ..core.quantities import duration
from ..errors import UserError
from .app import AsLines, app, json_line
from .study_options import StudyOptions, takes_study


@app.command()
@takes_study
def plan(
    options: StudyOptions,
    as_list: Annotated[bool, typer.Option("--list", help="Print one command per run, for a batch system.")] = False,
    as_json: AsLines = False,
) -> None:
    """Check the options of `run`, and show the amount of work and how long it will take. Nothing is stored."""
    from ..runs.processes import default_jobs, one_at_a_time
    from ..runs.study_plan import timed_problems
    from ..runs.workload import workload
    from .progress import display
    from .tables import reserved

    if options.jobs is not None and options.jobs < 1:
        raise UserError(f"jobs must be 1 or more, not {options.jobs}")
    if as_list and options.only:
        raise UserError("--list divides the runs itself; leave out --only")
    with reserved(as_json or as_list):
        studies = [s for *_, s in options.to_studies().studies] if options.plan else [options.to_study()]
        if as_list and len(studies) > 1:
            raise UserError("--list is for one study; run shares of a plan with --only K/N")
        planned, items = [], []
        for study in studies:
            with display(options.quiet).preparing(study.problems):
                planned += (own := study.prepare())
                items += [] if as_list else list(workload(study, own))
    command = shlex.join(["python", "-m", "bbo_suite", "run", *options.to_arguments()])
    for number in range(len(planned) if as_list else 0):
        print(f"{command} --only {number + 1}/{len(planned)}")
    for item in items if as_json else ():
        print(json_line(item))
    if not (as_list or as_json):
        timed = timed_problems(planned)
        _print(items, options.jobs or default_jobs(len(planned), timed))
        if timed and options.jobs is None and len(planned) > 1:
            print(one_at_a_time(timed))


def _print(items: Sequence[Mapping[str, Any]], jobs: int) -> None:
    """Print the amount of work: one line per strategy and problem, the total, and how long it will take."""
    from .tables import fitting_table, wide_console

    summed = ("runs", "done", "evaluations", "bytes", "seconds")
    total = {
        "problem": "total",
        "strategy": "",
        LEVEL: Level.COSTS.word,
        "parameters": None,
        **{key: sum(i[key] for i in items) for key in summed},
    }
    console, caption = wide_console(), "time: of all runs one after another, estimated; stored MB: at the full budget"
    caption = "; ".join(filter(None, (caption, explained(set(map(Level.of, items))))))
    lines = [_cells(item) for item in (*items, total)]
    console.print(fitting_table(lines, ("parameters", "stored MB", "done", "evaluations"), console.width, caption))
    left = total["runs"] - total["done"]
    at_once = max(1, min(jobs, left))
    longest = max((item["seconds"] / max(1, item["runs"] - item["done"]) for item in items), default=0.0)
    time = f"{at_once} at a time: about {duration(max(total['seconds'] / at_once, longest))}"
    print(f"{left:,} run{'' if left == 1 else 's'} to do, {time}" if left else "all runs are done")


def _cells(item: Mapping[str, Any]) -> dict[str, str]:
    counts = {
        key: "" if item[key] is None else f"{item[key]:,}" for key in ("runs", "done", "parameters", "evaluations")
    }
    names = {"problem": item["problem"], "strategy": Level.of(item).marked(item["strategy"])}
    return {**names, **counts, "stored MB": f"{item['bytes'] / 1e6:,.1f}", "time": duration(item["seconds"])}
